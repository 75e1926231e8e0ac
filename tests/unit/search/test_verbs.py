"""What a query's verbs mean, and what the verb and the names of a tool add to its score."""

import pytest
from helpers.search_tools import found, names, searcher, tool

from mcpzip.search import Searcher, fusion
from mcpzip.search.semantic import local_table
from mcpzip.search.verbs import READING, WRITING, families, in_question

CREATES = families("creat")


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("which containers are running", True),
        ("what is it set to", True),
        ("whose issues are closed", True),
        ("how many messages were sent", True),
        ("is there a table to drop", True),
        ("how do i send it", False),
        ("how", False),
        ("is it", False),
        ("send which one", False),
        ("", False),
    ],
)
def test_a_question_is_about_reading(text: str, asks: bool) -> None:
    meant = in_question(CREATES | families("run"), text.split())
    assert bool(meant & READING) == asks
    assert bool(meant & WRITING) == (not asks)
    assert meant & families("run")


def test_a_question_finds_the_tool_that_reads() -> None:
    made = searcher(
        tool("mail", "change_language", "The language of the account."),
        tool("mail", "view_language", "The language of the account."),
    )
    assert found(made, "language of the account")[0] == "mail__change_language"  # by name, as they are equal
    assert found(made, "which language does the account have")[0] == "mail__view_language"


@pytest.fixture(scope="module")
def boards() -> Searcher:
    made = Searcher(local_table())
    made.index(
        [
            tool(server, name, f"{text} of a board of {server}.")
            for server in ("acme-api", "zenith-api")
            for name, text in (("list_cards", "List the cards"), ("create_card", "Create a card"))
        ],
        "1",
    )
    return made


def score(made: Searcher, query: str, name: str) -> float:
    made._use(made._catalog.index, made._catalog.version)  # without the cached rankings
    return next(hit.score for hit in made.search(query, 9).hits if hit.entry.name == name)


@pytest.mark.parametrize(
    ("query", "name", "constant", "share"),
    [
        ("the board at zenith", "zenith-api__list_cards", "SERVER_PART", 1),
        ("the board at zenith", "acme-api__list_cards", "SERVER_PART", 0),
        ("show the board", "acme-api__list_cards", "VERB_AGREES", 1),
        ("show the board", "acme-api__create_card", "VERB_AGREES", 0),
        ("show the board", "acme-api__create_card", "VERB_CONTRADICTS", 1),
        ("show the board", "acme-api__list_cards", "VERB_CONTRADICTS", 0),
        ("the card beside another one", "acme-api__create_card", "NAME_IN_QUERY", None),
    ],
)
def test_what_the_last_step_adds(
    boards: Searcher, monkeypatch: pytest.MonkeyPatch, query: str, name: str, constant: str, share: int | None
) -> None:
    whole = score(boards, query, name)
    added = getattr(fusion, constant)
    monkeypatch.setattr(fusion, constant, 0.0)
    difference = whole - score(boards, query, name)
    if share is None:
        assert added * fusion.HIGHEST_SCORE < difference < 0
    else:
        assert difference == pytest.approx(share * added * fusion.HIGHEST_SCORE)


def test_a_long_query_has_no_last_step(boards: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    query = " ".join(f"word{chr(97 + n)}" for n in range(20)) + " show cards zenith"
    whole = score(boards, query, "zenith-api__list_cards")
    monkeypatch.setattr(fusion, "SERVER_PART", 0.0)
    assert score(boards, query, "zenith-api__list_cards") == pytest.approx(whole)


@pytest.mark.parametrize("query", ["list cards acme api", "acme-api__list_cards", "acme list cards"])
def test_an_exact_name_stays_first(boards: Searcher, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    for constant in ("SERVER_PART", "VERB_AGREES", "VERB_CONTRADICTS", "NAME_IN_QUERY"):
        monkeypatch.setattr(fusion, constant, -1.0)
    boards._use(boards._catalog.index, boards._catalog.version)
    assert names(boards.search(query, 3))[0] == "acme-api__list_cards"
