"""Where and how an agent starts `mcpzip serve`, and what its daemon makes of that."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.daemons import Home, daemon_home, said, with_constants
from helpers.driver import INITIALIZE, PATIENCE, Client, command, encoded, ended, environment, until

from mcpzip.server.daemon import protocol
from mcpzip.system import local_socket


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch) as home:
        yield home


@contextmanager
def started(home: Home, *words: str, stderr: Any = subprocess.DEVNULL, **options: Any) -> Iterator[Client]:
    """`mcpzip serve` with options of `subprocess.Popen`."""
    variables = options.pop("env", {})
    process = subprocess.Popen(
        command("serve", *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environment(**variables),
        **options,
    )
    with ended(process):
        yield Client(process)


def test_agents_in_one_project_share_its_daemon(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPZIP_PROJECT", raising=False)
    project = home.folder / "project"
    project.mkdir()
    (project / ".mcpzip.json").write_text('{"mcpServers": {}}')
    home.socket, home.lock = protocol.socket_and_lock(str(home.config), str(project / ".mcpzip.json"))
    with home.serving(cwd=project) as one, home.serving(cwd=project) as other:
        assert said(one)["pid"] == said(other)["pid"]
        assert home.pid is not None


def test_a_relative_path_of_the_config_means_the_same_to_the_daemon(home: Home) -> None:
    named = {"MCPZIP_CONFIG": home.config.name}
    with started(home, env=named, cwd=home.config.parent) as client:
        assert said(client.begin())
        assert home.pid is not None
        assert pids(home) == [client.process.pid]


@pytest.mark.skipif(os.name != "posix", reason="descriptors are passed on only there")
def test_the_daemon_keeps_no_descriptor_of_the_agent_open(home: Home) -> None:
    output, theirs = os.pipe()
    try:
        with started(home, "--config", str(home.config), pass_fds=(theirs,)) as client:
            os.close(theirs)
            said(client.begin())
            client.leave()
        assert home.pid is not None
        assert select.select([output], (), (), PATIENCE)[0]
        assert os.read(output, 1) == b""
    finally:
        os.close(output)


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGCHLD elsewhere")
def test_an_agent_that_ignores_the_end_of_its_children_has_a_daemon_too(home: Home) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # which a child inherits
    try:
        process = subprocess.Popen(
            command("serve", "--config", str(home.config)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
        )
    finally:
        signal.signal(signal.SIGCHLD, before)
    with ended(process):
        assert said(Client(process).begin())
        assert home.pid is not None
        assert pids(home) == [process.pid]


def test_a_warning_ends_no_session_whose_stderr_is_closed(home: Home) -> None:
    with started(home, "--config", str(home.config), stderr=subprocess.PIPE) as client:
        assert client.process.stderr
        said(client.begin())
        client.process.stderr.close()
        edited = json.loads(home.config.read_text())
        edited["mcpServers"]["more"] = {"command": "no-such-program"}
        home.config.write_text(json.dumps(edited))
        until(lambda: "more" in client.status())
        assert said(client)


def test_environments_that_nobody_has_any_more_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = {"env": {"TOKEN": "${TOKEN}"}}
    with daemon_home(tmp_path, monkeypatch, up=up) as home, home.serving(TOKEN="first") as stays:
        said(stays)  # the handshake was perhaps answered before there was a daemon
        pid = home.pid
        for number in range(10):
            with home.serving(TOKEN=str(number)) as client:
                assert said(client)["token"] == str(number)
                assert client.process.pid in pids(home)
        assert home.pid == pid
        assert said(stays)["token"] == "first"


def test_servers_of_an_environment_end_when_its_agents_have_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"up": {"env": {"TOKEN": "${TOKEN}"}}, "daemon": {"idle_minutes": 0}}
    with daemon_home(tmp_path, monkeypatch, **keys) as home, home.serving(TOKEN="a") as stays:
        said(stays)
        with home.serving(TOKEN="b") as client:
            assert said(client)["token"] == "b"
        until(lambda: len(home.ask("report")["proxies"]) == 1)
        assert said(stays)["token"] == "a"


def test_an_edit_that_refers_to_a_variable_gives_each_agent_its_own_value(home: Home) -> None:
    with home.serving(TOKEN="of one") as one, home.serving(TOKEN="of the other") as other:
        assert said(one)["pid"] == said(other)["pid"]
        edited = json.loads(home.config.read_text())
        edited["mcpServers"]["up"]["env"] = {"TOKEN": "${TOKEN}"}
        home.config.write_text(json.dumps(edited))
        until(lambda: len(home.ask("report")["proxies"]) == 2)
        assert {said(one)["token"], said(other)["token"]} == {"of one", "of the other"}
        assert said(other)["token"] == "of the other"
        assert home.pid is not None


def test_an_edit_gives_no_agent_the_value_of_the_daemons_own_environment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "of the daemon")  # if it is not the first agent that started it
    with home.running("mcpzip.server.daemon.daemon"), home.serving(TOKEN="of one") as one:
        assert said(one)["pid"]
        assert home.pid is not None
        assert pids(home) == [one.process.pid]
        edited = json.loads(home.config.read_text())
        edited["mcpServers"]["up"]["env"] = {"TOKEN": "${TOKEN}"}
        home.config.write_text(json.dumps(edited))
        until(lambda: said(one)["token"])
        assert said(one)["token"] == "of one"


def pids(home: Home) -> list[int]:
    return [client["pid"] for proxy in home.ask("report")["proxies"] for client in proxy["clients"]]


def test_one_that_connects_while_the_daemon_ends_finds_the_next(home: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with home.serving() as busy:
        said(busy)
        call = busy.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        late = local_socket.connect(home.socket)
        assert late is not None
        with closing(late):
            late.setblocking(True)
            late.settimeout(PATIENCE)
            home.ask("ping")  # it has accepted `late` by now
            home.ask("stop")
            until(lambda: not os.path.exists(home.socket))
            late.sendall(protocol.client_greeting(b"", os.environ, str(tmp_path), continued=False))
            assert late.recv(1000) == b""  # and not that it has to be served without a daemon
        gate.touch()
        busy.answer(call)


def test_what_a_suspended_daemon_did_not_accept_does_not_run_there_later(home: Home) -> None:
    with home.serving() as before:
        said(before)
        pid = home.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            with home.serving(begin=False, constants={"ACCEPT_TIMEOUT": 0.5}) as client:
                first = encoded({"jsonrpc": "2.0", "id": 901, "method": "initialize", "params": INITIALIZE})
                client.write(first + encoded({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                assert not client.answer(client.send_call("up__say", {"n": 7})).failed
        finally:
            os.kill(pid, signal.SIGCONT)
        said(before)
        until(lambda: pids(home) == [before.process.pid])
        assert [each for each in home.calls("say") if each.get("n")] == [{"n": 7}]


def test_a_long_call_outlasts_the_socket_of_its_daemon(home: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with home.serving(constants={"SILENCE": 0.05, "PROBE_TIMEOUT": 0.05}) as client:
        said(client)
        pid = home.pid
        os.unlink(home.socket)
        call = client.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        with home.serving() as other:  # which starts a daemon of its own, so this takes a while
            assert said(other)
        gate.touch()
        assert not client.answer(call).failed
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        home.wait_for_end()


def test_a_client_that_reads_late_gets_whole_lines_when_it_is_served_alone(home: Home) -> None:
    words = with_constants({"LOSSES": 1, "LEAVING": 0.0}, str(home.config))
    process = subprocess.Popen(
        [sys.executable, "-c", words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        bufsize=0,
    )
    with ended(process):
        assert process.stdin
        assert process.stdout
        process.stdin.write(
            encoded({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
        )
        for number in range(1, 21):
            arguments = {"name": "up__say", "arguments": {"x": "y" * 40_000}}
            params = {"name": "execute_tool", "arguments": arguments}
            process.stdin.write(
                encoded({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            )
        until(lambda: len(home.calls("say")) == 20)
        home.kill()
        client = Client(process)  # which reads from now on
        assert client.answer(20).message["id"] == 20
        client.write(encoded({"jsonrpc": "2.0", "id": 99, "method": "ping"}))
        assert client.answer(99).result == {}
        heard = [json.loads(line).get("id") for line in client.heard]
        assert set(range(21)) <= set(heard)


def test_agents_share_a_server_if_their_path_finds_the_same_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that a desktop started with a short PATH made the program unknown to all others."""
    programs, empty = tmp_path / "programs", tmp_path / "empty"
    for folder in (programs, empty):
        folder.mkdir()
    (programs / "a-python").symlink_to(sys.executable)
    with daemon_home(tmp_path, monkeypatch, up={"command": "a-python"}) as home:
        path = os.environ["PATH"]
        with (
            home.serving(PATH=path) as without,
            home.serving(PATH=f"{programs}{os.pathsep}{path}") as one,
            home.serving(PATH=f"{empty}{os.pathsep}{programs}{os.pathsep}{path}") as other,
        ):
            assert "was not found" in without.execute("up__say").text
            assert said(one)["pid"] == said(other)["pid"]
            assert home.pid is not None
