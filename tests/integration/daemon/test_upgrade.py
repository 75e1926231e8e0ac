"""A newer version of mcpzip takes over, however many calls are under way."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from helpers.daemons import Home, daemon_home, listen_as_nobody, said
from helpers.driver import Client, encoded, run, until

from mcpzip.server.daemon import protocol

MODULE = "mcpzip.server.daemon.retirement"
SOON = {"PATIENCE": 0.2, "HOLD": 0.2}
"""Constants with which the daemon gives way sooner."""


@pytest.fixture(params=["unix", "loopback"])
def home(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Home]:
    with (
        TemporaryDirectory(prefix="d-") as folder,
        daemon_home(Path(folder), monkeypatch, loopback=request.param == "loopback") as home,
    ):
        yield home


class Overlapping:
    """Calls of one client of which at least one is always under way. made: how many were sent."""

    def __init__(self, home: Home, client: Client, name: str) -> None:
        self.home, self.client, self.name, self.made = home, client, name, 0
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._gates: list[tuple[int, Path]] = []
        self._begin()
        self._thread = threading.Thread(target=self._run)

    def _begin(self) -> None:
        gate = self.home.folder / f"gate-{self.name}-{self.made}"
        self.made += 1
        self._gates.append((self.client.send_call("up__wait", {"until": str(gate)}), gate))

    def _end(self) -> None:
        number, gate = self._gates.pop(0)
        gate.touch()
        answer = self.client.answer(number)
        if answer.failed:
            self.failures.append(answer.text)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._begin()
            self._end()
        self._end()

    @contextmanager
    def running(self) -> Iterator["Overlapping"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()


def test_calls_that_always_overlap_do_not_keep_the_newer_version_out(home: Home) -> None:
    """It waited for a moment without calls, which never came."""
    with (
        home.running(MODULE, **SOON) as first,
        home.serving() as one,
        home.serving() as other,
        Overlapping(home, one, "one").running() as calls,
        Overlapping(home, other, "other").running() as others,
        home.serving(version="99.0") as newer,
    ):
        assert said(newer)
        until(lambda: home.pid not in (None, first))
        servers = {said(client)["pid"] for client in (one, other, newer)}
        made = calls.made, others.made
        until(lambda: calls.made > made[0] + 2 and others.made > made[1] + 2)
        assert len(servers) == 1
        assert home.ask("ping")["version"] == "99.0"
    assert calls.failures == others.failures == []
    ran = Counter(call["until"] for call in home.calls("wait"))
    assert len(ran) == calls.made + others.made
    assert set(ran.values()) == {1}


def test_a_long_call_keeps_only_its_own_client_and_delays_no_request_for_long(home: Home) -> None:
    gate = home.folder / "gate"
    with home.running(MODULE, **SOON) as first, home.serving() as busy, home.serving() as idle:
        before = said(busy)["pid"]
        long = busy.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        with home.serving(version="99.0") as newer:
            said(newer)
            until(lambda: home.pid not in (None, first))
            assert said(idle)["pid"] == said(newer)["pid"] != before
            for _ in range(20):
                assert said(busy)["pid"] == before
            gate.touch()
            assert not busy.answer(long).failed
            until(lambda: said(busy)["pid"] == said(newer)["pid"])
    assert len(home.calls("wait")) == 1


def test_ps_shows_both_while_the_older_one_still_serves(home: Home) -> None:
    """It showed the newer one only."""
    gate = home.folder / "gate"
    killed = Path(protocol.retiring_socket(home.socket, 1))
    with home.running(MODULE, **SOON) as first, home.serving() as busy, home.serving() as idle:
        server = said(busy)["pid"]
        long = busy.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        listen_as_nobody(str(killed))
        with home.serving(version="99.0") as newer:
            said(newer)
            until(lambda: home.pid not in (None, first))
            said(idle)
            shown = json.loads(told(home, "ps", "--json"))
            assert shown["daemon"]["version"] == "99.0"
            assert shown["daemon"]["successor"] == ""
            (older,) = shown["retiring"]
            assert (older["pid"], older["successor"]) == (first, "99.0")
            (client,) = older["proxies"][0]["clients"]
            assert (client["pid"], client["calls"], client["under_way"]) == (busy.process.pid, 2, 1)
            assert str(server) in older["memory"]
            assert shown["others"] == []
            assert not killed.exists()
            text = told(home, "ps")
            assert f"daemon {home.pid}, version 99.0" in text
            assert f"daemon {first}, version" in text
            assert "gives way to version 99.0; 1 request under way" in text
            assert "without the daemon" not in text
            gate.touch()
            assert not busy.answer(long).failed
            until(lambda: said(busy)["pid"] == said(newer)["pid"])
            until(lambda: json.loads(told(home, "ps", "--json"))["retiring"] == [])
    assert not list(killed.parent.glob("retiring-*"))


def told(home: Home, *words: str) -> str:
    done = run(*words, "--config", str(home.config))
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_what_a_batch_asks_meanwhile_runs_once(home: Home) -> None:
    gate = home.folder / "gate"
    with home.running(MODULE, **SOON) as first, home.serving(begin=False) as busy:
        begin = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "b"}}
        busy.ask("initialize", begin)
        busy.tell("notifications/initialized")
        long = busy.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        with home.serving(version="99.0") as newer:
            said(newer)
            until(lambda: home.pid not in (None, first))
            for number in range(500, 520):
                arguments = {"name": "up__say", "arguments": {"number": number}}
                params = {"name": "execute_tool", "arguments": arguments}
                call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                busy.write(encoded([call]))
            gate.touch()
            until(lambda: any(b'"id":%d,' % long in line for line in list(busy.heard)))
            until(lambda: busy_answers(busy, 20))
    assert sorted(call["number"] for call in home.calls("say") if "number" in call) == [*range(500, 520)]


def busy_answers(client: Client, count: int) -> bool:
    return sum(line.startswith(b"[") and b'"isError"' not in line for line in list(client.heard)) == count
