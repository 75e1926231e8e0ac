"""The query cache: bounded, and never an answer that a fresh search would not have given."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Searcher
from mcpzip.search.cache import Key, QueryCache
from mcpzip.search.index import Index
from mcpzip.search.query import understand
from mcpzip.search.searcher import KEPT

WORDS = [
    "send",
    "delete",
    "list",
    "message",
    "messages",
    "slack",
    "mail",
    "a",
    "the",
    "who",
    "am",
    "git",
    "hub",
]
STRANGE = ["mesage", "slakc", "zebra", "quokka", "github", "messagelist", "天气", "天气预报", "!"]


def tool(server: str, name: str, description: str) -> Entry:
    hints = {"readOnlyHint": name.startswith("list")}
    return Entry.parse(
        server, json.dumps({"name": name, "description": description, "annotations": hints}).encode()
    )


def sentence(words: list[str], longest: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), max_size=longest).map(" ".join)


catalogs = st.lists(
    st.builds(
        tool,
        st.sampled_from(["slack", "mail", "git-hub"]),
        sentence(WORDS, 3).map(lambda text: text.replace(" ", "_") or "x"),
        sentence([*WORDS, "天气预报"], 5),
    ),
    max_size=7,
)
filters = st.builds(Filters, st.sampled_from([None, "slack", "mail"]), st.sampled_from([None, True, False]))
questions = st.tuples(sentence([*WORDS, *STRANGE], 5), st.integers(0, KEPT + 5), filters)


@settings(max_examples=200)
@given(catalogs, st.lists(questions, min_size=1, max_size=6))
def test_a_hit_equals_a_fresh_search(catalog: list[Entry], asked: list[tuple[str, int, Filters]]) -> None:
    kept = Searcher()
    kept.index(catalog, "1")
    for question in asked:
        fresh = Searcher()
        fresh.index(catalog, "1")
        assert kept.search(*question) == fresh.search(*question)


@given(catalogs, catalogs, sentence([*WORDS, *STRANGE], 4))
def test_a_new_catalog_is_asked_anew_whatever_its_version(
    before: list[Entry], after: list[Entry], query: str
) -> None:
    kept, fresh = Searcher(), Searcher()
    kept.index(before, "1")
    kept.search(query, 5)
    kept.index(after, "1")
    fresh.index(after, "1")
    assert kept.search(query, 5) == fresh.search(query, 5)


CATALOG = Index(
    [
        tool("slack", "send_message", "Send a message"),
        tool("slack", "delete_message", "Delete a message"),
        tool("slack", "who_am_i", "The user"),
    ]
)


def plan(query: str, wanted: Filters | None = None) -> object:
    return understand(query, wanted or Filters(), CATALOG).plan


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("slack send message", "send message slack"),
        ("send message", "Sending the messages, please!"),
        ("send mesage", "send messagge"),
        ("message zebra", "quokka message"),
        ("send send message", "send message"),
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
        ("send_message", "slack__send_message"),
    ],
)
def test_words_that_may_change_the_answer_do_not(left: str, right: str) -> None:
    assert plan(left) != plan(right)


def test_filters_are_part_of_the_key() -> None:
    plans = [plan("message", wanted) for wanted in (Filters(), Filters("slack"), Filters(read_only=True))]
    assert len(set(plans)) == 3


def key(query: str, version: str = "1", tiers: tuple[str, ...] = ("keyword",)) -> Key:
    return Key(understand(query, Filters(), CATALOG).plan, version, tiers)


def test_version_and_tiers_are_part_of_the_key() -> None:
    cache: QueryCache[str] = QueryCache()
    cache.put(key("message"), "answer")
    assert cache.get(key("messages")) == "answer"
    assert cache.get(key("message", version="2")) is None
    assert cache.get(key("message", tiers=("keyword", "semantic"))) is None


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
