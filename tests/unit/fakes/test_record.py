"""The record: what goes in comes out, also while somebody still writes."""

import asyncio
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.record import Record, Writer, begun


def write(path: Path, *messages: bytes) -> None:
    writer = Writer(str(path))
    writer.event("start", {"transport": "stdio"})
    for message in messages:
        writer.message("in", message)
    writer.event("exit", {"code": 0})
    writer.close()


def test_messages_events_calls_and_methods(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"n":1.0}}}\n'
    write(path, call, b'{"jsonrpc":"2.0","id":"x","result":{}}', b'{"method":"ping"}')
    record = Record.load(path)
    assert record.methods() == ["tools/call", "ping"]
    assert record.calls("pay") == record.calls() == [{"name": "pay", "arguments": {"n": 1.0}}]
    assert record.calls("other") == []
    assert [line.message.get("id") for line in record.received()] == [1, "x", None]
    assert record.events("exit")[0].detail == {"code": 0}
    assert b'"arguments":{"n":1.0}' in path.read_bytes()  # numbers as they were spelt


@given(st.binary(min_size=1))
def test_any_bytes_can_be_recorded(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("record") / "r.jsonl"
    write(path, raw)
    assert len(Record(path).received()) == 1


def test_pretty_json_stays_one_line(tmp_path: Path) -> None:
    write(tmp_path / "r", b'{\n "method": "ping",\r\n "params": {"a": 1.50}}')
    assert Record(tmp_path / "r").methods() == ["ping"]


def test_json_with_odd_line_ends_and_numbers_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "r"
    write(path, b'{"id":1,\r"params":{"n":1e999}}', b'{"params":{"n":1}}')
    assert [line.params for line in Record(path).received()] == [{"n": float("inf")}, {"n": 1}]


def test_what_is_not_json_stands_under_text(tmp_path: Path) -> None:
    write(tmp_path / "r", b"caf\xe9", b"[1, 2]")
    assert [line.text for line in Record(tmp_path / "r").received()] == ["caf\\xe9", "[1,2]"]


def test_a_line_still_being_written_waits(tmp_path: Path) -> None:
    path = tmp_path / "r"
    write(path)
    record = Record(path)
    assert len(record.lines()) == 2
    with path.open("ab") as file:
        file.write(b'{"time":1.0,"pid":1,"connection":0,')
        file.flush()
        assert len(record.lines()) == 2
        file.write(b'"what":"late"}\n')
    assert record.lines()[-1].what == "late"


def test_wait_for_sees_what_another_writes(tmp_path: Path) -> None:
    record = Record(tmp_path / "r")
    thread = threading.Thread(target=write, args=(tmp_path / "r", b'{"method":"ping"}'))
    thread.start()
    assert record.wait_for(lambda seen: seen.received("ping"))[0].method == "ping"
    thread.join()


async def test_until_leaves_the_loop_free(tmp_path: Path) -> None:
    record = Record(tmp_path / "r")
    asyncio.get_running_loop().call_later(0.02, write, tmp_path / "r", b'{"method":"ping"}')
    assert await record.until(lambda seen: seen.methods()) == ["ping"]


def test_waiting_in_vain_tells_what_was_seen(tmp_path: Path) -> None:
    write(tmp_path / "r", b'{"method":"ping"}')
    with pytest.raises(TimeoutError, match=r"did not come to it within 0 s; .*start, in ping, exit"):
        Record(tmp_path / "r").wait_for(lambda seen: seen.received("pong"), timeout=0)


def test_runs_are_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "r")
    for expected in (1, 2, 3):
        number, writer = begun(path, {})
        assert number == expected
        writer.close()
    assert begun(None, {})[0] == 1
