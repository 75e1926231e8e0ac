"""The files of the log: their names, the format of their lines, and reading them.

Each process writes files of its own, so that no lock is needed and no line is torn. The name of a file has
the config's name, the start of the process (UTC), its process id and a number that counts its files:
``config.json.20261124T031500Z.4711.0001.log``. A line is a JSON object of ASCII characters, so that showing
the file in a terminal is harmless:

    {"at":1795489200.123,"level":"info","pid":4711,"server":"slack","event":"stderr","text":"listening"}

The rule for reading: a line that can't be read is left out.
"""

import json
import os
import re

import msgspec

from mcpzip.system.event_log import LEVELS, Level
from mcpzip.system.state_files import read_state_from

READ_AT_ONCE = 64 << 20
"""Bytes of one file that are read at once: more than mcpzip writes."""
_LATEST = 1e11
"""Unix seconds that can be shown as a time."""


class LogEntry(msgspec.Struct, frozen=True):
    """One line. at: Unix seconds. pid: of the mcpzip that wrote it. server: "" for mcpzip itself. event: what
    happened, or the stream that ``text`` was written to.
    """

    at: float
    level: Level
    pid: int
    server: str
    event: str
    text: str


def encoded(entry: LogEntry) -> bytes:
    """``entry`` as a line."""
    values = {name: getattr(entry, name) for name in ("at", "level", "pid", "server", "event", "text")}
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def decoded(line: bytes) -> LogEntry | None:
    """The entry of a line; None if it has none."""
    try:
        match json.loads(line):
            case {
                "at": int() | float() as at,
                "level": str(level),
                "pid": int(pid),
                "server": str(server),
                "event": str(event),
                "text": str(text),
            } if level in LEVELS and 0 <= at < _LATEST:
                return LogEntry(float(at), level, pid, server, event, text)
    except (ValueError, RecursionError, OverflowError):
        pass
    return None


def file_name(name: str, start: str, pid: int, number: int) -> str:
    """The name of file ``number`` of the process ``pid``, which began at ``start``. name: the config's."""
    return f"{name}.{start}.{pid}.{number:04}.log"


def log_files(folder: str, name: str) -> list[str]:
    """The names of the files in ``folder`` for the config called ``name``, oldest process first."""
    pattern = re.compile(re.escape(name) + r"\.\d{8}T\d{6}Z\.\d+\.\d{4,9}\.log")
    try:
        return sorted(filter(pattern.fullmatch, os.listdir(folder)))
    except OSError:
        return []


class LogReader:
    """Reads the entries of all processes, also as they are written."""

    def __init__(self, folder: str, name: str) -> None:
        """name: the config's."""
        self._folder, self._name = folder, name
        self._ends: dict[str, int] = {}
        """By file, how many of its bytes have been read."""

    def read(self, event: str = "") -> list[LogEntry]:
        """The entries written since the last call, by time. event: only those of this event."""
        mark = b'"event":"%b"' % event.encode() if event else b""
        found: list[LogEntry] = []
        for file in log_files(self._folder, self._name):
            begin = self._ends.get(file, 0)
            try:
                data = read_state_from(os.path.join(self._folder, file), begin, READ_AT_ONCE)
            except OSError:
                continue  # removed in the meantime, or another user's
            whole = data[: data.rfind(b"\n") + 1]
            self._ends[file] = begin + len(whole)
            lines = [line for line in whole.splitlines() if mark in line]
            found += [entry for entry in map(decoded, lines) if entry and event in ("", entry.event)]
        return sorted(found, key=lambda entry: entry.at)
