"""Newline-delimited frames (MCP stdio transport, `basic/transports/stdio`).

The rule: a frame is what stands between two newlines, without the JSON whitespace around it; what is empty
then is no frame. No more than ``max_frame`` bytes are held from one call to the next, and each byte is looked
at a constant number of times however the input is split.
"""

import msgspec

from mcpzip.model import limits

MAX_FRAME = limits.MESSAGE
"""The longest line taken by default, in bytes: results of tens of megabytes do occur."""

HEAD = 2048
TAIL = 256

_SPACE = b" \t\r"


class FrameTooLong(msgspec.Struct, frozen=True, gc=False):
    """A line that was dropped while it streamed in.

    size_at_least: its length in bytes. head, tail: its first HEAD and last TAIL bytes, so that whoever waits
    for the answer in it can be told (some peers write the id first, some last).
    """

    size_at_least: int
    head: bytes
    tail: bytes


Frame = bytes | FrameTooLong


class LineFramer:
    """Cuts a byte stream into lines.

    max_frame: the longest line to keep, in bytes; a longer one becomes one FrameTooLong when its newline
    comes.
    """

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._pending = bytearray()
        self._dropped: _Dropped | None = None

    @property
    def dropped(self) -> int:
        """Bytes of the line under way that have been dropped; 0 as long as it may still be kept."""
        return 0 if self._dropped is None else self._dropped.size

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that ``data`` completes, in order."""
        frames: list[Frame] = []
        if b"\n" not in data:  # a piece of a long line: no copy but the one that keeps it
            self._hold(data)
            return frames
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._pending or self._dropped:
                self._hold(line)
                self._release(frames)
            else:
                self._take(line, frames)
        if rest:
            self._hold(rest)
        return frames

    def eof(self) -> Frame | None:
        """The last line when no newline ended it; None when there is none."""
        frames: list[Frame] = []
        self._release(frames)
        return frames[0] if frames else None

    def _take(self, line: bytes, frames: list[Frame]) -> None:
        if len(line) > self._max_frame:
            frames.append(FrameTooLong(len(line), line[:HEAD], line[-TAIL:]))
        elif frame := line.strip(_SPACE):
            frames.append(frame)

    def _hold(self, piece: bytes) -> None:
        if self._dropped is not None:
            self._dropped.add(piece)
            return
        self._pending += piece
        if len(self._pending) > self._max_frame:
            self._dropped = _Dropped(self._pending)
            self._pending = bytearray()

    def _release(self, frames: list[Frame]) -> None:
        if self._dropped is not None:
            frames.append(self._dropped.frame())
            self._dropped = None
            return
        line = bytes(self._pending)
        self._pending = bytearray()
        self._take(line, frames)


class _Dropped:
    """What is remembered of a line too long to keep."""

    def __init__(self, start: bytearray) -> None:
        self.size = len(start)
        self._head = bytes(start[:HEAD])
        self._tail = start[-TAIL:]

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if len(self._head) < HEAD:
            self._head += piece[: HEAD - len(self._head)]
        self._tail += piece[-TAIL:]
        if len(self._tail) > 4 * TAIL:
            del self._tail[:-TAIL]

    def frame(self) -> FrameTooLong:
        return FrameTooLong(self.size, self._head, bytes(self._tail[-TAIL:]))
