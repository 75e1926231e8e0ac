"""What people ask: the documented examples, on a dozen servers by words alone, and on thirty by all."""

import pytest
from helpers import search_catalog
from helpers.search_tools import names
from helpers.search_tools import searcher as searcher_of
from helpers.small_catalog import SERVERS, entries

from mcpzip.search import Filters, Searcher
from mcpzip.search.semantic import local_table


@pytest.fixture(scope="module")
def searcher() -> Searcher:
    return searcher_of(*entries())


@pytest.fixture(scope="module")
def thirty() -> Searcher:
    return searcher_of(*search_catalog.entries(), table=local_table())


EXAMPLES = [
    ("send message slack", "slack__send_message"),
    ("help me manage my todo list", "todoist__get_tasks"),
    ("post something to the team", "slack__send_message"),
    ("check my upcoming meetings", "google-calendar__list_events"),
]


@pytest.mark.parametrize(("query", "name"), EXAMPLES)
def test_documented_examples_among_thirty_servers(thirty: Searcher, query: str, name: str) -> None:
    assert name in names(thirty.search(query, 3))


@pytest.mark.parametrize(("query", "name"), EXAMPLES)
def test_the_best_of_an_example_is_no_tool_of_a_server_that_has_nothing_to_do_with_it(
    thirty: Searcher, query: str, name: str
) -> None:
    servers = {"slack", "gmail", "discord"} if name.startswith("slack") else {name.split("__")[0]}
    assert thirty.search(query, 1).hits[0].entry.server in servers


def test_the_documented_searches_of_one_thing_name_its_server(thirty: Searcher) -> None:
    hits = thirty.search("help me manage my todo list", 2).hits
    assert {hit.entry.server for hit in hits} == {"todoist"}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("send message slack", "slack__send_message"),
        ("slack send message", "slack__send_message"),
        ("help me manage my todo list", "todoist__get_tasks"),
        ("check my upcoming meetings", "google-calendar__ListEvents"),
        ("send a telegram", "telegram__send_msg"),
        ("create a task", "todoist__create_task"),
    ],
)
def test_documented_examples_by_words_alone(searcher: Searcher, query: str, name: str) -> None:
    assert names(searcher.search(query, 3))[0] == name


# The ways keyword search is known to fail, each answered.


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("How do I install dependencies?", "packages__install_dependencies"),
        ("deploying applications", "ops__deploy_release"),
        ("tests run", "workflow__runTestSuite.fast"),
        ("logged lines", "ops__tail_log"),
        ("What tools help with debugging?", "ops__debug-pod"),
    ],
)
def test_a_word_need_not_be_written_as_it_stands_there(searcher: Searcher, query: str, name: str) -> None:
    assert names(searcher.search(query, 1)) == [name]


def test_a_part_of_another_word_is_no_match(searcher: Searcher) -> None:
    # "ask" stands in "task", "age" in "message", "a" nearly everywhere.
    results = searcher.search("a ask age mail", 10)
    assert results.unknown_words == ("ask", "age")
    assert {hit.matched for hit in results.hits} == {("mail",)}


def test_scores_are_finer_than_three_bins(searcher: Searcher) -> None:
    scores = [hit.score for hit in searcher.search("send a message to the slack channel", 10).hits]
    assert len(set(scores)) > 3


def test_not_all_words_need_be_there(searcher: Searcher) -> None:
    results = searcher.search("state management architecture machine", 5)
    assert names(results)[0] == "workflow__start_state_machine"
    assert results.unknown_words == ("management", "architecture")


def test_the_order_is_not_arbitrary(searcher: Searcher) -> None:
    again = Searcher()
    again.index(reversed(entries()), "1")
    for query in ("list", "user", "send message", "query city"):
        assert searcher.search(query, 20) == again.search(query, 20)


def test_tools_of_every_kind_of_name_can_be_found(searcher: Searcher) -> None:
    assert [entry.name for entry in entries() if names(searcher.search(entry.name, 1)) != [entry.name]] == []


@pytest.mark.parametrize(
    "query", ["state_machine", "StateMachine", "state machine", "state-machine", "STATE MACHINE"]
)
def test_splitting_is_not_naive(searcher: Searcher, query: str) -> None:
    assert names(searcher.search(query, 1)) == ["workflow__start_state_machine"]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("http server", "github__HTTPServerStatus"),
        ("oauth", "identity__OAuth2Token"),
        ("get updates", "telegram__getUpdates"),
        ("test suite", "workflow__runTestSuite.fast"),
        ("who am I", "identity__who_am_i"),
        ("天气", "tianqi__查询天气"),
        ("空气", "tianqi__空气质量"),
        ("webp", "images__convert"),
        ("height", "images__resize"),
    ],
)
def test_words_inside_names_values_and_other_scripts(searcher: Searcher, query: str, name: str) -> None:
    assert names(searcher.search(query, 1)) == [name]


@pytest.mark.parametrize(
    ("query", "correction", "name"),
    [
        ("How do I authentificate users?", ("authentificate", "authenticate"), "identity__authenticate_user"),
        ("slakc message", ("slakc", "slack"), "slack__send_message"),
        ("list comits", ("comits", "commits"), "github__list_commits"),
        ("calender events", ("calender", "calendar"), "google-calendar__ListEvents"),
        ("todolist", ("todolist", "todo list"), "todoist__get_tasks"),
        ("repo issue", None, "github__create_issue"),
    ],
)
def test_a_misspelling_is_repaired_and_said(
    searcher: Searcher, query: str, correction: tuple[str, str] | None, name: str
) -> None:
    results = searcher.search(query, 3)
    assert results.corrected == ((correction,) if correction else ())
    assert name in names(results)


def test_a_known_word_is_left_alone(searcher: Searcher) -> None:
    assert searcher.search("message tasks pod", 3).corrected == ()


def test_a_filter_narrows(searcher: Searcher) -> None:
    results = searcher.search("send message", 10, Filters(server="telegram"))
    assert {hit.entry.server for hit in results.hits} == {"telegram"}
    assert results.searched == len(SERVERS["telegram"])


def test_it_says_how_it_searched_and_how_far_to_trust_it(searcher: Searcher) -> None:
    strong, weak = (
        searcher.search("slack send message", 5),
        searcher.search("paint the garden fence project", 5),
    )
    assert (strong.quality, strong.tiers, strong.hits[0].tier) == ("strong", ("keyword",), "keyword")
    assert strong.hits[0].matched == ("slack", "send", "message")
    assert strong.searched == len(entries())
    assert 0 < len(strong.hits) <= strong.matching < strong.searched
    assert weak.quality == "weak"
    assert weak.unknown_words == ("paint", "garden", "fence")
