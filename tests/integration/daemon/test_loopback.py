"""A daemon where there are no Unix domain sockets, as on Windows; played on any system."""

import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.daemons import Home, daemon_home, said
from helpers.driver import alive, run, until

from mcpzip.server.daemon.connector import Connector
from mcpzip.system import local_socket, loopback


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch, loopback=True) as home:
        yield home


def test_only_who_can_read_its_file_is_served(home: Home) -> None:
    with home.serving() as client:
        said(client)
        found = os.lstat(home.socket)
        assert stat.S_ISREG(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600
        port, _ = loopback.parse(Path(home.socket).read_bytes()) or (0, b"")
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.settimeout(20)
            stranger.sendall(b'{"kind": "stop"}'.ljust(2 * loopback.SIZE) + b"\n")
            with closing(stranger.makefile("rb")) as heard:
                assert len(heard.read(2 * loopback.SIZE)) == 2 * loopback.SIZE
        assert said(client)["pid"] == said(client)["pid"]
    assert home.pid is not None


def test_agents_and_commands_find_it_whatever_they_would_start(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.serving() as client:
        server = said(client)["pid"]
        monkeypatch.delenv("MCPZIP_DAEMON")
        with home.serving() as other:
            assert said(other)["pid"] == server
            shown = json.loads(run("ps", "--json", "--config", str(home.config)).stdout)
            assert len(shown["daemon"]["proxies"][0]["clients"]) == 2


def test_a_session_goes_on_when_it_is_killed(home: Home) -> None:
    with home.serving() as one, home.serving() as other:
        before = said(one)["pid"]
        gate = home.folder / "gate"
        number = one.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        home.kill()
        assert "may have run" in one.answer(number).text
        assert said(one)["pid"] == said(other)["pid"] != before
        until(lambda: not alive(before))
        assert len(home.calls("wait")) == 1


@pytest.mark.parametrize("end", ["input", "signal"])
def test_an_agent_that_leaves_leaves_nothing(home: Home, end: str) -> None:
    with home.serving() as other, home.serving() as client:
        said(client)
        gate = home.folder / "gate"
        client.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        if end == "input":
            assert client.process.stdin is not None
            client.process.stdin.close()
        else:
            client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(20) == 0
        until(lambda: home.noted("cancelled"))
        assert not said(other, what="x").get("error")


def test_without_a_daemon_nothing_is_lost_of_what_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads have read the input by then, and hand it back."""
    with daemon_home(tmp_path, monkeypatch, loopback=True, shared=False) as home, home.serving() as client:
        numbers = [client.send_call("up__say", {"number": number}) for number in range(20)]
        for at, number in enumerate(numbers):
            assert json.loads(client.answer(number).text)["number"] == at
        assert home.pid is None


def test_a_port_that_another_process_has_got_since_keeps_nobody_waiting_twice(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loopback, "TIMEOUT", 0.05)
    connector = Connector(str(home.config), "", None)
    os.makedirs(os.path.dirname(home.socket), mode=0o700, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        left = loopback.written(silent.getsockname()[1], bytes(loopback.SIZE))
        Path(home.socket).write_bytes(left)
        lock = local_socket.take_lock(home.lock)
        assert lock is not None
        with pytest.raises(TimeoutError):  # there is a daemon, and it doesn't answer
            connector.connect()
        os.close(lock)
        assert connector.connect() is None
        assert not os.path.exists(home.socket)
