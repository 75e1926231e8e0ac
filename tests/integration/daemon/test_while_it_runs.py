"""What happens to a running daemon: trust, signals, and a log that others write and remove."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.daemons import Home, daemon_home, said
from helpers.driver import alive, run, until

from mcpzip.config.project import approve, revoke
from mcpzip.server.daemon import protocol


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch) as home:
        yield home


def test_trust_begins_and_ends_for_all_agents_of_a_project(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCPZIP_PROJECT", raising=False)
    project = home.folder / "project"
    project.mkdir()
    file = project / ".mcpzip.json"
    up = json.loads(home.config.read_text())["mcpServers"]["up"]
    file.write_text(json.dumps({"mcpServers": {"theirs": up}}))
    home.socket, home.lock = protocol.socket_and_lock(str(home.config), str(file))
    with home.serving(cwd=project) as one, home.serving(cwd=project) as other:
        own = said(one)["pid"]
        pid = home.pid
        assert "theirs__say" not in other.search("say")
        assert home.starts() == 1
        approve(str(file), file.read_bytes(), str(home.config))
        for agent in (one, other):
            until(lambda agent=agent: "theirs__say" in agent.search("say"))
        server = json.loads(one.execute("theirs__say").text)["pid"]
        assert json.loads(other.execute("theirs__say").text)["pid"] == server != own
        revoke(str(file), str(home.config))
        for agent in (one, other):
            until(lambda agent=agent: "theirs__say" not in agent.search("say"))
        until(lambda: not alive(server))
        assert "theirs" not in one.execute("theirs__say").text or one.execute("theirs__say").failed
        assert said(other)["pid"] == own
        assert home.pid == pid


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_daemon_ends_it_and_no_session(home: Home, number: int) -> None:
    with home.serving() as one, home.serving() as other:
        server, pid = said(one)["pid"], home.pid
        assert pid is not None
        os.kill(pid, number)
        until(lambda: not alive(pid) and not alive(server))
        assert said(one)["pid"] == said(other)["pid"] != server
        assert home.pid not in (None, pid)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_an_agent_in_the_middle_of_a_call_ends_that_call_only(home: Home, number: int) -> None:
    gate = home.folder / "gate"
    with home.serving() as one, home.serving() as other:
        one.send_call("up__wait", {"until": str(gate)})
        call = other.send_call("up__wait", {"until": str(gate)})
        until(lambda: len(home.calls("wait")) == 2)
        pid = home.pid
        assert one.signal(number) in (0, -number)
        until(lambda: home.noted("cancelled"))
        gate.touch()
        assert not other.answer(call).failed
        assert len(home.noted("cancelled")) == 1
        assert home.pid == pid


def test_signals_at_the_same_time_leave_nothing(home: Home) -> None:
    with home.serving() as one, home.serving() as other:
        server, pid = said(one)["pid"], home.pid
        said(other)
        assert pid is not None
        for process, number in (
            (pid, signal.SIGTERM),
            (one.process.pid, signal.SIGTERM),
            (pid, signal.SIGINT),
        ):
            os.kill(process, number)
        os.kill(other.process.pid, signal.SIGTERM)
        for client in (one, other):
            assert client.process.wait(20) in (0, -signal.SIGTERM)
        until(lambda: not alive(pid) and not alive(server))


def test_a_log_that_is_removed_meanwhile_goes_on_beside_that_of_an_agent_alone(home: Home) -> None:
    def noted() -> str:
        return run("logs", "--json", "--config", str(home.config)).stdout.decode()

    with home.serving() as one, home.serving(words=("--no-daemon",)) as alone:
        said(one), said(alone)
        pid = home.pid
        for process in (pid, alone.process.pid):
            until(lambda process=process: f'"pid":{process}' in noted().replace(" ", ""))
        for path in (home.folder / "logs").glob("*.log"):
            path.unlink()
        assert str(pid) not in noted()
        home.ask("disconnect", server="up", again=True)
        until(lambda: f'"pid":{pid}' in noted().replace(" ", ""))
        said(one), said(alone)
        for line in noted().splitlines():
            assert json.loads(line)["pid"]
