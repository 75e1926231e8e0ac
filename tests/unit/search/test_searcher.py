"""Search as a whole: it never raises, never comes back empty-handed, and says how it did."""

import threading

import pytest
from helpers.search_tools import SPELLED, concepts, names, scattered, searcher, table_of, tool
from helpers.small_catalog import entries
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Searcher
from mcpzip.search.searcher import AT_ONCE
from mcpzip.search.semantic.table import Table

EVERYTHING = searcher(*entries())


@pytest.fixture(scope="module")
def dozen() -> Searcher:
    return EVERYTHING


def test_no_answer_says_why_and_what_is_near(dozen: Searcher) -> None:
    results = dozen.search("gothub xylophone", 5)
    assert (results.hits, results.quality) != ((), "none")  # "gothub" is one mistake from "github"
    results = dozen.search("slqqk xylophone", 5)
    assert (results.hits, results.matching, results.quality) == ((), 0, "none")
    assert results.unknown_words == ("slqqk", "xylophone")
    assert "slack" in results.nearest_words
    assert results.nearest_servers == ("slack",)


def test_a_server_that_is_not_there_is_answered_with_the_nearest(dozen: Searcher) -> None:
    results = dozen.search("send a message", 5, Filters(server="slak"))
    assert (results.hits, results.searched, results.quality) == ((), 0, "none")
    assert results.nearest_servers[0] == "slack"


@pytest.mark.parametrize("query", ["", "   ", "?!", "—", "\u0301", "\ud800"])
def test_a_query_without_words_finds_nothing_and_says_so(dozen: Searcher, query: str) -> None:
    results = dozen.search(query, 5)
    assert (results.hits, results.matching, results.quality) == ((), 0, "none")
    assert (results.unknown_words, results.nearest_words) == ((), ())
    assert results.nearest_servers == ()


@given(st.text() | st.text(st.sampled_from("aAsS_ 天é'1\u0301")), st.integers(-3, 80))
def test_no_query_raises(query: str, limit: int) -> None:
    results = EVERYTHING.search(query, limit)
    assert len(results.hits) == min(max(limit, 0), results.matching)
    assert (results.quality == "none") == (results.matching == 0) or results.needs
    assert EVERYTHING.search(query, limit) == results


@pytest.mark.parametrize("query", ["x" * 100_000, "send " * 50_000, "a b c " * 20_000, "天" * 50_000])
def test_a_very_long_query_is_read_so_far(dozen: Searcher, query: str) -> None:
    assert len(dozen.search(query, 3).unknown_words) <= 128


def test_nothing_indexed_is_nothing_found() -> None:
    empty = Searcher()
    results = empty.search("send a message", 5)
    assert (results.hits, results.searched, results.quality, results.nearest_servers) == ((), 0, "none", ())
    empty.index([], "2")
    assert empty.search("send a message", 5) == results


def test_one_tool_is_enough() -> None:
    alone = Searcher()
    alone.index([Entry.parse("clock", b'{"name":"now"}')], "1")
    assert names(alone.search("what is the time now", 5)) == ["clock__now"]
    assert alone.search("now", 5).quality == "strong"


def test_a_tool_without_any_word_is_found_by_its_name() -> None:
    odd = Searcher()
    odd.index([Entry.parse("s", b'{"name":"!!!"}'), Entry.parse("s", b'{"name":"???"}')], "1")
    assert names(odd.search("!!!", 5)) == ["s__!!!"]
    assert odd.search("", 5).hits == ()


def test_a_search_during_indexing_sees_one_catalog_whole() -> None:
    changing = Searcher()
    before, after = entries(), entries()[:6]
    changing.index(before, "1")
    seen: set[int] = set()
    done = threading.Event()

    def swap() -> None:
        for turn in range(20):
            changing.index(after if turn % 2 == 0 else before, str(turn))
        done.set()

    worker = threading.Thread(target=swap)
    worker.start()
    while not done.is_set():
        seen.add(changing.search("send message", 5).searched)
    worker.join()
    assert seen <= {len(before), len(after)}
    assert changing.search("send message", 5).searched == len(before)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return table_of(
        tmp_path_factory.mktemp("table"), concepts("ship deploy release", "city weather", "oauth login")
    )


@given(st.text() | st.text(st.sampled_from("aAsS_ 天é'1-\":\u0301")), st.integers(-3, 80))
def test_no_query_raises_where_meaning_counts(table: Table, query: str, limit: int) -> None:
    made = searcher(*entries()[:9], table=table)
    results = made.search(query, limit)
    assert len(results.hits) <= max(limit, 0)
    assert results.quality in ("strong", "fair", "weak", "none")
    assert made.search(query, limit) == results


def test_a_hit_says_why_it_is_there(dozen: Searcher) -> None:
    hit = dozen.search("send a telegram mesage", 1).hits[0]
    assert (hit.entry.name, hit.tier) == ("telegram__send_msg", "keyword")
    assert hit.matched == ("send", "telegram", "mesage")
    assert 0.5 < hit.words <= 1.0
    assert (hit.similarity, hit.moved, hit.need, hit.also) == (None, (), "", ())


def test_what_words_are_worth_is_told_by_field(dozen: Searcher) -> None:
    entry = next(entry for entry in entries() if entry.name == "slack__send_message")
    parts = dozen.by_field("send slack channel zebra", Filters(), entry)
    assert {"name", "server", "description", "parameters"} <= parts.keys()
    assert all(0 < share <= 1 for share in parts.values())
    assert sum(parts.values()) < 1
    assert parts["name"] > parts["parameters"]
    assert dozen.by_field("xylophone", Filters(), entry) == {}


def test_the_same_tool_on_several_servers_is_one_hit_with_a_note() -> None:
    twins = [
        tool(server, "fetch_page", "Fetch a page of the web") for server in ("web", "browser", "crawler")
    ]
    results = searcher(*twins, tool("web", "fetch_feed", "Fetch a feed")).search("fetch the page", 5)
    assert names(results) == ["browser__fetch_page", "web__fetch_feed"]
    assert results.hits[0].also == ("crawler__fetch_page", "web__fetch_page")
    assert results.matching == 4


def test_tools_that_only_look_the_same_stay_apart() -> None:
    schema = {"properties": {"path": {"type": "string"}}}
    made = searcher(
        tool("a", "read", "Read it"),
        tool("b", "read", "Read it", inputSchema=schema),
        tool("c", "read", "Read it, but well"),
        tool("d", "go"),
        tool("e", "go"),
    )
    assert set(names(made.search("read it", 9))) == {"a__read", "b__read", "c__read"}
    assert set(names(made.search("go", 9))) == {"d__go", "e__go"}


def test_a_twin_that_is_named_with_its_server_comes_first() -> None:
    twins = [tool(server, "fetch_page", "Fetch a page of the web") for server in ("web", "browser")]
    hit = searcher(*twins).search("web__fetch_page", 5).hits[0]
    assert (hit.entry.name, hit.also) == ("web__fetch_page", ("browser__fetch_page",))


def test_the_limit_is_of_tools_told_apart() -> None:
    twins = [tool(f"s{number:02}", "fetch_page", "Fetch a page") for number in range(60)]
    results = searcher(*twins, tool("web", "fetch_feed", "Fetch a feed")).search("fetch the page", 2)
    assert names(results) == ["s00__fetch_page", "web__fetch_feed"]


@pytest.mark.parametrize("count", [6, 100])
def test_who_names_many_tools_after_a_request_hides_nobody(count: int) -> None:
    """Six of them filled the answer, and nothing said that there was another."""
    greedy = [tool("evil", f"send_message_{number}", "Send a message") for number in range(count)]
    made = searcher(*greedy, tool("slack", "send_message", "Send a message"), tool("disk", "read_file"))
    results = made.search("send a message", 5)
    shown = {hit.entry.server for hit in results.hits}
    assert shown == {"evil", "slack"} or results.elsewhere == ("slack",)
    assert made.search("send a message", 5, Filters(server="evil")).elsewhere == ()
    assert made.search("read a file", 5).elsewhere == ()


def test_several_needs_or_servers_among_the_hits_say_nothing_of_others(dozen: Searcher) -> None:
    for query in ("send", "slack", "weather in a city", "release", "list files and send a message"):
        results = dozen.search(query, 5)
        servers = {hit.entry.server for hit in results.hits}
        assert not servers & set(results.elsewhere)
        assert not results.elsewhere or len(servers) == 1


def test_tiers_are_those_that_answered(table: Table) -> None:
    assert searcher(*entries()).search("release", 1).tiers == ("keyword",)
    assert searcher(*entries(), table=table).search("release", 1).tiers == ("keyword", "semantic")


def test_a_threshold_holds_for_the_table_too(table: Table) -> None:
    made = Searcher(table, threshold=0.9)
    made.index(entries(), "1")
    loose = searcher(*entries(), table=table)
    assert len(made.search("ship", 50).hits) < len(loose.search("ship", 50).hits)
    assert "ops__deploy_release" in names(loose.search("ship", 50))


def test_the_number_of_tools_is_told(dozen: Searcher) -> None:
    assert len(dozen) == len(entries())
    assert len(Searcher()) == 0


@pytest.fixture(scope="module")
def known_words(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return table_of(tmp_path_factory.mktemp("table"), scattered(SPELLED))


def many_tools(count: int) -> list[Entry]:
    return [
        tool("s", f"{SPELLED[number % len(SPELLED)]}_{number}", f"{SPELLED[number * 7 % len(SPELLED)]}")
        for number in range(count)
    ]


def test_words_are_indexed_first_and_meaning_when_it_is_ready(known_words: Table) -> None:
    entries = many_tools(AT_ONCE + 60)
    whole, steps = Searcher(known_words), Searcher(known_words)
    whole.index(entries, "1")
    assert steps.index(entries, "1", words_first=True)
    assert steps.pending == len(entries)
    assert steps.to_bytes() == b""
    results = steps.search("get user", 5)
    assert results.tiers == ("keyword",)
    assert [absence.tier for absence in results.absent] == ["semantic"]
    assert f"{len(entries)} tools" in results.absent[0].reason
    assert results.hits == searcher(*entries).search("get user", 5).hits
    seen = []
    while steps.pending:
        steps.add_meaning(50)
        seen.append(steps.search("get user", 5).tiers)
    assert seen == [("keyword",)] * 2 + [("keyword", "semantic")] * 2
    for query in ("get user", "delete message", "zebra", "s__get_0"):
        assert steps.search(query, 50) == whole.search(query, 50)
    assert steps.to_bytes() == whole.to_bytes()


def test_few_new_tools_are_indexed_at_once(known_words: Table) -> None:
    made = Searcher(known_words)
    made.index(many_tools(AT_ONCE), "1", words_first=True)
    assert made.pending == 0
    assert made.search("get user", 5).tiers == ("keyword", "semantic")


def test_indexing_meaning_can_be_stopped(known_words: Table) -> None:
    made = Searcher(known_words)
    entries = many_tools(AT_ONCE + 1)
    made.index(entries, "1", words_first=True)
    made.add_meaning(50, stopped=lambda: True)
    assert made.pending == len(entries)


def test_tools_that_change_meanwhile_keep_what_is_known_of_the_others(known_words: Table) -> None:
    entries = many_tools(2 * AT_ONCE)
    made = Searcher(known_words)
    made.index(entries, "1", words_first=True)
    made.add_meaning(AT_ONCE)
    made.index([*entries[5:], tool("s", "new_one", "message")], "2", words_first=True)
    assert 0 < made.pending <= AT_ONCE
    made.add_meaning(1_000)
    whole = searcher(*entries[5:], tool("s", "new_one", "message"), table=known_words)
    assert made.search("get the message", 30) == whole.search("get the message", 30)
    made.forget()
    assert made.search("get the message", 30) == whole.search("get the message", 30)


def test_without_a_table_nothing_is_pending() -> None:
    made = Searcher()
    made.index(many_tools(AT_ONCE + 1), "1", words_first=True)
    assert made.pending == 0
    assert made.search("get user", 5).absent == ()
