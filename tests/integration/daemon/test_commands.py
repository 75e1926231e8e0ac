"""`mcpzip ps`, `daemon`, `stop` and `restart`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.daemons import Home, daemon_home, said
from helpers.driver import INITIALIZE, alive, run, until


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch) as home:
        yield home


def told(home: Home, *words: str, code: int = 0) -> str:
    """What a command says about the config of ``home``."""
    done = run(*words, "--config", str(home.config))
    assert done.returncode == code, done.stderr
    return (done.stdout + done.stderr).decode()


def shown(home: Home) -> Any:
    return json.loads(told(home, "ps", "--json"))


def test_ps_shows_agents_and_the_processes_of_servers(home: Home, tmp_path: Path) -> None:
    assert "No daemon runs now" in told(home, "ps")
    with home.serving() as one, home.serving(begin=False, cwd=Path("/")) as other:
        other.ask("initialize", {**INITIALIZE, "clientInfo": {"name": "\x1b[31mred", "version": "7"}})
        server = said(one)["pid"]
        said(other)
        daemon = shown(home)["daemon"]
        assert daemon["pid"] == home.pid
        (proxy,) = daemon["proxies"]
        assert {client["pid"] for client in proxy["clients"]} == {one.process.pid, other.process.pid}
        assert {client["agent"] for client in proxy["clients"]} == {os.getpid()}
        assert {client["folder"] for client in proxy["clients"]} == {str(tmp_path), "/"}
        assert [client["calls"] for client in proxy["clients"]] == [1, 1]
        (up,) = proxy["servers"]
        assert (up["state"], up["calls"], up["share"]) == ("connected", 2, "auto")
        assert [each["pid"] for each in up["processes"]] == [server]
        assert str(server) in daemon["memory"]
        text = told(home, "ps")
        assert "test 1" in text
        assert "\x1b" not in text
        assert "red 7" in text
        assert "all" in text
        with home.serving(words=("--no-daemon",)) as alone:
            said(alone)
            until(lambda: f"process {alone.process.pid} serves test 1" in told(home, "ps"))


def test_who_uses_a_process_of_its_own_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        daemon_home(tmp_path, monkeypatch, up={"share": "never"}) as home,
        home.serving() as one,
        home.serving() as other,
    ):
        pids = {said(one)["pid"]: one.process.pid, said(other)["pid"]: other.process.pid}
        (up,) = shown(home)["daemon"]["proxies"][0]["servers"]
        users = {each["pid"]: each["users"] for each in up["processes"] if each["pid"] in pids}
        assert users == {pid: [user] for pid, user in pids.items()}


def test_a_server_is_stopped_and_started_again(home: Home) -> None:
    assert "No daemon runs now" in told(home, "stop", "up")
    with home.serving() as client:
        server = said(client)["pid"]
        assert "up was stopped" in told(home, "stop", "up")
        until(lambda: not alive(server))
        assert "up did not run" in told(home, "stop", "up")
        second = said(client)["pid"]
        assert second != server
        assert "up starts again" in told(home, "restart", "up")
        until(lambda: not alive(second) and home.starts() == 3)
        assert said(client)["pid"] not in (server, second)
        assert home.starts() == 3
        assert "There is no server 'upp'" in told(home, "stop", "upp", code=2)


def test_the_daemon_is_started_seen_and_ended(home: Home) -> None:
    assert "No daemon runs now" in told(home, "daemon", "status", code=1)
    assert "was started" in told(home, "daemon", "start")
    pid = home.pid
    assert f"runs already: process {pid}" in told(home, "daemon", "start")
    with home.serving() as client:
        server = said(client)["pid"]
        status = told(home, "daemon", "status")
        assert f"process {pid}" in status
        assert "serves 1 agent:" in status
        assert home.socket in status
        assert json.loads(told(home, "daemon", "status", "--json"))["pid"] == pid
        assert "was started" in told(home, "daemon", "restart")
        assert home.pid not in (pid, None)
        assert said(client)["pid"] != server
        assert "was ended" in told(home, "daemon", "stop")
        assert "No daemon runs now" in told(home, "daemon", "stop")
        assert said(client)
        assert home.pid is not None


def test_a_config_that_declines_it_gets_no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with daemon_home(tmp_path, monkeypatch, shared=False) as home:
        assert "does not want a daemon" in told(home, "daemon", "start", code=1)


def test_the_daemon_serves_clients_over_http_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with daemon_home(tmp_path, monkeypatch, daemon={"http": "127.0.0.1:0", "idle_minutes": 0}) as home:
        with home.serving() as client:
            server = said(client)["pid"]
            url = until(lambda: shown(home)["daemon"]["address"])
            headers = {"accept": "application/json, text/event-stream"}
            begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
            with httpx.Client(headers=headers, trust_env=False) as http:
                session = http.post(url, json=begin).headers["mcp-session-id"]
                http.headers["mcp-session-id"] = session
                params = {"name": "execute_tool", "arguments": {"name": "up__say", "arguments": {}}}
                found = http.post(
                    url, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
                )
                assert str(server) in found.text
        assert home.pid is not None  # over HTTP nobody could start another one


def test_status_knows_the_daemon(home: Home) -> None:
    with home.serving() as client:
        said(client)
        until(lambda: f"daemon, process {home.pid}" in told(home, "status"))
        assert "test 1" in told(home, "status")


def test_the_daemon_serves_people_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of this machine need no key, and may use everything."""
    keys = {"http": {"api_keys": "keys.json"}, "access": [{"groups": ["guests"], "allow": "other"}]}
    address = {"http": "127.0.0.1:0", "idle_minutes": 0}
    with daemon_home(tmp_path, monkeypatch, daemon=address, **keys) as home:
        key = told(home, "keys", "add", "ann", "--group", "guests").split()[0]
        with home.serving() as agent:
            assert said(agent)["pid"]
            url = until(lambda: shown(home)["daemon"]["address"])
            begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
            with httpx.Client(
                headers={"accept": "application/json, text/event-stream"}, trust_env=False
            ) as http:
                assert http.post(url, json=begin).status_code == 401
                found = http.post(url, json=begin, headers={"authorization": f"Bearer {key}"})
                assert found.status_code == 200
                assert "No servers are configured" in found.text
        assert home.pid is not None
