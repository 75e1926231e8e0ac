"""The runner's pure parts: templates, likeness, routes, the choice of checks, the report."""

import base64
import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_conformance.channel.http import header_value
from mcpzip_conformance.check import GROUPS, LEVELS, MUST, check
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.compare_json import Likeness, diff, lines
from mcpzip_conformance.errors import SelectionError
from mcpzip_conformance.http_subject import free_port
from mcpzip_conformance.mutants.faults import FAULTS, find
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.report import as_json
from mcpzip_conformance.route import Route
from mcpzip_conformance.selection import select
from mcpzip_conformance.subject import Subject
from mcpzip_conformance.template import fill, fill_words
from mcpzip_conformance.transcript import Message, printable
from mcpzip_conformance.verdict import Report, Status, SubjectReport, Verdict

VALUE, TEXT = Likeness.VALUE, Likeness.TEXT
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


# Templates


def test_a_whole_place_takes_any_value_and_a_missing_one_its_key() -> None:
    template = {"a": "{x}", "b": ["{x}", "{y}"], "c": "<{x}>", "d": "{y}", "e": "{ not a place }"}
    assert fill(template, {"x": 7}) == {"a": 7, "b": [7], "c": "<7>", "e": "{ not a place }"}


def test_json_text_stands_as_it_is() -> None:
    filled = fill({"arguments": "{arguments}"}, {"arguments": msgspec.Raw(b'{"n":1.0,"m":1e3}')})
    assert msgspec.json.encode(filled) == b'{"arguments":{"n":1.0,"m":1e3}}'


def test_a_list_becomes_words() -> None:
    assert fill_words(("run", "{upstream}", "-c", "{config}"), {"upstream": ["a", "b"], "config": "f"}) == [
        "run", "a", "b", "-c", "f",
    ]  # fmt: skip


# Likeness


@pytest.mark.parametrize(
    ("one", "other", "value", "text"),
    [
        ('{"a":1,"b":2}', '{"b":2,"a":1}', True, False),
        ('{"a": 1}', '{"a":1}', True, True),
        ("1", "1.0", True, False),
        ("1000", "1e3", True, False),
        ("0", "-0.0", True, False),
        ("1e-400", "0", False, False),
        ("12345678901234567890", "12345678901234567000", False, False),
        ("1", '"1"', False, False),
        ("null", "{}", False, False),
        ('{"a":null}', "{}", False, False),
        ('"é"', '"\\u00e9"', True, True),
        ('"é"', '"e\u0301"', False, False),
        ("[1,2]", "[2,1]", False, False),
        ("true", "1", False, False),
    ],
)
def test_what_counts_as_the_same(one: str, other: str, value: bool, text: bool) -> None:
    assert (lines(one.encode(), VALUE) == lines(other.encode(), VALUE)) is value
    assert (lines(one.encode(), TEXT) == lines(other.encode(), TEXT)) is text


@given(JSON)
def test_a_value_is_like_itself_however_it_is_written(value: object) -> None:
    one = json.dumps(value, ensure_ascii=True, indent=3).encode()
    other = json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
    assert lines(one, VALUE) == lines(other, VALUE)


@given(JSON, JSON)
def test_different_values_are_told_apart(one: object, other: object) -> None:
    texts = [json.dumps(value, sort_keys=True).encode() for value in (one, other)]
    assert (lines(texts[0], TEXT) == lines(texts[1], TEXT)) == (texts[0] == texts[1])


def test_long_strings_differ_by_their_digest_and_the_diff_stays_short() -> None:
    one, other = (json.dumps({"t": "x" * 10_000 + end + "y" * 100}).encode() for end in "ab")
    difference = diff(lines(one, VALUE), lines(other, VALUE), "p")
    assert difference[:2] == ("--- straight", "+++ through p")
    assert len(difference) == 7
    assert all(len(line) < 250 for line in difference)


def test_what_is_no_json_is_shown_too() -> None:
    assert lines(b"\xff{", VALUE) == ['"\\\\xff{"']
    assert lines(b"[" * 100_000, VALUE) != lines(b"[" * 99_999, VALUE)


# Routes


def test_a_tool_under_its_own_name() -> None:
    route = Route(Subject.load("direct"))
    assert route.call("shop", "pay", b'{"n":1.0}') == b'{"name":"pay","arguments":{"n":1.0}}'
    assert route.call("shop", "pay", None, b'{"a":1}') == b'{"name":"pay","_meta":{"a":1}}'


def test_a_tool_behind_a_meta_tool() -> None:
    route = Route(Subject.load("mcpzip:meta"))
    head = b'{"name":"execute_tool","arguments":{"name":"shop__pay"'
    assert route.call("shop", "pay", b'{"n":1.0}') == head + b',"arguments":{"n":1.0}}}'
    assert route.call("shop", "pay", None) == head + b"}}"
    assert route.call("shop", "pay", b'{"n":1}', flat=True) == head + b',"n":1}}'
    assert route.call("shop", "{name}", b"{}") == head.replace(b"pay", b"{name}") + b',"arguments":{}}}'


def test_names_are_found_in_a_reply() -> None:
    route = Route(Subject.load("mcpzip:meta"))
    text = "shop__pay: Pay: now [n:integer]\\nshop__x [\\u2026]\\nshop__pay: again\\n-- 2 of 2 matches"
    reply = Reply(result=b'{"content":[{"type":"text","text":"%b"}]}' % text.encode())
    assert route.found(reply) == ["shop__pay", "shop__x"]


@pytest.mark.parametrize(
    ("result", "undone"),
    [
        (b'{"content":[],"x":1.0}', b'{"content":[],"x":1.0}'),
        (b'{"content":[],"resultType":"complete"}', b'{"content":[]}'),
        (b'{"content":[],"resultType":"other"}', b'{"content":[],"resultType":"other"}'),
        (b'{"_meta":{"mcpzip/search":{}},"a":1}', b'{"a":1}'),
        (b'{"_meta":{"io.modelcontextprotocol/serverInfo":{},"k":1},"a":1}', b'{"_meta":{"k":1},"a":1}'),
        (b'{"_meta":{},"a":1}', b'{"a":1}'),
        (b'{"content":[],"isError":false}', b'{"content":[]}'),
        (b'{"content":[],"isError":true}', b'{"content":[],"isError":true}'),
        (b'{"content":[],"isError":null}', b'{"content":[],"isError":null}'),
        (b"[]", b"[]"),
    ],
)
def test_only_what_is_declared_is_undone(result: bytes, undone: bytes) -> None:
    assert Route(Subject.load("mcpzip:meta")).undone(result) == undone


TEXT_A = b'{"type":"text","text":"a"}'


@pytest.mark.parametrize(
    ("reply", "text", "failed"),
    [
        (Reply(result=b'{"content":[%b,{"type":"image"},%b]}' % (TEXT_A, TEXT_A)), "a\na", False),
        (Reply(result=b'{"content":[],"isError":true}'), "", True),
        (Reply(result=b"null"), "", False),
        (Reply(error=b'{"code":-1,"message":"no"}'), "no", True),
        (Reply(error=b'"odd"'), "", True),
    ],
)  # fmt: skip
def test_a_reply_says_what_it_holds(reply: Reply, text: str, failed: bool) -> None:
    assert (reply.text, reply.failed) == (text, failed)


def test_a_transcript_obeys_no_terminal_codes() -> None:
    assert printable("a\x1b[31m\x9bé\ud800\n") == "a\\x1b[31m\\x9bé\\ud800\\n"
    assert printable("a\u034fb\u115f\u202e\t" + "e" + "\u0316" * 60) == (
        "a\\u034fb\\u115f\\u202e\\te" + "\u0316" * 8 + "…"
    )
    assert "…" in str(Message(True, 0.0, b"x" * 1000))
    assert len(str(Message(False, 0.0, b"x" * 1000))) < 450


# Checks


def test_every_check_states_its_requirement_and_its_source() -> None:
    assert len(ALL) >= 120
    for one in ALL:
        assert one.summary.endswith("."), one.id
        assert one.source.startswith(("https://", "docs/")), one.id
    assert {one.group for one in ALL} == GROUPS.keys()


def test_every_fault_names_a_check() -> None:
    assert {fault.check for fault in FAULTS.values()} <= {one.id for one in ALL}


def test_a_fault_is_found_by_its_name() -> None:
    assert {name: find(name) for name in FAULTS} == FAULTS
    with pytest.raises(KeyError, match="no-such-fault"):
        find("no-such-fault")


@pytest.mark.parametrize(
    ("id", "level"), [("fidelity.is-error", MUST), ("nowhere.x", MUST), ("fidelity.x", "shall"), ("x", MUST)]
)
def test_a_check_that_cannot_be_is_refused(id: str, level: str) -> None:
    async def play(stage: object) -> None:
        """It does nothing."""

    with pytest.raises(ValueError, match="exists already, or"):
        check(id, level, "docs/x")(play)


def test_choices_narrow_each_other() -> None:
    assert select(ALL) == ALL
    chosen = select(ALL, groups=["fidelity", "search"], levels=["may"])
    assert chosen
    assert {(one.group, one.level) for one in chosen} <= {("fidelity", "may"), ("search", "may")}
    assert [one.id for one in select(ALL, ids=["protocol.ping"])] == ["protocol.ping"]


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"groups": ["fidelty"]}, "There is no group 'fidelty': did you mean 'fidelity'?"),
        ({"ids": ["protocol.pong"]}, "There is no check 'protocol.pong': did you mean 'protocol.ping'?"),
        ({"levels": ["wish"]}, "There is no level 'wish': see mcpzip-conformance list."),
        ({"ids": ["protocol.ping"], "groups": ["search"]}, "No check matches all these options"),
    ],
)
def test_a_choice_of_nothing_is_told(choice: dict[str, list[str]], says: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select(ALL, **choice)
    assert str(caught.value).startswith(says)


# What stands around a result


@pytest.mark.parametrize(
    ("path", "result", "inner"),
    [
        ("", b'{"a":1}', b'{"a":1}'),
        ("structuredContent.result", b'{"structuredContent":{"result":{"b":1.0}}}', b'{"b":1.0}'),
        ("content.0.text", b'{"content":[{"text":"{\\"b\\":1.0}"}]}', b'{"b":1.0}'),
        ("content.1.text", b'{"content":[{"text":"x"}]}', b'{"content":[{"text":"x"}]}'),
        ("structuredContent.result", b'{"content":[]}', b'{"content":[]}'),
        ("content.text", b'{"content":[]}', b'{"content":[]}'),
    ],
)
def test_a_result_is_taken_out_of_what_is_declared_around_it(path: str, result: bytes, inner: bytes) -> None:
    meta = Subject.load("mcpzip:meta")
    assert meta.tools.call is not None
    call = msgspec.structs.replace(meta.tools.call, result=path)
    subject = msgspec.structs.replace(meta, tools=msgspec.structs.replace(meta.tools, call=call))
    assert Route(subject).inner(result) == inner


@given(st.text())
def test_what_a_header_cannot_hold_goes_as_base64(text: str) -> None:
    value = header_value(text)
    assert value.isascii()
    assert value == value.strip()
    assert not any(char in value for char in "\r\n\0")
    if value != text:
        assert value.startswith("=?base64?")
        coded = value.removeprefix("=?base64?").removesuffix("?=")
        assert base64.b64decode(coded).decode("utf-8", "surrogatepass") == text


def test_a_port_is_not_given_twice() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20


# Reports


def verdict(status: Status, level: str = "must") -> Verdict:
    return Verdict(
        "protocol.ping",
        "protocol",
        level,
        status,
        0.1,
        "No.",
        ("-a", "+b"),
        straight=("→ y",),
        transcript=("→ x",),
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("status", list(Status))
def test_only_a_must_spoils_a_run(status: Status, level: str) -> None:
    made = Report("now", 1.0, "3", "linux", (), (SubjectReport("p", "P", "", (verdict(status, level),)),))
    assert made.clean() is not (level == "must" and status in (Status.FAILED, Status.BROKEN))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("status", "pinned", "clean"),
    [
        (Status.PASSED, "", True),
        (Status.PASSED, "known", False),
        (Status.FAILED, "", False),
        (Status.FAILED, "known", True),
        (Status.BROKEN, "", False),
        (Status.BROKEN, "known", False),
        (Status.SKIPPED, "", True),
        (Status.SKIPPED, "known", True),
    ],
)
def test_with_known_failures_whatever_differs_from_them_spoils_it(
    status: Status, pinned: str, clean: bool, level: str
) -> None:
    one = replace(verdict(status, level), pinned=pinned)
    made = Report("now", 1.0, "3", "linux", (), (SubjectReport("p", "P", "", (one,)),), expecting=True)
    assert made.clean() is clean


def test_json_holds_everything() -> None:
    made = Report("now", 1.0, "3", "linux", (), (SubjectReport("p", "P", "", (verdict(Status.FAILED),)),))
    read = json.loads(as_json.render(made))
    assert read["format"] == "mcpzip-conformance/1"
    [one] = read["subjects"][0]["verdicts"]
    assert (one["status"], one["diff"], one["transcript"]) == ("failed", ["-a", "+b"], ["→ x"])
