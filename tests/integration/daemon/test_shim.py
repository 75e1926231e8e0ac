"""How `mcpzip serve` and its daemon meet, keep an eye on each other, and part."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from helpers.daemons import Home, daemon_home, said, with_constants
from helpers.driver import INITIALIZE, Client, encoded, ended, environment, until

from mcpzip.model import limits
from mcpzip.server.daemon import protocol
from mcpzip.system import local_socket

MANY = 1_100
"""Descriptors that are open before `mcpzip serve` opens its own: more than ``select`` can watch."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch) as home:
        yield home


@contextmanager
def program(text: str, **variables: str) -> Iterator[Client]:
    """A program that begins as ``text`` says, and then is a `mcpzip serve`."""
    process = subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
    )
    with ended(process):
        yield Client(process)


def may_open(number: int) -> bool:
    """Whether a process may have so many descriptors."""
    import resource

    hardest = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return hardest == resource.RLIM_INFINITY or hardest >= number


def with_many_descriptors(rest: str) -> str:
    limit = f"import os, resource as r; r.setrlimit(r.RLIMIT_NOFILE, ({MANY + 100}, {MANY + 100}))"
    return f"{limit}\nfor _ in range({MANY}): os.dup(0)\n{rest}"


@pytest.mark.parametrize("alone", [False, True])
def test_it_serves_with_more_descriptors_than_select_can_watch(home: Home, alone: bool) -> None:
    if not may_open(MANY + 100):
        pytest.skip("so many descriptors are not allowed here")
    start = f"from mcpzip.server.start import main\nmain({str(home.config)!r}, alone={alone})"
    for _ in range(2):  # the second time there is a cache, from which the handshake is answered
        with program(with_many_descriptors(start)) as client:
            assert said(client.begin())
            assert (home.pid is None) == alone
            client.leave()
        home.stop()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only there a suspended process is seen")
def test_the_word_of_another_daemon_says_nothing_about_a_suspended_one(home: Home) -> None:
    """The daemon that had taken its place was asked, and the client waited for ever."""
    constants = {"SILENCE": 0.2, "PROBE_TIMEOUT": 20.0}
    with home.serving(constants=constants) as client:
        said(client)
        first = home.pid
        assert first is not None
        os.unlink(home.socket)
        os.unlink(home.lock)
        with home.serving() as other:
            said(other)
            second = home.pid
            assert second not in (None, first)
            os.kill(first, signal.SIGSTOP)
            try:
                call = client.send_call("up__say", {"n": 1})
                search = client.send("tools/call", {"name": "search_tools", "arguments": {"query": "say"}})
                assert "may have run" in client.answer(call).text
                assert "up__say" in client.answer(search).text
                assert said(client)["pid"] == said(other)["pid"]
            finally:
                os.kill(first, signal.SIGKILL)


@pytest.mark.parametrize("words", [(), ("--no-daemon",)])
def test_a_last_line_without_its_newline_is_a_message(home: Home, words: tuple[str, ...]) -> None:
    with home.serving(words=words) as client:
        said(client)
        params = {"name": "execute_tool", "arguments": {"name": "up__say", "arguments": {"last": True}}}
        line = encoded({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params})
        client.write(line.removesuffix(b"\n"))
        assert client.process.stdin
        client.process.stdin.close()
        assert json.loads(client.answer(77).text)["last"]
        assert client.process.wait(20) == 0


def test_a_last_line_without_its_newline_is_none_if_mcpzip_serve_was_killed(home: Home) -> None:
    with home.serving() as other:
        said(other)
        connection = local_socket.connect(home.socket)
        assert connection is not None
        with closing(connection):
            connection.setblocking(True)
            first = encoded({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
            connection.sendall(protocol.client_greeting(b"", os.environ, "/", continued=False) + first)
            heard = b""
            while b'"id":1,' not in heard:
                heard += connection.recv(1 << 16)
            params = {"name": "execute_tool", "arguments": {"name": "up__say", "arguments": {"cut": True}}}
            line = encoded({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
            connection.sendall(line.removesuffix(b"\n"))
        until(lambda: len(home.ask("report")["proxies"][0]["clients"]) == 1)
        said(other)
        assert not [call for call in home.calls("say") if call.get("cut")]


def test_an_environment_too_large_for_the_daemon_is_served_without_it_and_said(home: Home) -> None:
    """The daemon closed the connection without a word, and its agent tried again and again."""
    large = {f"LARGE_{at}": "é" * 60_000 for at in range(limits.GREETING // 360_000 + 1)}
    with home.serving() as other:
        said(other)
        with program(with_constants({"REFUSALS": 10_000}, str(home.config)), **large) as client:
            assert said(client.begin())["pid"] != said(other)["pid"]
            client.leave()
            assert client.process.stderr
            assert b"4 MiB" in client.process.stderr.read()
