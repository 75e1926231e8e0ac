"""The query cache: bounded, and never an answer that a fresh search would not have given."""

from typing import NamedTuple

import pytest
from helpers.search_tools import (
    SPELLED,
    catalogs,
    filters,
    index_of,
    queries,
    scattered,
    searcher,
    table_of,
    tool,
)
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters
from mcpzip.search.cache import Key, QueryCache
from mcpzip.search.query import analyze_query
from mcpzip.search.searcher import CACHED_HITS
from mcpzip.search.semantic.table import Table
from mcpzip.search.signals import NO_SIGNALS, Signals
from mcpzip.search.tiers import LLM, TierAnswer


class Recalled(NamedTuple):
    """A question, and by which of two signals it is moved."""

    query: str
    limit: int
    wanted: Filters
    moved: int


SIGNALS = (NO_SIGNALS, Signals(boosts={"slack": 2.0}, uses={"git__list": 3.0}, failing=frozenset({"git"})))
questions = st.builds(
    Recalled, queries, st.integers(0, CACHED_HITS + 5), filters, st.integers(0, len(SIGNALS) - 1)
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return table_of(tmp_path_factory.mktemp("table"), scattered([*SPELLED, "slack", "quokka", "zebra"]))


@given(catalogs, st.lists(questions, min_size=1, max_size=4), st.booleans())
def test_a_hit_equals_a_fresh_search(
    table: Table, catalog: list[Entry], asked: list[Recalled], with_meaning: bool
) -> None:
    kept = searcher(*catalog, table=table if with_meaning else None)
    for query, limit, wanted, moved in [*asked, *asked]:
        fresh = searcher(*catalog, table=table if with_meaning else None)
        assert kept.search(query, limit, wanted, signals=SIGNALS[moved]) == fresh.search(
            query, limit, wanted, signals=SIGNALS[moved]
        )


@given(catalogs, catalogs, queries)
def test_a_new_catalog_is_asked_anew_whatever_its_version(
    before: list[Entry], after: list[Entry], query: str
) -> None:
    kept = searcher(*before)
    kept.search(query, 5)
    kept.index(after, "1")
    assert kept.search(query, 5) == searcher(*after).search(query, 5)


@given(catalogs, queries)
def test_answers_of_other_tiers_are_neither_kept_nor_hidden_by_what_is(
    catalog: list[Entry], query: str
) -> None:
    kept, alone = searcher(*catalog), searcher(*catalog).search(query, 5)
    said = [TierAnswer(LLM, "gemini", {entry.name: 1.0 for entry in catalog[:1]})]
    assert kept.search(query, 5) == alone
    assert kept.search(query, 5, answers=said) == searcher(*catalog).search(query, 5, answers=said)
    assert kept.search(query, 5) == alone


CATALOG = index_of(
    tool("slack", "send_message", "Send a message"),
    tool("slack", "delete_message", "Delete a message"),
    tool("slack", "who_am_i", "The user"),
)


def plan(query: str, wanted: Filters | None = None) -> object:
    return analyze_query(query, wanted or Filters(), CATALOG).plan


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("send message", "Send, message?"),
        ("send mesage", "send messagge"),
        ("Send MESSAGE", "send-message"),
        ("sendMessage", "send\tmessage"),
    ],
)
def test_words_that_change_nothing_share_an_answer(left: str, right: str) -> None:
    assert plan(left) == plan(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("delete slack message", "send slack message"),  # two thirds of the words in common
        ("send message", "send message zebra"),
        ("send message", "send mesage"),
        ("user", "who user"),  # a stop word, but of a name
        ("message", "message -send"),
        ("message", "message server:slack"),
        ("send_message", "slack__send_message"),
    ],
)
def test_words_that_may_change_the_answer_do_not(left: str, right: str) -> None:
    assert plan(left) != plan(right)


def test_words_that_stand_in_no_tool_may_mean_something(table: Table) -> None:
    zebra, quokka = (
        analyze_query(query, Filters(), CATALOG, table).plan for query in ("message zebra", "message quokka")
    )
    assert zebra != quokka
    assert plan("message zebra") == plan("message quokka")  # where only words count, both say nothing


def test_filters_are_part_of_the_key() -> None:
    plans = [plan("message", wanted) for wanted in (Filters(), Filters("slack"), Filters(read_only=True))]
    assert len(set(plans)) == 3
    assert plan("message server:slack") == plan("message", Filters("slack"))


def key(query: str, version: str = "1", signals: Signals = NO_SIGNALS) -> Key:
    return Key(analyze_query(query, Filters(), CATALOG).plan, version, signals)


def test_version_and_signals_are_part_of_the_key() -> None:
    cache: QueryCache[str] = QueryCache()
    cache.put(key("message"), "answer")
    assert cache.get(key("MESSAGE!")) == "answer"
    assert cache.get(key("message", version="2")) is None
    assert cache.get(key("message", signals=Signals())) is None


def test_the_answer_unused_longest_goes_first() -> None:
    cache: QueryCache[int] = QueryCache(capacity=2)
    cache.put(key("send"), 1)
    cache.put(key("delete"), 2)
    assert cache.get(key("send")) == 1
    cache.put(key("message"), 3)
    assert [cache.get(key(query)) for query in ("send", "delete", "message")] == [1, None, 3]
    assert len(cache) == 2


def test_a_cache_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        QueryCache(capacity=0)
