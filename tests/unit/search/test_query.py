"""A query, understood: every word of it leads somewhere, or is said to lead nowhere."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.search_tools import (
    catalogs,
    concepts,
    filters,
    found,
    index_of,
    queries,
    searcher,
    table_of,
    tool,
)
from hypothesis import example, given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters
from mcpzip.search.english_words import EnglishWords
from mcpzip.search.index import Index
from mcpzip.search.query import (
    CORRECTED_WEIGHT,
    MAX_WORDS,
    RELATED_WEIGHT,
    TRANSLATED_WEIGHT,
    QueryAnalysis,
    analyze_query,
    matching_servers,
    parse_truncated,
)
from mcpzip.search.query_syntax import parse_query
from mcpzip.search.tokenizer import STOP_WORDS, content_words, fold, is_bigram, words

KNOWN = index_of(
    tool("slack", "send_message", "Send a message to a channel"),
    tool("slack", "delete_message", "Delete a message"),
    tool("identity", "who_am_i", "The user"),
    tool("calendar", "list_events", "Upcoming events"),
    tool("files", "read_file", "Read a file", annotations={"readOnlyHint": True}),
    tool("todo", "add", "To a todo list"),
)


def said(query: str, index: Index = KNOWN, wanted: Filters | None = None) -> QueryAnalysis:
    return analyze_query(query, wanted or Filters(), index)


def meant(query: str, index: Index = KNOWN) -> dict[str, float]:
    """The terms a query leads to, and what each counts for."""
    spelled = {number: term for term, number in index.terms.items()}
    return {spelled[term]: group.weight for group in said(query, index).plan.groups for term in group.terms}


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("send a message", {"send": 1.0, "messag": 1.0}),
        ("sending messages", {"send": 1.0, "messag": 1.0}),
        ("mesage", {"messag": CORRECTED_WEIGHT}),
        ("todolist", {"todo": CORRECTED_WEIGHT, "list": CORRECTED_WEIGHT}),
        ("Nachricht", {"messag": TRANSLATED_WEIGHT}),
        ("datei lesen", {"file": TRANSLATED_WEIGHT, "read": TRANSLATED_WEIGHT}),
        ("文件", {"file": TRANSLATED_WEIGHT}),
        ("xylophone", {}),
        ("", {}),
    ],
)
def test_words_lead_to_terms(query: str, terms: dict[str, float]) -> None:
    assert meant(query) == terms


def test_a_verb_that_stands_nowhere_leads_to_its_family() -> None:
    assert meant("remove") == {"delet": RELATED_WEIGHT}
    assert meant("browse") == {"list": RELATED_WEIGHT}


@pytest.mark.parametrize(
    ("query", "unknown", "corrected"),
    [
        ("send xylophone", ("xylophone",), ()),
        ("zebra mesage quokka", ("zebra", "quokka"), (("mesage", "message"),)),
        ("todolist", (), (("todolist", "todo list"),)),
        ("calender evnts", (), (("calender", "calendar"), ("evnts", "events"))),
        ("send the message", (), ()),
    ],
)
def test_what_is_told_of_words(
    query: str, unknown: tuple[str, ...], corrected: tuple[tuple[str, str], ...]
) -> None:
    assert (said(query).unknown, said(query).corrected) == (unknown, corrected)


def test_both_parts_of_a_joined_word_lead_to_it() -> None:
    understood = analyze_query(
        "time zone", Filters(None, None), index_of(tool("time", "timezone", "messages"))
    )
    assert ("time", "zone") in [said_as for _, said_as in understood.words]
    assert understood.unknown == ()


@given(catalogs, queries, filters)
@example([], "github git hub", Filters())
@example([tool("slack", "who", "github message")], "git hub hub", Filters())
@example([tool("slack", "who", "github message")], "git hub github", Filters())
def test_every_word_leads_somewhere_or_is_said_to_be_unknown(
    made: list[Entry], query: str, wanted: Filters
) -> None:
    understood = analyze_query(query, wanted, index_of(*made))
    led = {word for _, said_as in understood.words for word in said_as}
    unknown = {word for each in understood.unknown for word in each.split()}
    for word, _ in content_words(words(parse_query(query).text))[:MAX_WORDS]:
        if word.isascii():
            assert word in led or word in unknown or word in dict(understood.corrected)
    assert led.isdisjoint(understood.unknown)
    assert understood.plan.unknown == len(understood.unknown)
    assert set(understood.plan.groups) == {group for group, _ in understood.words}


@given(catalogs, queries)
def test_a_plan_is_the_same_again(made: list[Entry], query: str) -> None:
    index = index_of(*made)
    assert analyze_query(query, Filters(), index) == analyze_query(query, Filters(), index)
    assert hash(analyze_query(query, Filters(), index).plan) == hash(
        analyze_query(query, Filters(), index).plan
    )


@given(st.text() | st.text(st.sampled_from("aAsS_ 天é'1-\":\u0301\ud800")), filters)
def test_never_raises(query: str, wanted: Filters) -> None:
    assert len(analyze_query(query, wanted, KNOWN).plan.groups) >= 0
    assert analyze_query(query, wanted, Index()).plan.groups == ()


def test_a_document_is_read_so_far() -> None:
    understood = said(" ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(500)))
    assert len(understood.unknown) <= 2 * MAX_WORDS


def test_a_bigram_that_stands_nowhere_is_no_unknown_word() -> None:
    index = index_of(tool("tianqi", "查询天气", "按城市查询天气预报"))
    assert is_bigram("气查")
    assert said("天气查询", index).unknown == ()
    assert said("天气预报", index).unknown == ()


def test_a_word_with_a_meaning_of_its_own_keeps_it_when_repaired(tmp_path: Path) -> None:
    table = table_of(tmp_path, concepts("massage"))
    understood = analyze_query("massage mesage", Filters(), KNOWN, EnglishWords(table))
    assert understood.plan.embedding_words == ("massage", "message")


def test_stop_words_count_only_in_names() -> None:
    assert said("who is the user").plan.stop_word_terms
    assert not said("the user").plan.stop_word_terms
    assert found(searcher(tool("a", "who_am_i"), tool("b", "users")), "who am I")[0] == "a__who_am_i"


# Filters.


def test_filters() -> None:
    made = searcher(
        tool("a", "read_file", annotations={"readOnlyHint": True}),
        tool("a", "write_file"),
        tool("b", "read_file", annotations={"readOnlyHint": True}),
    )
    assert found(made, "file", filters=Filters(server="a")) == ["a__read_file", "a__write_file"]
    assert found(made, "file", filters=Filters(read_only=True)) == ["a__read_file", "b__read_file"]
    assert found(made, "file", filters=Filters(read_only=False)) == ["a__write_file"]
    assert found(made, "a__read_file", filters=Filters(server="b")) == ["b__read_file"]
    assert found(made, "a__write_file", filters=Filters(read_only=True))[0] == "a__read_file"
    assert made.search("file", 9, Filters(server="a", read_only=True)).searched == 1


@given(
    st.lists(
        st.builds(
            lambda server, name, text, reads: tool(
                server, name, f"{text} of {server}", annotations={"readOnlyHint": reads}
            ),
            st.sampled_from(["git", "slack"]),
            st.sampled_from(["get_user", "list_users", "send_message", "user_file"]),
            st.sampled_from(["users", "messages and files", "the id"]),
            st.booleans(),
        ),
        max_size=8,
        unique_by=lambda entry: entry.name,
    ),
    queries,
    st.sampled_from([None, "git", "slack", "nowhere"]),
    st.sampled_from([None, True, False]),
)
def test_filters_leave_the_rest_in_order(
    made: list[Entry], query: str, server: str | None, read_only: bool | None
) -> None:
    known = searcher(*made)
    wanted = Filters(server, read_only)
    left = [
        hit
        for hit in known.search(query, 50).hits
        if (server is None or hit.entry.server == server)
        and (read_only is None or hit.entry.read_only == read_only)
    ]
    assert list(known.search(query, 50, wanted).hits) == left


def test_a_server_is_meant_by_its_name_or_a_word_of_it() -> None:
    index = index_of(tool("mail-box", "a"), tool("Mail", "b"), tool("my_calendar", "c"))

    def servers(name: str) -> tuple[str, ...] | None:
        return said("x", index, Filters(server=name)).plan.servers

    assert servers("Mail") == ("Mail",)
    assert servers("mail") == ("Mail",)
    assert servers("calendar") == ("my_calendar",)
    assert servers("box") == ("mail-box",)
    assert servers("fax") == ()
    assert said("x server:Mail server:box", index).plan.servers == ("Mail", "mail-box")
    assert said("x server:Mail", index, Filters(server="mail-box")).plan.servers == ()
    assert said("x", index).plan.servers is None


def test_a_query_is_cut_after_it_has_grown_too() -> None:
    """A query of 60 KB became 360,000 characters to look up, 18 for each of its own."""
    assert len(fold(parse_truncated("\ufdfa" * 20_000).text)) <= 20_000
    assert parse_truncated("a" * 20_001).text == "a" * 20_000


NAMES = [
    ["sqlite"],
    ["sqlite", "explorer"],
    ["duckdb", "tools"],
    ["foo", "bar"],
    ["foobar"],
    ["github"],
    ["acme", "base", "2"],
]
SPELLINGS = [
    "-".join,
    "_".join,
    " ".join,
    "".join,
    lambda parts: "".join(parts).upper(),
    lambda parts: "-".join(parts).upper(),
    lambda parts: "".join(part.capitalize() for part in parts),
    lambda parts: " ".join(part.capitalize() for part in parts),
]


@pytest.mark.parametrize("parts", NAMES, ids="-".join)
@pytest.mark.parametrize("named", ["-".join, "_".join, "".join])
def test_every_spelling_of_a_servers_name_means_the_same(
    parts: list[str], named: Callable[[list[str]], str]
) -> None:
    index = index_of(tool(named(parts), "list_rows", "Lists rows."), tool("other", "list_tables", "Tables."))
    plans = {spell(parts): said(f"list rows in {spell(parts)}", index).plan for spell in SPELLINGS}
    assert len(set(plans.values())) == 1, plans
    assert {spell(parts): matching_servers(["other", named(parts)], spell(parts)) for spell in SPELLINGS} == {
        spell(parts): [named(parts)] for spell in SPELLINGS
    }


PRODUCTS = {
    "github": ["GitHub", "Github", "GITHUB", "git-hub", "git hub", "Git Hub"],
    "sqlite": ["SQLite", "Sqlite", "SQLITE", "sq-lite"],
    "mysql": ["MySQL", "MySql", "MYSQL", "my-sql"],
    "youtube": ["YouTube", "Youtube", "you-tube"],
    "postgresql": ["PostgreSQL", "Postgresql", "POSTGRESQL", "postgre-sql"],
    "duckduckgo": ["DuckDuckGo", "duck-duck-go", "duck duck go"],
    "openstreetmap": ["OpenStreetMap", "open street map", "open-street-map"],
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_every_spelling_of_a_product_means_the_same(product: str) -> None:
    for catalog in (
        index_of(tool("a", "search", f"Searches {product}."), tool("b", "search", "Searches files.")),
        index_of(*(tool(f"a{n}", "search", f"Searches {each}.") for n, each in enumerate(PRODUCTS[product]))),
    ):
        plan = said(f"search {product}", catalog).plan
        assert len(plan.groups) == 2
        for spelling in PRODUCTS[product]:
            assert said(f"search {spelling}", catalog).plan == plan, spelling


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("click up to ten links", {"click", "ten", "link"}),  # not ClickUp
        ("read me the notes", {"read", "note"}),  # not ReadMe
        ("get to the data set", {"get", "data", "set"}),  # a stop word is no part of a server's name
    ],
)
def test_words_that_could_be_a_name_keep_their_meaning(query: str, terms: set[str]) -> None:
    known = index_of(
        tool("tasks", "read", "Clicks ten links, reads notes, gets data and a set."),
        tool("getto", "use", "Uses it."),
    )
    plan = said(query, known).plan
    assert {known.term_id(term) for term in terms} <= {term for group in plan.groups for term in group.terms}


def test_a_servers_name_means_the_same_where_tools_have_it_as_one_word() -> None:
    known = index_of(tool("data-set", "list", "Lists."), tool("b", "read", "Reads a dataset."))
    plan = said("dataset", known).plan
    assert [group.terms for group in plan.groups if group.counted] == [(known.term_id("dataset"),)]
    assert {plan} == {said(spelled, known).plan for spelled in ("data-set", "data set", "DataSet", "DATASET")}


SHORT = {
    "mongodb": ["mongo", "Mongo", "MongoDB", "mongo db", "mongo-db"],
    "postgresql": ["postgres", "Postgres", "PostgreSQL", "PostGreSQL", "postgre-sql"],
    "kubernetes": ["k8s", "K8s", "K8S", "Kubernetes"],
}


@pytest.mark.parametrize("product", SHORT)
def test_a_products_short_name_means_the_same(tmp_path: Path, product: str) -> None:
    table = EnglishWords(table_of(tmp_path, concepts(product, f"{SHORT[product][0]} shell", "list")))
    for server in (product, SHORT[product][0], f"{SHORT[product][0]}-tools", "other"):
        known = index_of(
            tool(server, "list", "Lists."),
            tool("b", "list", f"Lists {product}."),
            tool("c", "read", "Reads."),
        )
        plan = analyze_query(f"list {product}", Filters(), known, table).plan
        for spelling in SHORT[product]:
            assert analyze_query(f"list {spelling}", Filters(), known, table).plan == plan, (server, spelling)


# Verbs and what joins them are left out: they separate needs.
parts_of_names = st.lists(
    st.sampled_from(["acme", "note", "my", "lite", "db", "sq", "base", "hub", "git", "to", "o", "2"]),
    min_size=1,
    max_size=4,
)


@given(
    st.lists(parts_of_names, min_size=1, max_size=4),
    st.lists(st.sampled_from(["rows", "notes", "database", "acmenote", "Acme", "hub"]), max_size=4),
    st.lists(st.sampled_from(["rows", "list", "a", "user"]), max_size=2),
    st.sampled_from(["-".join, "_".join, "".join, " ".join]),
)
def test_every_spelling_of_any_servers_name_ranks_the_same(
    servers: list[list[str]], described: list[str], rest: list[str], named: Callable[[list[str]], str]
) -> None:
    """Written as one string, in any case and with any separators, and in separate words too unless a stop
    word is among them ("get to" is not the server getto).
    """
    made = {
        named(parts): tool(named(parts), f"list_{n}", " ".join(described)) for n, parts in enumerate(servers)
    }
    known = searcher(*made.values(), tool("other", "list_rows", "Lists rows of an acme note."))
    for parts in servers:
        spelled = {spell(parts) for spell in SPELLINGS}
        if not STOP_WORDS.isdisjoint(parts):
            spelled = {each for each in spelled if " " not in each}
        rankings = {
            each: [(hit.entry.name, hit.score) for hit in known.search(" ".join([*rest, each]), 20).hits]
            for each in spelled
        }
        assert len({tuple(ranking) for ranking in rankings.values()}) == 1, rankings
