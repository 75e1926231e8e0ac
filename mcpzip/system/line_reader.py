"""Reads lines from a descriptor without letting a fast sender starve the event loop.

The lines of one read are delivered in batches of a limited size. Between two batches the loop runs other
tasks, and nothing more is read until all lines are delivered.
"""

import asyncio
from collections.abc import Callable

from mcpzip.system.pipes import Reader, read_from

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    import socket


def read_lines_from(
    source: "int | socket.socket",
    on_data: Callable[[bytes], None],
    on_eof: Callable[[], None],
    *,
    at_once: int,
    first: bytes = b"",
) -> Reader:
    """As `pipes.read_from`, in batches.

    source: a descriptor, or a socket where the loop can't watch descriptors. at_once: the maximum number of
    lines in a batch. first: data that was read from ``source`` before.
    """
    lines = LineReader(on_data, on_eof, at_once)
    if isinstance(source, int):
        lines.reader = read_from(source, lines.data_received, lines.eof_received)
    else:
        from mcpzip.system.socket_streams import SocketReader

        lines.reader = SocketReader(source, lines.data_received, lines.eof_received)
    if first:
        lines.data_received(first)
    return lines


class LineReader:
    """Holds the data that was read and is not delivered yet. reader: reads the descriptor."""

    def __init__(self, on_data: Callable[[bytes], None], on_eof: Callable[[], None], at_once: int) -> None:
        self._at_once = at_once
        self.reader: Reader | None = None
        self._on_data, self._on_eof = on_data, on_eof
        self._buffer, self._offset = b"", 0
        self._paused = self._eof = self._closed = False
        self._scheduled: asyncio.Handle | None = None

    def data_received(self, data: bytes) -> None:
        """Delivers ``data``, or a first batch of it."""
        if not self._buffer and not self._paused:
            first = data.find(b"\n") + 1
            if first in (0, len(data)) or data.count(b"\n") <= self._at_once:  # one line, which is usual
                self._on_data(data)
                return
        self._buffer, self._offset = self._buffer[self._offset :] + data, 0
        if self.reader is not None:
            self.reader.pause()
        if self._scheduled is None:
            self._deliver_batch()

    def eof_received(self) -> None:
        """Calls ``on_eof`` once everything is delivered."""
        self._eof = True
        self._schedule()

    def pause(self) -> None:
        """Reads and delivers nothing until `resume`."""
        self._paused = True
        if self.reader is not None:
            self.reader.pause()

    def resume(self) -> None:
        self._paused = False
        self._schedule()

    def close(self) -> None:
        self._closed = True
        self._buffer = b""
        if self._scheduled is not None:
            self._scheduled.cancel()
        if self.reader is not None:
            self.reader.close()

    def hung_up(self) -> bool:
        return self.reader is not None and self.reader.hung_up()

    def _deliver_batch(self) -> None:
        self._scheduled = None
        if self._paused or self._closed:
            return
        start, end = self._offset, self._offset
        for _ in range(self._at_once):
            end = self._buffer.find(b"\n", end) + 1
            if not end:
                end = len(self._buffer)
                break
        self._offset = end
        batch = self._buffer[start:end]
        if end == len(self._buffer):
            self._buffer, self._offset = b"", 0
        try:
            self._on_data(batch)
        finally:
            self._schedule()

    def _schedule(self) -> None:
        """Schedules the next batch, or reads on, or reports the end."""
        if self._paused or self._closed or self._scheduled is not None:
            return
        if self._buffer:
            self._scheduled = asyncio.get_running_loop().call_soon(self._deliver_batch)
        elif self._eof:
            self._closed = True
            self._on_eof()
        elif self.reader is not None:
            self.reader.resume()
