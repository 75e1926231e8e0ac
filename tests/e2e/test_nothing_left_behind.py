"""However mcpzip is ended, nothing that it started lives on: not the servers, which here
ignore the end of their input and SIGTERM, and not what they forked."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mcpzip_fakes.launch import FakeServer

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and process groups are POSIX's")

WITHIN = 10.0
"""Seconds: two are promised, and machines are shared. What isn't ended lives for two minutes."""
_POLL = 0.02  # s
_STUBBORN = ("ignore-eof", "ignore-sigterm", "fork")
_CLIENT = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
time.sleep(600)
"""
"""A client that will be killed before it can say goodbye."""


class Tree:
    """`mcpzip serve`, started by a client, with two stubborn servers under it."""

    def __init__(self, client: "subprocess.Popen[bytes]", mcpzip: int, servers: list[FakeServer]) -> None:
        self.client, self.mcpzip = client, mcpzip
        for server in servers:
            server.record.wait_for(lambda record: record.received("tools/list"), timeout=30)
        starts = [line for server in servers for line in server.record.events("start")]
        forks = [line for server in servers for line in server.record.events("grandchild")]
        self.below = [line.pid for line in starts] + [int(str(line.detail["child"])) for line in forks]
        assert len(self.below) == 2 * len(servers)
        assert all(map(alive, self.below))

    def close_input(self) -> None:
        """The client leaves politely."""
        assert self.client.stdin
        self.client.stdin.close()


def terminate(tree: Tree) -> None:
    os.kill(tree.mcpzip, signal.SIGTERM)


def interrupt(tree: Tree) -> None:
    os.kill(tree.mcpzip, signal.SIGINT)


def kill(tree: Tree) -> None:
    os.kill(tree.mcpzip, signal.SIGKILL)


def alive(pid: int) -> bool:
    """Whether the process runs. One that has ended and that nobody has asked after yet doesn't."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except FileNotFoundError:
        words = ["ps", "-o", "stat=", "-p", str(pid)]
        state = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return state.strip()[:1] not in ("", "Z", "X")


def left_after(pids: list[int], seconds: float) -> list[int]:
    """Those of ``pids`` that are alive after ``seconds``; it doesn't wait that long when all have ended."""
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(_POLL)
    return left


@pytest.fixture
def command(mcpzip: str, tmp_path: Path) -> list[str]:
    return [mcpzip, "serve", "--config", str(tmp_path / "config.json")]


@pytest.fixture
def servers(fake_mcp: Callable[..., FakeServer], tmp_path: Path) -> list[FakeServer]:
    made = [fake_mcp("echo", name=name, faults=list(_STUBBORN)) for name in ("one", "two")]
    entries = {server.name: server.config for server in made}
    (tmp_path / "config.json").write_text(json.dumps({"mcpServers": entries}), "utf-8")
    return made


@pytest.mark.parametrize("end", [Tree.close_input, terminate, interrupt, kill])
def test_when_it_ends(command: list[str], servers: list[FakeServer], end: Callable[[Tree], None]) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        tree = Tree(process, process.pid, servers)
        end(tree)
        assert left_after([process.pid, *tree.below], WITHIN) == []
    assert process.returncode == (-signal.SIGKILL if end is kill else 0)


def test_when_its_client_is_killed(command: list[str], servers: list[FakeServer]) -> None:
    with subprocess.Popen([sys.executable, "-c", _CLIENT, *command], stdout=subprocess.PIPE) as client:
        assert client.stdout
        tree = Tree(client, int(client.stdout.readline()), servers)
        client.kill()
        assert left_after([tree.mcpzip, *tree.below], WITHIN) == []


def test_with_a_call_under_way(command: list[str], servers: list[FakeServer]) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        tree = Tree(process, process.pid, servers)
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        call = {"name": "execute_tool", "arguments": {"name": "one__slow"}}
        for number, (method, params) in enumerate((("initialize", hello), ("tools/call", call)), 1):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        servers[0].record.wait_for(lambda record: record.calls("slow"))
        terminate(tree)
        assert left_after([process.pid, *tree.below], WITHIN) == []
