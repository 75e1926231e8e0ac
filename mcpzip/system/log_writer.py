"""Writes the log of one process.

The rules: entries are only queued by who notes them; a thread redacts, encodes and writes them. Nothing that
goes wrong with the disk is an error: what can't be written is counted, and the count is written later. Of a
server that writes too much, a part is left out, so that what the others wrote is still there. The newest
files are kept.
"""

import os
import time
from collections.abc import Callable, Sequence

from mcpzip.system.event_log import LEVELS, Level, Stream
from mcpzip.system.files import remove_file
from mcpzip.system.log_files import LogEntry, encoded, file_name, log_files
from mcpzip.system.private_files import private_folder
from mcpzip.system.state_files import write_gitignore
from mcpzip.system.write_queue import WriteQueue

FILE_SIZE = 1 << 20
"""Bytes of one file. Of a process there are at most two."""
TOTAL_SIZE, MOST_FILES = 16 << 20, 100
"""Of all files of one config. Beyond that, the oldest are removed."""
LINE = 2_000
"""Characters of a text. The rest is cut with ``…``."""
BURST, RATE = 256 << 10, 2 << 10
"""Bytes that a server may write at once, and per second after that. The rest is left out and counted."""
LINES_AT_ONCE = 200
"""Lines of one read from a server's pipe. Those before the last of them are left out and counted."""
WAITING = 5_000
"""Entries that may wait for the disk. More are counted only."""
RETRY = 10.0
"""Seconds after which a file that could not be opened is tried again."""

_EXAMINED = 4 * LINE
_EDGE = 500
"""Characters before the end of a long text that are dropped, because a secret that is cut is not redacted."""
_OVERHEAD = 100
"""Bytes of a line besides its text, about."""


class LogWriter:
    """A `event_log.Log` that writes to files in a folder. Thread-safe."""

    def __init__(
        self,
        folder: str,
        name: str,
        level: Level,
        redact: Callable[[str], str],
        warn: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """name: the config's. level: the lowest that is written. warn: called once, in another thread, if
        nothing can be written.
        """
        self._folder, self._name, self._redact, self._warn = folder, name, redact, warn
        self._levels = frozenset(LEVELS[LEVELS.index(level) :])
        self._pid = os.getpid()
        self._start = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._queue: WriteQueue[tuple[float, Level, str, str, str | bytes]] = WriteQueue(
            "log", WAITING, self._write_some, self._close_file
        )
        self._budgets: dict[str, _Budget] = {}
        self._file: int | None = None
        self._number = self._size = 0
        self._retry_at = 0.0
        self._warned = False

    def note(self, level: Level, server: str, event: str, text: str) -> None:
        """Implements `event_log.Log`."""
        if level in self._levels:
            self._put(level, server, event, text)

    def output(self, server: str, stream: Stream, lines: Sequence[bytes]) -> None:
        """Implements `event_log.Log`. What is on stdout is a mistake of the server's, so it is a warning."""
        level: Level = "info" if stream == "stderr" else "warning"
        if level not in self._levels:
            return
        budget = self._budgets.setdefault(server, _Budget())
        budget.left_out += max(0, len(lines) - LINES_AT_ONCE)
        for line in lines[-LINES_AT_ONCE:]:
            part = line[:_EXAMINED].rstrip()
            if not part:
                continue
            if not budget.take(len(part) + _OVERHEAD):
                budget.left_out += 1
                continue
            if budget.left_out:
                left_out, budget.left_out = budget.left_out, 0
                self._put(
                    "warning", server, stream, f"(lines left out, because it writes too much: {left_out:,})"
                )
            self._put(level, server, stream, part)

    def close(self, timeout: float) -> None:
        """Writes what is queued, for ``timeout`` seconds at most."""
        self._queue.close(timeout)

    def _put(self, level: Level, server: str, event: str, text: str | bytes) -> None:
        self._queue.put((time.time(), level, server, event, text))

    # --- in the thread ---

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def _write_some(self) -> None:
        waiting, lost = self._queue.items, self._queue.lost
        lines, size = list[bytes](), 0
        if lost:
            text = f"(lines that could not be written: {lost:,})"
            lines.append(encoded(LogEntry(waiting[0][0], "warning", self._pid, "", "lost", text)))
        while waiting and size < FILE_SIZE // 4:
            at, level, server, event, said = waiting.popleft()
            text = self._clean(said if isinstance(said, str) else said.decode("utf-8", "replace"))
            lines.append(encoded(LogEntry(at, level, self._pid, server, event, text)))
            size += len(lines[-1])
        try:
            self._write(b"".join(lines))
            self._queue.count_lost(-lost)
        except OSError as error:
            self._queue.count_lost(len(lines) - (lost > 0))
            if not self._warned:
                self._warned = True
                self._warn(f"{self._folder}: the log can't be written ({error.strerror or error}).")

    def _clean(self, text: str) -> str:
        shown = self._redact(text[:_EXAMINED])
        if len(text) >= _EXAMINED:
            shown = shown[:-_EDGE]
        return shown if len(shown) <= LINE else f"{shown[: LINE - 1]}…"

    def _write(self, data: bytes) -> None:
        """Appends ``data``, which is whole lines: all of it or nothing. Raises OSError."""
        if self._file is None or self._size + len(data) > FILE_SIZE or os.fstat(self._file).st_nlink == 0:
            self._open_next()
        assert self._file is not None
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _open_next(self) -> None:
        """Opens the next file of this process, and removes those that are too many. Raises OSError."""
        if time.monotonic() < self._retry_at:
            raise OSError("it could not be opened")
        self._retry_at = time.monotonic() + RETRY
        if self._file is not None:
            os.close(self._file)
            self._file = None
        private_folder(self._folder, make=True)
        write_gitignore(self._folder)
        self._number += 1
        path = os.path.join(self._folder, file_name(self._name, self._start, self._pid, self._number))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._file, self._size = os.open(path, flags, 0o600), 0
        self._retry_at = 0.0
        self._remove_old(os.path.basename(path))

    def _remove_old(self, current: str) -> None:
        own = f"{self._name}.{self._start}.{self._pid}."
        files: list[tuple[float, int, str]] = []
        for file in log_files(self._folder, self._name):
            try:
                state = os.lstat(os.path.join(self._folder, file))
            except OSError:
                continue
            files.append((state.st_mtime, state.st_size, file))
        files.sort(reverse=True)
        earlier = sorted(file for _, _, file in files if file.startswith(own) and file != current)[:-1]
        total = 0
        for at, (_, size, file) in enumerate(files):
            total += size
            if file != current and (file in earlier or total > TOTAL_SIZE - FILE_SIZE or at >= MOST_FILES):
                try:
                    remove_file(os.path.join(self._folder, file))
                except OSError:
                    pass  # another process is reading it (Windows), or has removed it


class _Budget:
    """How much a server may still write now, in bytes. left_out: lines since the last that was written."""

    def __init__(self) -> None:
        self.left_out = 0
        self._left, self._at = float(BURST), time.monotonic()

    def take(self, size: int) -> bool:
        """Whether ``size`` bytes may be written now."""
        now = time.monotonic()
        self._left = min(float(BURST), self._left + (now - self._at) * RATE)
        self._at = now
        if size > self._left:
            return False
        self._left -= size
        return True
