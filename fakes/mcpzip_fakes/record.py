"""The record of a fake's messages and events, one JSON object a line.

    {"time": 1732147200.1, "pid": 7, "connection": 1, "what": "in", "message": {"jsonrpc": "2.0", …}}
    {"time": …, "pid": 7, "connection": 0, "what": "exit", "reason": "end of input", "code": 0}

``what`` is ``in`` or ``out`` for a message and otherwise the name of an event: start, connected, closed,
exit, crash, cancelled, held, release, changed, grandchild, http; of a protected server also bearer, auth,
auth-answer; of a cassette also played (the number of an exchange) and unmatched (what the client is told).
A message that isn't JSON is under ``text``, with invalid bytes as backslash escapes. Each line is one `write`
to a file opened for appending, so that several processes can share a record.

The rule: every fake imports this at its start, so what only tests need is imported where they need it.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from mcpzip_fakes.answer import JsonObject

if TYPE_CHECKING:
    from pathlib import Path

_T = TypeVar("_T")
_POLL = 0.005
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


class Writer:
    """Appends to a record file; does nothing without a path."""

    def __init__(self, path: str | None) -> None:
        self._file = -1 if path is None else os.open(path, _APPEND, 0o600)
        self._pid = os.getpid()
        self.path = path or ""

    def message(self, what: str, raw: bytes, connection: int = 1, **detail: object) -> None:
        """Record a message as it was on the wire, without its newline."""
        if self._file < 0:
            return
        head = self._head(what, connection, detail)
        body = raw.strip()
        try:
            body.decode()
            msgspec.json.decode(body, type=msgspec.Raw)
        except (UnicodeDecodeError, msgspec.DecodeError):
            text = msgspec.json.encode(body.decode("utf-8", "backslashreplace"))
            os.write(self._file, b'%s,"text":%s}\n' % (head, text))
            return
        if b"\n" in body:  # pretty-printed JSON, which HTTP bodies may be
            body = msgspec.json.format(body, indent=-1)
        os.write(self._file, b'%s,"message":%s}\n' % (head, body))

    def event(self, what: str, detail: JsonObject | None = None, connection: int = 0) -> None:
        """Record an event."""
        if self._file >= 0:
            os.write(self._file, self._head(what, connection, detail or {}) + b"}\n")

    def _head(self, what: str, connection: int, detail: JsonObject) -> bytes:
        line = {"time": time.time(), "pid": self._pid, "connection": connection, "what": what, **detail}
        return msgspec.json.encode(line)[:-1]

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a record. message: the JSON-RPC message, {} for an event; text: a message that
    isn't JSON; detail: all other members of the line."""

    time: float
    pid: int
    connection: int
    what: str
    message: JsonObject = {}
    text: str = ""
    detail: JsonObject = {}

    @property
    def method(self) -> str:
        """The message's method; "" for an answer or an event."""
        value = self.message.get("method")
        return value if isinstance(value, str) else ""

    @property
    def params(self) -> JsonObject:
        """The message's params; {} when it has none."""
        value = self.message.get("params")
        return value if isinstance(value, dict) else {}


class Record:
    """Reads a record, even while others still write to it: each method first reads the new lines."""

    def __init__(self, path: "str | Path") -> None:
        self._path = os.fspath(path)
        self._offset = 0
        self._lines: list[Line] = []

    @property
    def path(self) -> "Path":
        """Its file."""
        from pathlib import Path

        return Path(self._path)

    @classmethod
    def load(cls, path: "str | Path") -> "Record":
        """The record in ``path``; empty while the file doesn't exist."""
        return cls(path)

    def lines(self) -> list[Line]:
        """All lines, in the order they were written."""
        if os.path.exists(self._path):
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                fresh = file.read()
            whole, newline, _ = fresh.rpartition(b"\n")
            self._offset += len(whole) + len(newline)
            self._lines += [_line(raw) for raw in whole.split(b"\n") if raw]
        return list(self._lines)

    def received(self, method: str | None = None) -> list[Line]:
        """The messages from clients, or only those of one method."""
        return [line for line in self.lines() if line.what == "in" and method in (None, line.method)]

    def sent(self) -> list[Line]:
        """The messages that were sent."""
        return [line for line in self.lines() if line.what == "out"]

    def methods(self) -> list[str]:
        """The methods of the received requests and notifications, in order."""
        return [line.method for line in self.received() if line.method]

    def calls(self, tool: str | None = None) -> list[JsonObject]:
        """The params of each received tools/call, or only those of one tool."""
        calls = [line.params for line in self.received("tools/call")]
        return [params for params in calls if tool in (None, params.get("name"))]

    def events(self, what: str) -> list[Line]:
        """The events of one name."""
        return [line for line in self.lines() if line.what == what]

    def wait_for(self, predicate: Callable[["Record"], _T], timeout: float = 10.0) -> _T:
        """The result of ``predicate`` once it is true. Raises TimeoutError, with the last lines, if it stays
        false.

        It polls and blocks; in a coroutine use `until`.
        """
        deadline = time.monotonic() + timeout
        while not (found := predicate(self)):
            if time.monotonic() > deadline:
                raise self._too_late(timeout)
            time.sleep(_POLL)
        return found

    async def until(self, predicate: Callable[["Record"], _T], timeout: float = 10.0) -> _T:
        """`wait_for`, without blocking the event loop."""
        deadline = time.monotonic() + timeout
        while not (found := predicate(self)):
            if time.monotonic() > deadline:
                raise self._too_late(timeout)
            await asyncio.sleep(_POLL)
        return found

    def _too_late(self, timeout: float) -> TimeoutError:
        seen = ", ".join(f"{line.what} {line.method}".strip() for line in self.lines()[-20:]) or "nothing"
        return TimeoutError(
            f"{self._path} did not come to it within {timeout:g} s; the last it has is: {seen}"
        )


def begun(path: str | None, start: JsonObject) -> tuple[int, Writer]:
    """Writes the event ``start`` of a new process. Returns the number of the process on this record, from 1,
    and its writer. Several can start at the same time: the number is that of its ``start`` line.
    """
    writer = Writer(path)
    if path is None:
        return 1, writer
    writer.event("start", start)
    starts = Record(path).events("start")
    return max(place for place, line in enumerate(starts, 1) if line.pid == os.getpid()), writer


def _line(raw: bytes) -> Line:
    try:
        fields = cast(JsonObject, msgspec.json.decode(raw))
    except msgspec.DecodeError:  # a number too large for a double is valid JSON
        import json

        fields = cast(JsonObject, json.loads(raw))
    known: JsonObject = {
        key: fields.pop(key)
        for key in ("time", "pid", "connection", "what", "message", "text")
        if key in fields
    }
    if not isinstance(known.get("message", {}), dict):  # JSON, but no message, such as a batch
        known["text"] = msgspec.json.encode(known.pop("message")).decode()
    return msgspec.convert({**known, "detail": fields}, Line)
