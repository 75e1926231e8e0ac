"""An index that was kept answers as the one it was, or is none at all."""

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from helpers.search_tools import SPELLED, catalogs, filters, queries, scattered, searcher, table_of, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Searcher
from mcpzip.search.store import MAGIC, from_bytes


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("table")


ROWS = scattered([*SPELLED, "slack", "quokka"])
QUERIES = ("get user", "mesage zebra", "slack__send_message", "who", "天气", "messages of the git hub")


def same_answers(one: Searcher, other: Searcher, *asked: str, wanted: Filters | None = None) -> None:
    for query in (*asked, *QUERIES):
        assert one.search(query, 60, wanted or Filters()) == other.search(query, 60, wanted or Filters())


@given(st.lists(catalogs, min_size=1, max_size=4), queries, filters, st.booleans())
def test_what_was_kept_answers_as_it_did(
    directory: Path, story: list[list[Entry]], query: str, wanted: Filters, with_meaning: bool
) -> None:
    table = table_of(directory, ROWS) if with_meaning else None
    before = Searcher(table)
    for made in story:
        before.index(made, "1")
    after = Searcher(table)
    changed = after.index(reversed(story[-1]), "1", before.to_bytes())
    assert not changed
    same_answers(after, searcher(*story[-1], table=table), query, wanted=wanted)


@given(st.lists(catalogs, min_size=3, max_size=6), queries)
def test_and_goes_on_from_there(story: list[list[Entry]], query: str) -> None:
    kept = searcher(*story[0]).to_bytes()
    made = Searcher()
    for before, now in pairwise(story):
        made.index([*before, *now], "1", kept)
        made.index(now, "1")
        same_answers(made, searcher(*now), query)
        kept = made.to_bytes()


SOME = [
    tool("s", f"river_{number}", f"valley {number} of the {'forest ' * (number % 5)}") for number in range(30)
]


def test_tools_that_were_added_are_taken_in() -> None:
    made = Searcher()
    assert made.index(SOME, "1", searcher(*SOME[:20]).to_bytes())
    same_answers(made, searcher(*SOME), "river 25", "forest")


def test_tools_that_are_gone_are_gone() -> None:
    made = Searcher()
    made.index(SOME[:10], "1", searcher(*SOME).to_bytes())
    same_answers(made, searcher(*SOME[:10]), "river 25", "forest")


def test_one_kept_with_other_vectors_is_not_used(directory: Path, tmp_path: Path) -> None:
    old, new = table_of(directory, ROWS), table_of(tmp_path, scattered(reversed(SPELLED)))
    kept = searcher(*SOME, table=old).to_bytes()
    assert len(from_bytes(kept, SOME, old)) == len(SOME)
    assert len(from_bytes(kept, SOME, new)) == len(from_bytes(kept, SOME, None)) == 0


@pytest.mark.parametrize("exhaustive", [30, 8])
def test_vectors_and_their_clusters_are_kept(
    directory: Path, monkeypatch: pytest.MonkeyPatch, exhaustive: int
) -> None:
    monkeypatch.setattr("mcpzip.search.semantic.vectors.MAX_EXHAUSTIVE", exhaustive)
    table = table_of(directory, scattered([*SPELLED, *(f"river {number}" for number in range(30)), "forest"]))
    nameless = tool("s", "0x", "")  # without a vector
    made = [*SOME, nameless]
    before = searcher(*made, table=table)
    kept = before.to_bytes()
    after = Searcher(table)
    assert not after.index(made, "1", kept)
    index = after._catalog.index
    assert index.document_vectors is not None
    assert index.document_vectors[1].exhaustive == (exhaustive == 30)
    same_answers(after, before, "river 7 forest", "valley")
    assert after.to_bytes() == kept
    after.index(made[5:], "2")
    same_answers(after, searcher(*made[5:], table=table), "river 7 forest", "valley")


def test_a_document_is_decoded_when_it_is_asked_for() -> None:
    made = Searcher()
    made.index(SOME, "1", SAVED)
    documents = made._catalog.index.documents
    assert not documents._cache
    assert made.search("river 7", 1).hits[0].entry.tool == "river_7"
    assert 0 < len(documents._cache) <= len(SOME)


SAVED = searcher(*SOME).to_bytes()
damages = (
    st.builds(lambda size: SAVED[:size], st.integers(0, len(SAVED) - 1))
    | st.builds(
        lambda place, byte: SAVED[:place] + bytes([SAVED[place] ^ byte]) + SAVED[place + 1 :],
        st.integers(0, len(SAVED) - 1),
        st.integers(1, 255),
    )
    | st.builds(lambda data: SAVED + data, st.binary(min_size=1, max_size=20))
    | st.binary(max_size=40)
    | st.builds(lambda data: MAGIC + data, st.binary(max_size=40))
)


@given(damages)
def test_a_damaged_one_is_as_good_as_none(damaged: bytes) -> None:
    made = Searcher()
    assert made.index(SOME, "1", damaged)
    same_answers(made, searcher(*SOME), "river 7 forest")


def test_nothing_kept_is_nothing_lost() -> None:
    made = Searcher()
    assert made.index(SOME, "1", b"")
    assert not made.index(SOME, "2")
    empty = Searcher()
    empty.index([], "1", Searcher().to_bytes())
    assert len(empty) == 0


def test_the_same_tools_are_kept_as_the_same_bytes() -> None:
    shuffled = SOME[:]
    Random(3).shuffle(shuffled)
    assert len(searcher(*shuffled).to_bytes()) == len(SAVED)
    assert searcher(*SOME).to_bytes() == SAVED
