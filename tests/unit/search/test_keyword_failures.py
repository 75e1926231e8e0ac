"""The ways in which keyword search is known to fail, each answered, with the questions that showed it."""

from collections.abc import Iterator
from itertools import permutations

import pytest
from helpers import search_catalog
from helpers.search_tools import found, names, searcher, tool

from mcpzip.search import Filters, Searcher
from mcpzip.search.packed_matrix import PackedMatrix
from mcpzip.search.postings import Posting, Postings
from mcpzip.search.semantic import local_table, vectors
from mcpzip.search.tiers import LLM, SEMANTIC, TierAbsence

ASKED_FOR = [
    tool("knowledge", "pushing_to_production", "Push to production"),
    tool("knowledge", "jwt_auth", "Authentication with JSON web tokens"),
    tool("knowledge", "basic_auth", "Authentication with a name and a password"),
    tool("helper", "troubleshooting", "Find out why a service fails"),
    tool("helper", "error_analysis", "Find the cause of an error"),
    tool("helper", "profiling", "Find what makes a program slow"),
    tool("helper", "debug_output", "Switch on the messages of a program"),
]


@pytest.fixture(scope="module")
def everything() -> Searcher:
    return searcher(*search_catalog.entries(), *ASKED_FOR, table=local_table())


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("How do I deploy my app?", "deployer__rollout"),
        ("release to cloud", "deployer__rollout"),
        ("ship a new version to users", "deployer__rollout deployer__promote_build"),
        ("go live", "knowledge__pushing_to_production deployer__rollout deployer__promote_build"),
        ("install dependencies", "packages__pip_install packages__setup_environment"),
        (
            "What tools help with debugging?",
            "helper__troubleshooting helper__error_analysis helper__profiling",
        ),
        ("debugging tools", "helper__troubleshooting helper__error_analysis helper__debug_output"),
        ("find bugs in a slow program", "helper__profiling observability__profile_process"),
        ("what is wrong with the service", "helper__troubleshooting observability__troubleshoot_service"),
        ("finite state automaton", "workflow__start_state_machine"),
    ],
)
def test_semantics(everything: Searcher, query: str, right: str) -> None:
    assert not {*right.split()}.isdisjoint(found(everything, query, 5))


@pytest.mark.parametrize(
    "query",
    ["run tests", "running tests", "test execution", "execute test suite", "run_test_suite", "tests run"],
)
def test_substrings(everything: Searcher, query: str) -> None:
    assert found(everything, query, 1) == ["testing__run_test_suite"]


def test_substrings_of_other_words_do_not_match() -> None:
    # "ask" stands in "task", "age" in "message", "a" nearly everywhere.
    made = searcher(tool("s", "send_message"), tool("t", "create_task"), tool("m", "search_mail"))
    results = made.search("a ask age mail", 10)
    assert (names(results), results.unknown_words) == (["m__search_mail"], ("ask", "age"))


def test_three_bin_scores(everything: Searcher) -> None:
    hits = everything.search("list the open issues of a repository on github", 20).hits
    assert len({round(hit.score, 3) for hit in hits}) > 10
    assert not {hit.score for hit in hits[1:]} & {0.0, 0.5, 1.0}


def test_one_word_that_tells_much_is_worth_more_than_one_that_tells_little() -> None:
    made = searcher(
        *(tool("s", f"list_{thing}") for thing in ("users", "files", "webhooks")), tool("t", "webhooks")
    )
    assert found(made, "webhooks list everything")[0] == "s__list_webhooks"
    scores = {hit.entry.name: hit.score for hit in made.search("show webhooks", 9).hits}
    assert scores["t__webhooks"] > 2 * scores.get("s__list_users", 0.0)


def test_arbitrary_order() -> None:
    made = [*ASKED_FOR, tool("knowledge", "oauth", "Authentication with a name and a password")]
    orders = {
        tuple(found(searcher(*order), "authentication"))
        for order in permutations([entry for entry in made if entry.server == "knowledge"])
    }
    assert orders == {("knowledge__basic_auth", "knowledge__oauth", "knowledge__jwt_auth")}


def test_unsearchable_kinds(everything: Searcher) -> None:
    made = [*search_catalog.entries(), *ASKED_FOR]
    assert [entry.name for entry in made if found(everything, entry.name, 1) != [entry.name]] == []
    for query in (
        "authentication directives",
        "I want to find directives about authentication",
        "authentication",
    ):
        assert {"knowledge__jwt_auth", "knowledge__basic_auth", "identity__authenticate_user"} & set(
            found(everything, query, 3)
        )


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by an element a posting that is looked at."""
    seen: list[int] = []
    plain = Postings.of

    def of(self: Postings, term: int) -> Iterator[Posting]:
        for posting in plain(self, term):
            seen.append(term)
            yield posting

    monkeypatch.setattr(Postings, "of", of)
    return seen


def test_linear_time(touched: list[int]) -> None:
    counts = []
    for size in (100, 3_000):
        noise = (tool("noise", f"entry_{number}", f"about subject{number % 97}") for number in range(size))
        made = searcher(*noise, tool("slack", "send_message", "To a channel"), tool("mail", "send_mail"))
        touched.clear()
        assert found(made, "send a message to a channel", 5)[0] == "slack__send_message"
        counts.append(len(touched))
    assert counts[0] == counts[1] <= 10


def test_linear_time_of_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "MAX_EXHAUSTIVE", 100)
    compared: list[int] = []
    plain = PackedMatrix.cosines

    def cosines(self: PackedMatrix, numbers: bytes) -> list[float]:
        found_ = plain(self, numbers)
        compared.append(len(found_))
        return found_

    made = searcher(*search_catalog.entries(), *ASKED_FOR, table=local_table())
    made.search("the first search makes the clusters", 5)
    monkeypatch.setattr(PackedMatrix, "cosines", cosines)
    assert found(made, "will the weather in the city be good", 1)[0].startswith("weather__")
    assert sum(compared) < len(made) / 2


def test_no_filters(everything: Searcher) -> None:
    assert {hit.entry.server for hit in everything.search("list", 20, Filters(server="github")).hits} == {
        "github"
    }
    assert {hit.entry.server for hit in everything.search("list server:postgres", 20).hits} == {"postgres"}
    assert "slack__send_message" in found(everything, "send a message", 5)
    assert "slack__send_message" not in found(everything, "send a message -slack", 50)
    reading = tool("x", "look_at_message", annotations={"readOnlyHint": True})
    made = searcher(reading, tool("x", "send_message"))
    assert found(made, "message", filters=Filters(read_only=True)) == ["x__look_at_message"]
    assert found(made, "message", filters=Filters(read_only=False)) == ["x__send_message"]


@pytest.mark.parametrize(
    "query",
    [
        "state machine",
        "state_machine",
        "StateMachine",
        "state-machine",
        "stateMachine",
        "STATE MACHINES",
        "statemachine",
        '"state machine"',
    ],
)
def test_naive_splitting(everything: Searcher, query: str) -> None:
    assert found(everything, query, 1) == ["workflow__start_state_machine"]


@pytest.mark.parametrize(
    ("query", "server"),
    [
        ("GitHub", "github"),
        ("list GitHub issues", "github"),
        ("fork a GitHub repository", "github"),
        ("HubSpot", "hubspot"),
        ("HubSpot contact", "hubspot"),
        ("kubernetes pods of GitHub", "kubernetes"),
    ],
)
def test_naive_splitting_of_brands(everything: Searcher, query: str, server: str) -> None:
    best = everything.search(query, 1).hits[0]
    plain = everything.search(query.lower(), 1).hits[0]
    assert best.entry.server == plain.entry.server == server
    assert best.score > 0.8 * plain.score


@pytest.mark.parametrize("query", ["e-mail", "send an e-mail", "E-Mail", "e mail"])
def test_naive_splitting_of_words_that_are_written_both_ways(everything: Searcher, query: str) -> None:
    results = everything.search(query, 1)
    assert results.hits[0].entry.server == "gmail"
    assert results.unknown_words == ()
    assert results.quality in ("strong", "fair")


def test_all_or_nothing(everything: Searcher) -> None:
    results = everything.search("state management architecture", 5)
    assert names(results)[0] == "workflow__start_state_machine"
    assert results.unknown_words == ("management", "architecture")
    assert "helper__debug_output" in found(everything, "logging debug output of a program", 3)


@pytest.mark.parametrize(
    "query", ["authentificate", "How do I authentificate users?", "authentciate user", "autenticate a user"]
)
def test_misspellings(everything: Searcher, query: str) -> None:
    results = everything.search(query, 3)
    assert "identity__authenticate_user" in names(results)
    assert [right for _, right in results.corrected] == ["authenticate"]


def test_silent_fallback(everything: Searcher) -> None:
    away = [
        TierAbsence(SEMANTIC, "ollama", "it can't be reached"),
        TierAbsence(LLM, "gemini", "it took too long"),
    ]
    results = everything.search("send a message", 5, answers=away)
    assert (results.tiers, results.absent) == (("keyword", "semantic"), tuple(away))
    assert searcher(*ASKED_FOR).search("authentication", 5, answers=away).tiers == ("keyword",)
    assert everything.search("slack send message", 1).quality == "strong"
    assert everything.search("paint the garden fence", 1).quality in ("weak", "none")


def test_no_explanation() -> None:
    made = searcher(*search_catalog.entries())
    results = made.search("xylophone slqqk", 5)
    assert (results.hits, results.quality) == ((), "none")
    assert results.unknown_words == ("xylophone", "slqqk")
    assert "slack" in results.nearest_words
    assert results.nearest_servers[0] == "slack"
    explained = made.search("send a slakc message", 1)
    assert explained.corrected == (("slakc", "slack"),)
    assert explained.hits[0].matched == ("send", "slakc", "message")
    assert sum(made.by_field("send a message", Filters(), explained.hits[0].entry).values()) > 0.3
