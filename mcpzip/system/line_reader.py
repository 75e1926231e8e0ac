"""Lines from a descriptor, so many at a time.

The rule: whoever writes lines as fast as it can gets its turn like everybody else. What one read brought is
acted on in pieces of so many lines at most, between which the loop sees to all others; nothing more is
read before that.
"""

import asyncio
from collections.abc import Callable

from mcpzip.system.pipes import Reader, read_from


def read_lines_from(
    fd: int,
    on_data: Callable[[bytes], None],
    on_eof: Callable[[], None],
    *,
    at_once: int,
    first: bytes = b"",
) -> Reader:
    """As `pipes.read_from`, in turns. at_once: lines in one; first: what was read from ``fd`` already."""
    turns = LineReader(on_data, on_eof, at_once)
    turns.reader = read_from(fd, turns.arrived, turns.ended)
    if first:
        turns.arrived(first)
    return turns


class LineReader:
    """What was read and not acted on. reader: of the descriptor."""

    def __init__(self, on_data: Callable[[bytes], None], on_eof: Callable[[], None], at_once: int) -> None:
        self._at_once = at_once
        self.reader: Reader | None = None
        self._on_data, self._on_eof = on_data, on_eof
        self._rest, self._at = b"", 0
        self._paused = self._over = self._closed = False
        self._next: asyncio.Handle | None = None

    def arrived(self, data: bytes) -> None:
        """``data`` was read."""
        if not self._rest and not self._paused and data.count(b"\n") <= self._at_once:
            self._on_data(data)
            return
        self._rest, self._at = self._rest[self._at :] + data, 0
        if self.reader is not None:
            self.reader.pause()
        if self._next is None:
            self._turn()

    def ended(self) -> None:
        """Nothing more will be."""
        self._over = True
        self._go_on()

    def pause(self) -> None:
        """Reads and delivers nothing until `resume`."""
        self._paused = True
        if self.reader is not None:
            self.reader.pause()

    def resume(self) -> None:
        self._paused = False
        self._go_on()

    def close(self) -> None:
        self._closed = True
        self._rest = b""
        if self._next is not None:
            self._next.cancel()
        if self.reader is not None:
            self.reader.close()

    def hung_up(self) -> bool:
        return self.reader is not None and self.reader.hung_up()

    def _turn(self) -> None:
        self._next = None
        if self._paused or self._closed:
            return
        start, end = self._at, self._at
        for _ in range(self._at_once):
            end = self._rest.find(b"\n", end) + 1
            if not end:
                end = len(self._rest)
                break
        self._at = end
        piece = self._rest[start:end]
        if end == len(self._rest):
            self._rest, self._at = b"", 0
        try:
            self._on_data(piece)
        finally:
            self._go_on()

    def _go_on(self) -> None:
        if self._paused or self._closed or self._next is not None:
            return
        if self._rest:
            self._next = asyncio.get_running_loop().call_soon(self._turn)
        elif self._over:
            self._closed = True
            self._on_eof()
        elif self.reader is not None:
            self.reader.resume()
