"""How far the first tool is trusted: by its score, and by its lead over tools of other kinds."""

import pytest
from helpers.search_tools import catalogs, queries, searcher, tool
from hypothesis import given

from bench.retrieval import alike
from mcpzip.model.entry import Entry
from mcpzip.search import Searcher
from mcpzip.search.confidence import FAIR, NAME_WEIGHT, STRONG, confidence, quality
from mcpzip.search.fusion import RankedDocument, Ranking, rank
from mcpzip.search.index import Index
from mcpzip.search.query import Filters, Plan, analyze_query
from mcpzip.search.semantic import local_table


def ranking(*scores: float, chosen: bool = False) -> Ranking:
    documents = tuple(RankedDocument(n, score, 0.5, None, chosen) for n, score in enumerate(scores))
    return Ranking(documents, len(scores), len(scores))


@pytest.fixture(scope="module")
def index() -> Index:
    made = (
        tool("tasks", "delete_task", "Deletes a task."),
        tool(
            "todo", "todo-delete-task", "Deletes a task."
        ),  # of the same kind: the rest is its server's name
        tool("tasks", "update_task", "Changes a task."),
    )
    return searcher(*made)._catalog.index


def plan(index: Index, query: str = "xylophone") -> Plan:
    return analyze_query(query, Filters(), index).plan


def of(index: Index, *names: str, scores: tuple[float, ...]) -> Ranking:
    numbers = [index.names.literal(name)[0] for name in names]
    documents = tuple(RankedDocument(n, score, 0.5, None) for n, score in zip(numbers, scores, strict=True))
    return Ranking(documents, len(names), len(names))


def test_a_rival_that_is_nearly_as_good_makes_a_high_score_doubtful(index: Index) -> None:
    names, its = ("tasks__delete_task", "tasks__update_task"), plan(index, "delete this task")
    assert quality(index, of(index, *names, scores=(0.7, 0.3)), its) == "strong"
    assert quality(index, of(index, *names, scores=(0.7, 0.65)), its) == "fair"
    assert quality(index, of(index, *names, scores=(0.3, 0.29)), its) == "weak"


def test_tools_of_one_kind_are_no_rivals(index: Index) -> None:
    names = ("tasks__delete_task", "todo__todo-delete-task", "tasks__update_task")
    three, two = of(index, *names, scores=(0.7, 0.7, 0.3)), of(index, names[0], names[2], scores=(0.7, 0.3))
    assert quality(index, three, plan(index)) == "strong"
    assert confidence(index, three, plan(index)) == confidence(index, two, plan(index))


def test_a_name_that_is_in_the_query_counts_a_little_against_it(index: Index) -> None:
    found = of(index, "tasks__delete_task", "tasks__update_task", scores=(0.45, 0.35))
    wordless = confidence(index, found, plan(index, "xylophone"))
    assert confidence(index, found, plan(index, "delete the task")) == pytest.approx(wordless - NAME_WEIGHT)


def test_a_name_that_the_query_gives_is_trusted_unless_two_tools_have_it(index: Index) -> None:
    names = ("tasks__delete_task", "tasks__update_task")
    for score in (1.0, 0.99, 0.96):
        assert quality(index, of(index, *names, scores=(score, 0.94)), plan(index)) == "strong"
        assert quality(index, of(index, *names, scores=(score, score)), plan(index)) == "fair"


def test_without_another_tool_the_score_alone_counts(index: Index) -> None:
    assert [quality(index, ranking(score), plan(index)) for score in (0.5, 0.35, 0.2)] == [
        "strong",
        "fair",
        "weak",
    ]
    assert quality(index, Ranking((), 0, 3), plan(index)) == "none"


def test_the_choice_of_a_model_has_no_lead(index: Index) -> None:
    assert quality(index, ranking(0.8, 0.79, chosen=True), plan(index)) == "strong"


def test_servers_that_do_something_else_are_rivals() -> None:
    """``list_departments`` of a shop and of a museum."""
    made = Searcher(local_table())
    shop = tool("grocer", "list_departments", "The aisles of a shop, with bread, milk and vegetables.")
    museum = tool("paintings", "list_departments", "Departments of a museum of art, such as Greek sculpture.")
    other = tool("paintings", "get_object", "One work of art.")
    made.index((shop, museum, other), "1")
    assert made.search("list departments", 3).quality == "fair"
    made.index((shop, tool("market", "list_departments", shop.description + " "), other), "2")
    assert made.search("list departments", 3).quality == "strong"


@given(catalogs, queries)
def test_the_word_is_that_of_the_confidence(made: list[Entry], query: str) -> None:
    index = searcher(*made)._catalog.index
    its = plan(index, query)
    found = rank(index, its, 24)
    if not found.documents:
        assert quality(index, found, its) == "none"
        return
    if its.match_all:
        assert quality(index, found, its) == "strong"
        return
    whole = confidence(index, found, its)
    assert -NAME_WEIGHT <= whole <= 1
    assert (quality(index, found, its) == "strong") == (whole >= STRONG)
    assert (quality(index, found, its) == "weak") == (whole < FAIR)


def test_the_words_hold_in_a_catalog_of_tools_that_are_alike() -> None:
    """Three thousand tools of eighty servers. By the score alone, two of 23 strong results were wrong."""
    entries, requests = alike.made()
    assert len(entries) > 3_000
    assert len({entry.server for entry in entries}) == 80
    made = Searcher(local_table())
    made.index(entries, "1")
    found = list(alike.judged(made, requests))
    strong = [(request.text, place) for request, quality, place in found if quality == "strong"]
    right = [place == 0 for _, place in strong]
    assert len(strong) >= 25
    assert sum(right) >= 0.95 * len(right), [each for each in strong if each[1] != 0]
    answered = [(quality, place) for request, quality, place in found if request.right]
    by_word = {word: [place == 0 for each, place in answered if each == word] for word in ("fair", "weak")}
    assert sum(by_word["fair"]) / len(by_word["fair"]) > sum(by_word["weak"]) / len(by_word["weak"])
    unanswered = [quality for request, quality, _ in found if not request.right]
    assert "strong" not in unanswered
    assert unanswered.count("fair") <= 2
