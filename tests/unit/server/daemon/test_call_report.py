"""Calls as a daemon tells of them: piece by piece, and what the time of each passed with."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.proxy.call_record import HAPPENED
from mcpzip.proxy.call_records import CallRecords
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.call_phases import phases, remarks, seconds_of, spent, told
from mcpzip.server.daemon.call_report import AT_ONCE, CallEvent, CallReport, ProgressReport, calls_answer


def report(seconds: float | None = 1.0, *events: tuple[str, float], **more: object) -> CallReport:
    record = CallRecords().begin(Exchange(Client()), "s", "t", 2)
    fields = {name: getattr(CallReport.of(record), name) for name in CallReport.__struct_fields__}
    found = tuple(CallEvent(*event) for event in events)
    return CallReport(**{**fields, "at": 1_000.0, "seconds": seconds, "events": found, **more})


def made(proxies: list[CallRecords], where: list[int], end: int = 10**6) -> None:
    for number, at in enumerate(where):
        calls = proxies[at]
        record = calls.begin(Exchange(Client()), "s", f"t{number}", 2)
        if number < end:
            calls.failed(record, RuntimeError("no"))


@given(st.lists(st.integers(0, 2), max_size=3 * AT_ONCE))
def test_a_reader_gets_all_calls_in_pieces(where: list[int]) -> None:
    proxies = [CallRecords() for _ in range(3)]
    made(proxies, where)
    found: list[CallReport] = []
    answer = calls_answer(proxies, 7)
    change = answer.change
    while True:
        assert len(answer.calls) <= AT_ONCE
        found += answer.calls
        if not answer.more:
            break
        answer = calls_answer(proxies, 7, 0, found[-1].number)
    assert [call.tool for call in found] == [f"t{number}" for number in range(len(where))][::-1]
    assert calls_answer(proxies, 7, change).calls == ()
    made(proxies, [1])
    assert len(calls_answer(proxies, 7, change).calls) == 1


def test_what_is_under_way_is_always_told() -> None:
    calls = CallRecords()
    made([calls], [0] * 5, end=3)
    change = calls_answer([calls], 7).change
    assert [call.tool for call in calls_answer([calls], 7, change).calls] == ["t4", "t3"]


def test_an_answer_passes_as_a_notice() -> None:
    calls = CallRecords()
    made([calls], [0] * 3)
    answer = calls_answer([calls], 7)
    line = protocol.notice(protocol.ANSWER, msgspec.json.encode(answer))
    assert line.count(b"\n") == 1
    name, value = protocol.read_notice(line)
    assert name == protocol.ANSWER
    assert msgspec.convert(json.loads(json.dumps(value)), type(answer)) == answer


moments = st.floats(0, 10, allow_nan=False)
happened = st.lists(st.tuples(st.sampled_from(HAPPENED), moments), max_size=12)


@given(happened, st.none() | moments)
def test_phases_follow_one_another_and_fill_the_call(
    events: list[tuple[str, float]], seconds: float | None
) -> None:
    call = report(seconds, *events)
    now = 1_005.0
    length = seconds_of(call, now)
    found = phases(call, now)
    at = 0.0
    for phase in found:
        assert phase.begin == at
        assert phase.end > phase.begin
        at = phase.end
    assert at == length
    assert sum(seconds for _, seconds in spent(call, now)) == pytest.approx(length)
    assert all(remarks(call, now))


def test_who_did_what() -> None:
    events = [
        ("decided", 0.0),
        ("person asked", 0.1),
        ("person answered", 2.1),
        ("connecting", 2.2),
        ("sent", 3.2),
        ("elicitation", 3.5),
        ("question over", 4.5),
        ("answered", 5.0),
    ]
    call = report(5.1, *events, repairs=2, kept=True, progress=ProgressReport(3, 3.3, 3.4))
    assert {who: round(seconds, 3) for who, seconds in spent(call, 0)} == {
        "mcpzip": 0.3,
        "person": 2.0,
        "connection": 1.0,
        "server": 0.8,
        "client": 1.0,
    }
    assert remarks(call, 0) == [
        "2.0 s for a person who was asked",
        "1.0 s for the connection to the server",
        "1.0 s for the client's answers",
        "the server asked the user",
        "progress 3 times",
        "2 repairs",
        "its result is kept",
    ]


def test_a_question_in_the_middle_of_another_one() -> None:
    call = report(4.0, ("sent", 0.0), ("roots", 1.0), ("sampling", 1.5), ("question over", 2.0))
    assert dict(spent(call, 0)) == {"server": 1.0, "client": 3.0}
    over = report(4.0, ("sent", 0.0), ("roots", 1.0), ("question over", 2.0))
    assert dict(spent(over, 0)) == {"server": 3.0, "client": 1.0}


def test_the_page_has_all_that_is_told() -> None:
    page = (Path(__file__).parents[4] / "docs" / "calls.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name.strip(" `") for row in rows for name in row.split(",")}
    assert named == {*CallReport.__struct_fields__, *HAPPENED}


def test_every_event_has_words() -> None:
    assert [what for what in HAPPENED if told(what, 1) == what] == []
    assert told("sent", 2) == "it was sent again"


def test_an_event_of_a_later_version_changes_nothing() -> None:
    assert dict(spent(report(1.0, ("sent", 0.0), ("of a later version", 0.5)), 0)) == {"server": 1.0}
