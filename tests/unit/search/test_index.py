"""An index answers by the set of its tools alone: not by their order, nor by how it came to be."""

from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from helpers.search_tools import (
    SPELLED,
    catalogs,
    filters,
    found,
    index_of,
    names,
    queries,
    scattered,
    searcher,
    table_of,
    tool,
    tools,
)
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Searcher
from mcpzip.search.analysis import Analysis, Analyzer
from mcpzip.search.fusion import rank
from mcpzip.search.index import MAX_UNPACKED, Index
from mcpzip.search.query import analyze_query
from mcpzip.search.semantic.table import Table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return table_of(tmp_path_factory.mktemp("table"), scattered([*SPELLED, "slack", "quokka", "get user"]))


def same_answers(one: Searcher, other: Searcher, query: str, wanted: Filters) -> None:
    for asked in (query, "get user", "mesage zebra", "slack__send_message", "who"):
        assert one.search(asked, 60, wanted) == other.search(asked, 60, wanted)


@given(catalogs, queries, filters, st.randoms())
def test_the_order_of_the_catalog_does_not_matter(
    table: Table, made: list[Entry], query: str, wanted: Filters, random: Random
) -> None:
    shuffled = made[:]
    random.shuffle(shuffled)
    for with_meaning in (None, table):
        one, other = searcher(*made, table=with_meaning), searcher(*shuffled, table=with_meaning)
        same_answers(one, other, query, wanted)


def test_nor_does_it_move_the_last_bit_of_a_score() -> None:
    # Five terms, of which two pairs are equally frequent: what is added up in another order is another sum.
    texts = ["alpha beta gamma", "alpha delta one", "beta delta two", "gamma three four"]
    made = [tool("s", f"t{n}", text) for n, text in enumerate([*texts, "epsilon alpha beta gamma x y"])]
    answers = {
        searcher(*order).search("alpha beta gamma delta epsilon", 9).hits for order in permutations(made)
    }
    assert len(answers) == 1


@given(st.lists(catalogs, min_size=1, max_size=8), queries, filters)
def test_an_index_that_grew_answers_as_one_built_at_once(
    table: Table, story: list[list[Entry]], query: str, wanted: Filters
) -> None:
    grown = Searcher(table)
    for made in story:
        grown.index(made, "1")
        same_answers(grown, searcher(*made, table=table), query, wanted)


steps = st.lists(st.tuples(st.integers(0, 11), tools), max_size=40)


@given(steps, queries)
def test_so_does_one_that_changed_tool_by_tool(
    table: Table, steps: list[tuple[int, Entry]], query: str
) -> None:
    held: dict[int, Entry] = {}
    grown = Searcher(table)
    for place, entry in steps:
        if place in held and held[place] == entry:
            del held[place]
        else:
            # A catalog has no two tools of one name.
            held = {other: each for other, each in held.items() if each.name != entry.name}
            held[place] = entry
        grown.index(held.values(), "1")
    same_answers(grown, searcher(*held.values(), table=table), query, Filters())


def story_of_changes(count: int) -> tuple[Index, list[Entry]]:
    """An index after ``count`` changes of one tool each, and its tools."""
    analyst, held = Analyzer(None), [tool("s", f"river_{number}", "a valley") for number in range(20)]
    index = Index().updated(held, analyst)
    for turn in range(count):
        held[turn % 7] = tool("s", f"river_{turn % 7}", f"a valley, changed {'again ' * (turn % 3)}w{turn}")
        index = index.updated(held, analyst)
    return index, held


def test_what_is_loose_is_packed_before_it_is_much() -> None:
    for count in range(60):
        index, held = story_of_changes(count)
        assert len(index) == len(held)
        assert len(index.documents) <= (1 + MAX_UNPACKED) * len(held)
    _, rebuilt = story_of_changes(59)
    for query in ("valley", "river 3", "again changed", "w58", "w3", "rivers valleys w57"):
        plans = [analyze_query(query, Filters(), made) for made in (index, index_of(*rebuilt))]
        one, other = (
            [
                (index_.document(each.document).name, each.score)
                for each in rank(index_, said.plan, 50).documents
            ]
            for index_, said in zip((index, index_of(*rebuilt)), plans, strict=True)
        )
        assert one == other
        assert plans[0].unknown == plans[1].unknown
        assert plans[0].corrected == plans[1].corrected


def test_a_repair_follows_what_is_there() -> None:
    calendar, colander = tool("s", "calendar"), tool("s", "colander")
    made = searcher(calendar)
    assert made.search("calander", 5).corrected == (("calander", "calendar"),)
    made.index([calendar, colander], "2")
    assert made.search("colandre", 5).corrected == (("colandre", "colander"),)
    made.index([colander], "3")
    assert made.search("calander", 5).corrected == (("calander", "colander"),)
    made.index([tool("s", "kettle")], "4")
    assert made.search("calander", 5).unknown_words == ("calander",)
    made.index([calendar], "5")
    assert found(made, "calander") == ["s__calendar"]


def test_a_word_stays_as_long_as_one_tool_has_it() -> None:
    made = searcher(tool("s", "a1", "a teapot"), tool("s", "a2", "two teapots"), tool("s", "b", "kettle"))
    made.index([tool("s", "a2", "two teapots"), tool("s", "b", "kettle")], "2")
    assert found(made, "teapot") == ["s__a2"]
    assert made.search("teepots", 5).corrected == (("teepots", "teapots"),)


class Counting(Analyzer):
    """Counts what is analysed."""

    def __init__(self) -> None:
        super().__init__(None)
        self.seen: list[str] = []

    def analyze(self, entry: Entry, *, with_vector: bool = True, name_only: bool = False) -> Analysis:
        self.seen.append(entry.tool)
        return super().analyze(entry, with_vector=with_vector, name_only=name_only)


def test_only_what_is_new_or_gone_is_work() -> None:
    analyst = Counting()
    held = [tool("s", f"tool{number}") for number in range(50)]
    index = Index().updated(held, analyst)
    assert len(analyst.seen) == 50
    analyst.seen.clear()
    assert index.updated(reversed(held), analyst) is index
    assert analyst.seen == []
    index = index.updated([*held[1:], tool("s", "tool0", "changed"), tool("s", "new")], analyst)
    assert sorted(analyst.seen) == ["new", "tool0", "tool0"]
    assert len(index) == 51


@given(catalogs, catalogs, queries)
def test_an_index_never_changes(before: list[Entry], after: list[Entry], query: str) -> None:
    analyst = Analyzer(None)
    index = Index().updated(before, analyst)
    plan = analyze_query(query, Filters(), index).plan
    ranking = rank(index, plan, 50)
    index.updated(after, analyst)
    index.updated([*before, *after], analyst)
    assert analyze_query(query, Filters(), index).plan == plan
    assert rank(index, plan, 50) == ranking


def test_the_same_text_of_two_servers_is_two_tools() -> None:
    made = index_of(tool("a", "x"), tool("b", "x"), tool("b", "x"))
    assert len(made) == 2


def test_a_changed_description_is_a_changed_tool() -> None:
    made = searcher(tool("s", "t", "about rivers"))
    made.index([tool("s", "t", "about valleys")], "2")
    assert found(made, "river") == []
    results = made.search("valley", 5)
    assert names(results) == ["s__t"]
    assert results.hits[0].entry.description == "about valleys"


@pytest.mark.parametrize("server", ["", "-", "日本"])
def test_no_server_is_too_odd(server: str, tmp_path: Path) -> None:
    made = searcher(tool(server, "tea", "pot"), table=table_of(tmp_path, scattered(["tea"])))
    assert names(made.search("tea", 5)) == [f"{server}__tea"]
