"""What people ask, on a catalog of a dozen servers: the examples given, and the known failings of words."""

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Results, Searcher

# server: {tool: (description, parameters)}
SERVERS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "slack": {
        "send_message": ("Send a Slack message", ("channel", "text")),
        "delete_message": ("Delete a message from a channel", ("channel", "ts")),
        "channels_list": ("List Slack channels", ("limit",)),
    },
    "telegram": {
        "send_msg": ("Send a Telegram message", ("chat_id", "text")),
        "getUpdates": ("Receive incoming updates of the bot", ("offset",)),
    },
    "todoist": {
        "create_task": ("Create a new task", ("content", "project_id")),
        "complete_task": ("Mark a task as done", ("task_id",)),
        "get_tasks": ("Get the tasks of your todo list", ("filter",)),
    },
    "google-calendar": {
        "CreateEvent": ("Create an event in a calendar", ("start", "end", "summary")),
        "ListEvents": ("List upcoming events and meetings", ("calendar_id",)),
    },
    "gmail": {
        "SearchEmails": ("Search the mailbox with Gmail's own query language", ("query",)),
        "SendEmail": ("Send an email", ("to", "subject", "body")),
    },
    "github": {
        "create_issue": ("Open a new issue in a repository", ("owner", "repo", "title")),
        "list_commits": ("List the commits of a branch", ("owner", "repo", "sha")),
        "HTTPServerStatus": ("Whether the API is up", ()),
    },
    "workflow": {
        "start_state_machine": ("Start an execution of a state machine", ("arn",)),
        "runTestSuite.fast": ("Run the fast tests of a project", ("path",)),
    },
    "ops": {
        "tail_log": ("Show the last lines a service logged", ("service",)),
        "debug-pod": ("Attach a debugger to a pod", ("pod",)),
        "deploy_release": ("Deploy a release of an application to production", ("app", "version")),
    },
    "identity": {
        "authenticate_user": ("Check a user's password and second factor", ("user",)),
        "OAuth2Token": ("Exchange a code for a token", ("code",)),
        "who_am_i": ("The signed-in user", ()),
    },
    "packages": {
        "install_dependencies": ("Install what a project's manifest names", ("path",)),
        "setup_environment": ("Prepare a virtual environment", ("path",)),
    },
    "tianqi": {
        "查询天气": ("按城市查询天气预报", ("城市",)),
        "空气质量": ("查询城市的空气质量指数", ("城市",)),
    },
    "images": {
        "convert": ("Convert a picture", ("format",)),
        "resize": ("Change the size of a picture", ("width", "height")),
    },
}
ENUMS = {("images", "convert"): {"format": ["png", "webp", "tiff"]}}


def entries() -> list[Entry]:
    made = []
    for server, tools in SERVERS.items():
        for name, (description, parameters) in tools.items():
            properties = {
                parameter: {"type": "string", **_enum(server, name, parameter)} for parameter in parameters
            }
            raw = {"name": name, "description": description, "inputSchema": {"properties": properties}}
            made.append(Entry.parse(server, json.dumps(raw).encode()))
    return made


def _enum(server: str, name: str, parameter: str) -> dict[str, object]:
    values = ENUMS.get((server, name), {}).get(parameter)
    return {"enum": values} if values else {}


@pytest.fixture(scope="module")
def searcher() -> Searcher:
    made = Searcher()
    made.index(entries(), "1")
    return made


def names(results: Results) -> list[str]:
    return [hit.entry.name for hit in results.hits]


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
def test_documented_examples(searcher: Searcher, query: str, name: str) -> None:
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


def test_no_answer_says_why_and_what_is_near(searcher: Searcher) -> None:
    results = searcher.search("gothub xylophone", 5)
    assert (results.hits, results.quality) != ((), "none")  # "gothub" is one mistake from "github"
    results = searcher.search("slqqk xylophone", 5)
    assert (results.hits, results.matching, results.quality) == ((), 0, "none")
    assert results.unknown_words == ("slqqk", "xylophone")
    assert "slack" in results.nearest_words
    assert len(results.nearest_servers) == 5


def test_a_server_that_is_not_there_is_answered_with_the_nearest(searcher: Searcher) -> None:
    results = searcher.search("send a message", 5, Filters(server="slak"))
    assert (results.hits, results.searched, results.quality) == ((), 0, "none")
    assert results.nearest_servers[0] == "slack"


@pytest.mark.parametrize("query", ["", "   ", "?!", "—", "\u0301", "\ud800"])
def test_a_query_without_words_finds_nothing_and_says_so(searcher: Searcher, query: str) -> None:
    results = searcher.search(query, 5)
    assert (results.hits, results.matching, results.quality) == ((), 0, "none")
    assert (results.unknown_words, results.nearest_words) == ((), ())
    assert len(results.nearest_servers) == 5


@given(st.text() | st.text(st.sampled_from("aAsS_ 天é'1\u0301")), st.integers(-3, 80))
def test_no_query_raises(query: str, limit: int) -> None:
    results = _EVERYTHING.search(query, limit)
    assert len(results.hits) == min(max(limit, 0), results.matching)
    assert (results.quality == "none") == (results.matching == 0)
    assert _EVERYTHING.search(query, limit) == results


@pytest.mark.parametrize("query", ["x" * 100_000, "send " * 50_000, "a b c " * 20_000, "天" * 50_000])
def test_a_very_long_query_is_read_so_far(searcher: Searcher, query: str) -> None:
    assert len(searcher.search(query, 3).unknown_words) <= 128


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


_EVERYTHING = Searcher()
_EVERYTHING.index(entries(), "1")
