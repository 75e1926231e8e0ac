"""Reading the calls of a daemon: only what is new, of another daemon all, and an older one is named."""

from typing import Any

import msgspec
import pytest

from mcpzip.model.errors import McpzipError
from mcpzip.model.limits import RECORDED_CALLS
from mcpzip.proxy.call_records import CallRecords
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.server.daemon import asking
from mcpzip.server.daemon.call_report import calls_answer
from mcpzip.server.daemon.recorded_calls import RecordedCalls


class FakeDaemon:
    """A daemon with one proxy. asked: how often it was. pid: 0 while none runs."""

    def __init__(self) -> None:
        self.calls, self.pid, self.asked = CallRecords(), 7, 0
        self.is_old = False

    def ask(self, config: str, project: str, kind: str, **said: Any) -> Any:
        assert (config, project) == ("c", "p")
        if not self.pid:
            return None
        if kind == "ping":
            return {"version": "0.0.1"}
        self.asked += 1
        return None if self.is_old else msgspec.to_builtins(calls_answer([self.calls], self.pid, **said))

    def call(self, times: int = 1) -> None:
        for _ in range(times):
            self.calls.failed(self.calls.begin(Exchange(Client()), "s", "t", 2), RuntimeError("no"))


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> FakeDaemon:
    daemon = FakeDaemon()
    monkeypatch.setattr(asking, "ask", daemon.ask)
    return daemon


def test_each_look_asks_for_what_is_new(daemon: FakeDaemon) -> None:
    reader = RecordedCalls("c", "p")
    assert reader.look() == []
    daemon.call(600)
    daemon.asked = 0
    found = reader.look()
    assert found is not None
    assert len(found) == 600
    assert [call.number for call in found] == sorted(call.number for call in found)
    assert daemon.asked == 3
    daemon.call()
    assert len(reader.look() or ()) == 601
    assert daemon.asked == 4
    daemon.call(RECORDED_CALLS)
    assert len(reader.look() or ()) == RECORDED_CALLS


def test_a_call_that_was_under_way_has_ended(daemon: FakeDaemon) -> None:
    reader = RecordedCalls("c", "p")
    record = daemon.calls.begin(Exchange(Client()), "s", "t", 2)
    assert [call.seconds for call in reader.look() or ()] == [None]
    daemon.calls.failed(record, RuntimeError("no"))
    assert [call.outcome for call in reader.look() or ()] == ["no result"]


def test_another_daemon_counts_anew(daemon: FakeDaemon) -> None:
    reader = RecordedCalls("c", "p")
    daemon.call(3)
    assert len(reader.look() or ()) == 3
    daemon.pid, daemon.calls = 8, CallRecords()
    daemon.call(2)
    assert len(reader.look() or ()) == 2
    daemon.pid = 0
    assert reader.look() is None
    daemon.pid = 8
    assert len(reader.look() or ()) == 2


def test_a_daemon_that_is_too_old_is_named(daemon: FakeDaemon) -> None:
    daemon.is_old = True
    with pytest.raises(McpzipError, match=r"version 0\.0\.1.*mcpzip daemon restart"):
        RecordedCalls("c", "p").look()
