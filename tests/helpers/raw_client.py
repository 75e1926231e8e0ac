"""A client of mcpzip that looks at nothing: JSON texts in, JSON texts out, over either transport.

The rule: what it sends and gets are the bytes; only the id of a response, and where a response begins and
ends, is read. None of it is mcpzip's, or the SDK's.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from helpers.driver import command, ended, environment

INITIALIZE = (
    b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}'  # legacy
)
PATIENCE = 30.0


class Reply(NamedTuple):
    """The id of a request, and the whole response to it, as it came."""

    id: int
    text: bytes


class Downstream(Protocol):
    """How a client reaches mcpzip."""

    def ask(self, method: str, params: bytes) -> Reply:
        """One request and its response. ``params``: JSON text."""

    def tell(self, method: str) -> None:
        """A notification."""


class OverStdio:
    """A client on the pipes of a process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin
        assert process.stdout
        self._in, self._out = process.stdin, process.stdout
        self._ids = count(1)

    def ask(self, method: str, params: bytes) -> Reply:
        number = next(self._ids)
        self._in.write(_request(number, method, params) + b"\n")
        self._in.flush()
        for line in self._out:
            if line.startswith(b'{"jsonrpc":"2.0","id":%d,' % number):
                return Reply(number, line)
        raise AssertionError(f"it ended before it answered {method}")

    def tell(self, method: str) -> None:
        self._in.write(_notification(method) + b"\n")
        self._in.flush()


class OverHttp:
    """A client of Streamable HTTP, with a session, on one connection that is kept."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        assert place.hostname
        self._connection = HTTPConnection(place.hostname, place.port, timeout=PATIENCE)
        self._path = place.path
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._ids = count(1)

    def ask(self, method: str, params: bytes) -> Reply:
        number = next(self._ids)
        kind, body = self._post(_request(number, method, params))
        for text in data_of_events(body) if kind.startswith("text/event-stream") else [body]:
            message = json.loads(text)
            if message.get("id") == number and "method" not in message:
                return Reply(number, text)
        raise AssertionError(f"no answer to {method} in {body[:500]!r}")

    def tell(self, method: str) -> None:
        self._post(_notification(method))

    def close(self) -> None:
        self._connection.close()

    def _post(self, body: bytes) -> tuple[str, bytes]:
        self._connection.request("POST", self._path, body, self._headers)
        response = self._connection.getresponse()
        text = response.read()
        assert response.status in (200, 202), (response.status, text[:500])
        if session := response.headers.get("Mcp-Session-Id"):
            self._headers |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
        return response.headers.get("Content-Type", ""), text


@contextmanager
def serving(config: Path, *words: str) -> "Iterator[subprocess.Popen[bytes]]":
    """`mcpzip serve`; what it says to its user goes to ``stderr.log``."""
    # A home of its own: this one is older than the one each test gets.
    home = {name: str(config.parent) for name in ("HOME", "USERPROFILE")}
    env = {key: value for key, value in environment(**home).items() if not key.startswith("XDG_")}
    with (config.parent / "stderr.log").open("ab") as errors:
        process = subprocess.Popen(
            [*command("serve", "--config", str(config)), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=env,
        )
    with ended(process):
        yield process


def listening_at(config: Path, process: "subprocess.Popen[bytes]") -> str:
    """The URL it says it serves at; "" as long as it doesn't."""
    told = (config.parent / "stderr.log").read_text("utf-8")
    assert process.poll() is None, told
    said = re.search(r"^listening (\S+)$", told, re.MULTILINE)
    return said[1] if said else ""


def begin(client: Downstream) -> None:
    """The legacy handshake."""
    client.ask("initialize", INITIALIZE)
    client.tell("notifications/initialized")


def _request(number: int, method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, method.encode(), params)


def _notification(method: str) -> bytes:
    return b'{"jsonrpc":"2.0","method":"%b"}' % method.encode()


def data_of_events(body: bytes) -> list[bytes]:
    """The data of each event (HTML standard, server-sent events: any of three line ends)."""
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found = []
    for event in lines.split(b"\n\n"):
        data = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
        if any(data):
            found.append(b"\n".join(data))
    return found
