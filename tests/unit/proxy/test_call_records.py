"""What is remembered of a call is bounded, whatever happens, and its tokens are about right."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.errors import CallRefusedError, UpstreamError
from mcpzip.model.limits import RECORDED_CALLS, RECORDED_EVENTS, RECORDED_NAME
from mcpzip.model.tokens import estimate
from mcpzip.proxy.call_record import HAPPENED, CallRecord, note, question
from mcpzip.proxy.call_records import CallRecords, outcome_of, outcome_of_error
from mcpzip.proxy.exchange import Client, Exchange


def begun(server: str = "s", tool: str = "t", calls: CallRecords | None = None) -> CallRecord:
    return (calls or CallRecords()).begin(Exchange(Client()), server, tool, 2)


async def ended(calls: CallRecords, result: bytes, tool: str = "t") -> CallRecord:
    async def made() -> tuple[bytes, bool]:
        return result, True

    record = begun(tool=tool, calls=calls)
    assert await calls.recorded(record, made()) == (result, True)
    return record


@given(st.lists(st.integers(0, len(HAPPENED) - 1), max_size=3 * RECORDED_EVENTS))
def test_the_first_events_are_kept_in_their_order(happened: list[int]) -> None:
    record = begun()
    for what in happened:
        note(record, what)
    found = list(record.happened())
    assert [what for what, _ in found] == [HAPPENED[what] for what in happened[:RECORDED_EVENTS]]
    assert sorted(after for _, after in found) == [after for _, after in found]
    assert len(record.events) <= 5 * RECORDED_EVENTS


def test_nothing_is_noted_of_what_is_not_recorded() -> None:
    note(None, question("roots/list"))


def test_the_newest_calls_are_kept() -> None:
    calls = CallRecords()
    numbers = [begun(calls=calls).number for _ in range(RECORDED_CALLS + 7)]
    assert [record.number for record in calls] == numbers[-RECORDED_CALLS:][::-1]
    assert numbers == sorted(set(numbers))


@given(st.text(), st.text())
def test_names_are_bounded(server: str, tool: str) -> None:
    record = begun(server * 300, tool * 300)
    assert max(len(record.server), len(record.tool)) <= RECORDED_NAME


def test_a_name_that_is_not_too_long_is_not_copied() -> None:
    name = "get_current_time" * 2
    assert begun(tool=name).tool is name


def test_clients_without_end_are_not_kept() -> None:
    calls = CallRecords()
    for number in range(1_000):
        calls.begin(Exchange(Client(info=b'{"name":"%d"}' % number)), "s", "t", 0)
        assert len(calls._callers) <= 64
    assert next(iter(calls)).caller.name == "999"


@given(st.binary(max_size=50))
def test_whatever_a_client_says_of_itself(info: bytes) -> None:
    record = CallRecords().begin(Exchange(Client(info=info, pid=7)), "s", "t", 0)
    assert record.caller.pid == 7
    assert record.caller.name.isprintable()


async def test_tokens_are_those_of_an_earlier_result_of_the_same_size() -> None:
    calls = CallRecords()
    prose = json.dumps({"content": [{"type": "text", "text": "It is a quiet afternoon in Berlin. " * 40}]})
    digits = json.dumps({"content": [{"type": "text", "text": "31415926535897932 " * 80}]})
    for text in (prose, digits):
        first = await ended(calls, text.encode(), text[:60])
        assert first.tokens == estimate(text)
        again = await ended(calls, text[:-9].encode(), text[:60])
        assert again.tokens == pytest.approx(estimate(text[:-9]), rel=0.05)
    assert (await ended(calls, b"")).tokens == 0


async def test_tokens_of_a_long_result_are_sampled() -> None:
    text = "".join(f'{{"name":"item {number}","price":{number}.50}},' for number in range(20_000))
    record = await ended(CallRecords(), text.encode())
    assert record.tokens == pytest.approx(estimate(text), rel=0.15)


def test_outcomes_are_those_of_the_audit_log() -> None:
    page = (Path(__file__).parents[3] / "docs" / "audit.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| `outcome`"))
    found = {
        outcome_of(b"{}", succeeded=True),
        outcome_of(b'{"resultType":"input_required"}', succeeded=False),
        outcome_of(b'{"isError":true}', succeeded=False),
        outcome_of_error(CallRefusedError("no", "denied")),
        outcome_of_error(asyncio.CancelledError()),
        outcome_of_error(UpstreamError("s", "it is gone")),
        outcome_of_error(RuntimeError()),
    }
    assert found == {"result", "input required", "tool error", "denied", "cancelled", "no result"}
    assert [outcome for outcome in found if f"`{outcome}`" not in row] == []


async def test_an_error_is_raised_and_remembered_as_a_sentence() -> None:
    calls = CallRecords()

    async def fails() -> tuple[bytes, bool]:
        raise UpstreamError("s", "it is \x1b[2J gone" + "!" * 500)

    record = begun(calls=calls)
    with pytest.raises(UpstreamError):
        await calls.recorded(record, fails())
    assert record.outcome == "no result"
    assert record.error.startswith("s: it is")
    assert len(record.error) <= 160
    assert record.error.isprintable()
    assert record.seconds >= 0


async def test_a_change_has_a_number_of_its_own() -> None:
    calls = CallRecords()
    record = begun(calls=calls)
    changes = [record.change]

    async def made() -> tuple[bytes, bool]:
        return b"{}", True

    await calls.recorded(record, made())
    changes.append(record.change)
    calls.kept(record)
    changes.append(record.change)
    record.note(0)
    changes.append(record.change)
    assert changes == sorted(set(changes))
    calls.kept(None)
