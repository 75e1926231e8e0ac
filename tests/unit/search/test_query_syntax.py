"""Signs in a query: what is one, and what only looks like one."""

import pytest
from helpers.search_tools import found, searcher, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search import Filters
from mcpzip.search.query_syntax import ParsedQuery, parse_query


@pytest.mark.parametrize(
    ("query", "text", "servers", "without", "phrases"),
    [
        ("server:slack send", "send", ("slack",), (), ()),
        ("send server:slack", "send", ("slack",), (), ()),
        ('send server:"my notes" now', "send now", ("my notes",), (), ()),
        ("server:a server:b send", "send", ("a", "b"), (), ()),
        ("message -draft", "message", (), ("draft",), ()),
        ("message -send_later -old", "message", (), ("send_later", "old"), ()),
        ('find "state machine" now', "find state machine now", (), (), ("state machine",)),
        ("„state machine“", "state machine", (), (), ("state machine",)),
        ("«state machine»", "state machine", (), (), ("state machine",)),
        ('server:github -issue "pull request"', "pull request", ("github",), ("issue",), ("pull request",)),
        ('post "Hello" to the team', "post Hello to the team", (), (), ()),  # a value, no phrase
        ('"pull request", review?', "pull request , review?", (), (), ("pull request",)),
        ('"a b" "c d" now please', "a b c d now please", (), (), ("a b", "c d")),
        ('set the status to "in progress"', "set the status to in progress", (), (), ()),  # a value, too
        ('rename "a b" to "c d" there', "rename a b to c d there", (), (), ()),
        ('server:slack find -draft "state machine" now', "find -draft state machine now", ("slack",), (), ()),
    ],
)
def test_signs(
    query: str, text: str, servers: tuple[str, ...], without: tuple[str, ...], phrases: tuple[str, ...]
) -> None:
    assert parse_query(query) == ParsedQuery(query, text, servers, without, phrases)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "a - b",
        "state-machine",
        "git commit --amend -m x",
        "-5 degrees",
        "-x",
        "find -name report",
        "server: slack",
        "myserver:slack",
        "note: send",
        "http://server/x",
        '"',
        '""',
        '" "',
        'a 5" pipe',
        "don't",
        "'state machine'",
        "send - or don't -",
    ],
)
def test_plain_english_has_none(query: str) -> None:
    said = parse_query(query)
    assert (said.servers, said.excluded_words, said.phrases) == ((), (), ())
    assert said.text.split() == query.split()


@given(st.text() | st.text('server:"-ab “”„\n', max_size=40))
def test_never_raises_and_makes_nothing_up(query: str) -> None:
    said = parse_query(query)
    assert said.written == query
    for part in (*said.text.split(), *said.servers, *said.excluded_words, *said.phrases):
        assert part in query


@given(st.lists(st.sampled_from(["send", "message", "the", "team"])), st.sampled_from(["slack", "my-notes"]))
def test_a_sign_may_stand_anywhere(words: list[str], server: str) -> None:
    for place in range(len(words) + 1):
        said = parse_query(" ".join([*words[:place], f"server:{server}", *words[place:], "-draft"]))
        assert (said.text, said.servers, said.excluded_words) == (" ".join(words), (server,), ("draft",))
        said = parse_query(" ".join(["-draft", *words[:place], f"server:{server}", *words[place:]]))
        assert (said.text, said.servers, said.excluded_words) == (" ".join(words), (server,), ("draft",))


def test_more_signs_than_anybody_writes_are_none() -> None:
    query = " ".join(f"-word{number}" for number in range(100))
    assert parse_query(query) == ParsedQuery(query, query)


@pytest.mark.parametrize("unit", ['"', '"a', '"a ', "„", "-a", "server:", 'server:"', "- ", '"" ', "a "])
def test_a_long_query_is_read_in_one_go(unit: str) -> None:
    # Were this quadratic, it would take half a minute: so it was once, for a quotation mark left open.
    for query in (unit * 20_000, unit + "a" * 20_000, unit + " " * 20_000 + "b"):
        assert parse_query(query).written == query


FOUND = searcher(
    tool("slack", "send_message", "Send a message to a channel"),
    tool("slack", "schedule_message", "Send a message later, as a draft"),
    tool("mail-box", "send_mail", "Send a mail, not a message"),
    tool("flows", "start", "Start a state machine"),
    tool("flows", "machines", "The machine and its state"),
)


def test_what_signs_leave() -> None:
    assert set(found(FOUND, "message server:slack")) == {"slack__send_message", "slack__schedule_message"}
    assert set(found(FOUND, "message server:SLACK")) == {"slack__send_message", "slack__schedule_message"}
    assert found(FOUND, "message server:mail") == ["mail-box__send_mail"]
    assert set(found(FOUND, "message -draft")) == {"slack__send_message", "mail-box__send_mail"}
    assert set(found(FOUND, "message -drafts")) == {"slack__send_message", "mail-box__send_mail"}
    assert found(FOUND, '"state machine"') == ["flows__start"]
    assert set(found(FOUND, "state machine")) == {"flows__start", "flows__machines"}
    assert found(FOUND, "message server:slack", filters=Filters(server="mail-box")) == []


def test_signs_alone_ask_for_all_that_they_leave() -> None:
    assert set(found(FOUND, "server:flows")) == {"flows__start", "flows__machines"}
    assert set(found(FOUND, "server:slack -draft")) == {"slack__send_message"}
    assert FOUND.search("server:flows", 5).searched == 2


def test_a_quoted_value_hides_no_tool() -> None:
    assert len(found(FOUND, 'send a message about the "state machine" to the channel')) == 5


def test_a_phrase_that_no_tool_has_is_words() -> None:
    assert set(found(FOUND, '"machine state"')) == {"flows__start", "flows__machines"}


def test_a_server_that_is_not_there_leaves_nothing() -> None:
    results = FOUND.search("message server:slakc", 5)
    assert (results.hits, results.searched, results.quality) == ((), 0, "none")
    assert "slack" in results.nearest_servers
