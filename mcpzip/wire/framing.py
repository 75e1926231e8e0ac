"""Splits a byte stream into newline-delimited frames (MCP stdio transport, `basic/transports/stdio`).

A frame is a line without the JSON whitespace around it; empty lines are skipped. At most ``max_frame`` bytes
are buffered, and the work is linear in the length of the input, however it is split into chunks.
"""

import msgspec

from mcpzip.model import limits

MAX_FRAME = limits.MESSAGE
"""The default maximum length of a line, in bytes."""

HEAD = 2048
TAIL = 256

_SPACE = b" \t\r"
_SPACE_AND_END = _SPACE + b"\n"


class FrameTooLong(msgspec.Struct, frozen=True, gc=False):
    """A line that was too long and is dropped.

    size_at_least: its length in bytes. head, tail: its first HEAD and last TAIL bytes, which may contain the
    id of the response (some peers write the id first, some last).
    """

    size_at_least: int
    head: bytes
    tail: bytes


Frame = bytes | FrameTooLong


class LineFramer:
    """Splits a byte stream into lines.

    max_frame: the maximum length of a line in bytes; a longer line becomes a FrameTooLong at its newline.
    """

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._pending = bytearray()
        self._dropped: _DroppedLine | None = None

    @property
    def dropped(self) -> int:
        """Bytes of the incomplete line that were dropped because it is too long; 0 if it is not too long."""
        return 0 if self._dropped is None else self._dropped.size

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that ``data`` completes, in order."""
        end = data.find(b"\n")
        if end < 0:  # a part of a long line: copied only once
            self._buffer(data)
            return []
        if end == len(data) - 1 <= self._max_frame and not (self._pending or self._dropped):  # which is usual
            frame = data.strip(_SPACE_AND_END)
            return [frame] if frame else []
        frames: list[Frame] = []
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._pending or self._dropped:
                self._buffer(line)
                self._end_line(frames)
            else:
                self._append(line, frames)
        if rest:
            self._buffer(rest)
        return frames

    def eof(self) -> Frame | None:
        """The last line if it has no newline; else None."""
        frames: list[Frame] = []
        self._end_line(frames)
        return frames[0] if frames else None

    def _append(self, line: bytes, frames: list[Frame]) -> None:
        if len(line) > self._max_frame:
            frames.append(FrameTooLong(len(line), line[:HEAD], line[-TAIL:]))
        elif frame := line.strip(_SPACE):
            frames.append(frame)

    def _buffer(self, chunk: bytes) -> None:
        if self._dropped is not None:
            self._dropped.add(chunk)
            return
        self._pending += chunk
        if len(self._pending) > self._max_frame:
            self._dropped = _DroppedLine(self._pending)
            self._pending = bytearray()

    def _end_line(self, frames: list[Frame]) -> None:
        if self._dropped is not None:
            frames.append(self._dropped.frame())
            self._dropped = None
            return
        line = bytes(self._pending)
        self._pending = bytearray()
        self._append(line, frames)


class _DroppedLine:
    """The length, head and tail of a line that is too long."""

    def __init__(self, start: bytearray) -> None:
        self.size = len(start)
        self._head = bytes(start[:HEAD])
        self._tail = start[-TAIL:]

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if len(self._head) < HEAD:
            self._head += chunk[: HEAD - len(self._head)]
        self._tail += chunk[-TAIL:]
        if len(self._tail) > 4 * TAIL:
            del self._tail[:-TAIL]

    def frame(self) -> FrameTooLong:
        return FrameTooLong(self.size, self._head, bytes(self._tail[-TAIL:]))
