"""A server has so many rare words in the index, and no more: beyond them its tools are found by name."""

import random
from itertools import permutations
from pathlib import Path

import pytest
from helpers.search_tools import concepts, found, names, searcher, table_of, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Searcher, index, store
from mcpzip.search.analysis import Analyzer


@pytest.fixture(autouse=True)
def few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "INDEXED_WORDS", 14)


def flood(count: int, server: str = "evil") -> list[Entry]:
    """Tools of a name and four words each that no other has."""
    made = random.Random(7)
    return [
        tool(server, f"t{n:02}", " ".join("".join(made.choices("bcdfgklmnp", k=9)) for _ in range(4)))
        for n in range(count)
    ]


def test_tools_beyond_are_found_by_their_names_alone() -> None:
    tools = flood(9)
    made = searcher(*tools, tool("good", "pay", "Pay a bill with some wibbles of a frobnicator"))
    assert made.name_only_counts() == {"evil": 7}
    assert len(made) == 10
    assert found(made, tools[1].description) == ["evil__t01"]
    assert found(made, tools[2].description) == []
    assert found(made, "evil t07")[0] == "evil__t07"
    assert found(made, "evil__t08")[0] == "evil__t08"
    assert found(made, "frobnicator") == ["good__pay"]


def test_words_of_the_table_are_not_counted(tmp_path: Path) -> None:
    words = [word for entry in flood(9) for word in (entry.tool[1:], *entry.description.split())]
    made = searcher(*flood(9), table=table_of(tmp_path, concepts(" ".join([*words, "t", "evil"]))))
    assert made.name_only_counts() == {}


@given(st.lists(st.integers(0, 8), unique=True, max_size=9), st.lists(st.integers(0, 8), unique=True))
def test_which_they_are_does_not_depend_on_what_was_there_before(before: list[int], now: list[int]) -> None:
    tools = flood(9)
    grown = searcher(*(tools[n] for n in before))
    grown.index([tools[n] for n in now], "2")
    once = searcher(*(tools[n] for n in now))
    assert dict(grown.name_only_counts()) == dict(once.name_only_counts())
    for entry in tools:
        for query in (entry.description, entry.name, f"{entry.server} {entry.tool}"):
            assert grown.search(query, 9).hits == once.search(query, 9).hits


def test_nor_on_the_order_of_the_tools() -> None:
    tools = flood(4)
    assert len({tuple(names(searcher(*order).search("evil", 9))) for order in permutations(tools)}) == 1


def test_an_index_that_is_kept_knows_them() -> None:
    tools = flood(9)
    kept = searcher(*tools).to_bytes()
    again = Searcher()
    assert again.index(tools, "2", kept) is False
    assert again.name_only_counts() == {"evil": 7}
    assert again.not_indexed([*tools, tool("good", "pay")]) == [tool("good", "pay")]
    assert found(again, tools[2].description) == []
    assert store.from_bytes(kept, flood(8), None).numbers == {}


def test_who_stops_it_has_the_index_there_was() -> None:
    made = searcher(tool("good", "pay"))
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    assert made.index(flood(9), "2", stopped=stopped) is False
    assert asked < 9
    assert found(made, "pay") == ["good__pay"]


def test_a_name_of_very_many_words_is_taken_in_by_its_first() -> None:
    long = tool("evil", " ".join(f"w{n}" for n in range(200)))
    analysis = Analyzer(None).analyze(long, name_only=True)
    assert len(analysis.term_weights) <= 8
