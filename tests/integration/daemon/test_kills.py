"""A daemon that is killed in the middle of a message, in either direction."""

import json
import os
import random
import select
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from helpers.daemons import Home, daemon_home, said
from helpers.driver import Client, encoded, until

CALLS, SEARCHES = 5, 3


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with TemporaryDirectory(prefix="d-") as folder, daemon_home(Path(folder), monkeypatch) as home:
        yield home


class Relay:
    """Stands between one `mcpzip serve` and the daemon, and kills the daemon once so many bytes have passed.

    toward: "daemon" or "client". limit: the bytes; armed: from when on they are counted.
    """

    def __init__(self, home: Home, toward: str, limit: int) -> None:
        pid = home.pid
        assert pid is not None
        self.pid, self.toward, self.left = pid, toward, limit
        self.armed, self.killed = threading.Event(), threading.Event()
        self._path, self._real = home.socket, f"{home.socket}.real"
        os.rename(self._path, self._real)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(self._path)
        os.chmod(self._path, 0o600)
        self._listening.listen()
        self._thread = threading.Thread(target=self._run)

    @contextmanager
    def running(self) -> Iterator["Relay"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._thread.join(20)
            assert not self._thread.is_alive()

    def _run(self) -> None:
        client, _ = self._listening.accept()
        daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with closing(client), closing(daemon):
            daemon.connect(self._real)
            ends = {client: ("daemon", daemon), daemon: ("client", client)}
            while not self.killed.is_set():
                for source in select.select(list(ends), (), ())[0]:
                    data = source.recv(1 << 16)
                    if not data or self._passes(data, *ends[source]):
                        self._kill()
                        break
        os.unlink(self._real)

    def _passes(self, data: bytes, toward: str, there: socket.socket) -> bool:
        """Whether ``data``, a part of which was sent on, was more than may pass."""
        if toward != self.toward or not self.armed.is_set():
            there.sendall(data)
            return False
        there.sendall(data[: self.left])
        self.left -= len(data)
        return self.left < 0

    def _kill(self) -> None:
        os.unlink(self._path)
        self._listening.close()
        os.kill(self.pid, signal.SIGKILL)
        self.killed.set()


def requests(client: Client, first: int) -> dict[int, bytes]:
    """Calls and searches, by id. first: the id of the first."""
    found = {}
    for number in range(first, first + CALLS + SEARCHES):
        if (number - first) % 3 != 2:
            arguments: object = {
                "name": "up__say",
                "arguments": {"n": number, "pad": "x" * (number * 37 % 200)},
            }
            params = {"name": "execute_tool", "arguments": arguments}
        else:
            params = {"name": "search_tools", "arguments": {"query": f"say {number}"}}
        call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        found[number] = encoded(call)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("toward", ["daemon", "client"])
def test_a_daemon_killed_anywhere_in_a_message_loses_no_request_and_runs_none_twice(
    home: Home, toward: str, seed: int
) -> None:
    chance = random.Random(f"{toward} {seed}")
    with home.serving() as other, ExitStack() as stack:
        said(other)
        relay = stack.enter_context(Relay(home, toward, chance.randrange(1_500)).running())
        client = stack.enter_context(home.serving())
        said(client)
        relay.armed.set()
        asked = requests(client, 1_000)
        for line in asked.values():
            cut = chance.randrange(len(line))
            client.write(line[:cut])
            client.write(line[cut:])
        # What is left of the bytes after all these passes with more of them.
        last = 5_000
        while not relay.killed.is_set() and last < 5_050:
            line = encoded({"jsonrpc": "2.0", "id": last, "method": "ping"})
            client.write(line)
            client.answer(last)
            last += 1
        assert relay.killed.wait(20)
        answers = {number: client.answer(number) for number in asked}
        ran = Counter(call["n"] for call in home.calls("say") if "n" in call)
        for number, line in asked.items():
            if b"search_tools" in line:
                assert "up__say" in answers[number].text
            elif answers[number].failed:
                assert "may have run" in answers[number].text
                assert ran[number] <= 1
            else:
                assert json.loads(answers[number].text)["n"] == number
                assert ran[number] == 1
        heard = [json.loads(line).get("id") for line in client.heard]
        assert all(heard.count(number) == 1 for number in asked)
        assert said(client)["pid"] == said(other)["pid"]
        until(lambda: home.pid not in (None, relay.pid))
