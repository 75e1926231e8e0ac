"""Server-sent events, sans I/O (HTML standard, "Server-sent events"): bytes in, events out.

The rule: of one event no more than ``most`` bytes are held, a line without an end included; each byte is
looked at a constant number of times, however the input is split and however many lines it has.
"""

from collections.abc import Iterator
from typing import NamedTuple

from mcpzip.model.limits import EVENT_FIELD

_MARK = b"\xef\xbb\xbf"
_KEPT = (b"id", b"event", b"retry")


class StreamEvent(NamedTuple):
    """data: its lines joined with newlines. fields: what else it says that means something, a line each."""

    data: bytes
    fields: tuple[bytes, ...]


class EventTooLongError(ValueError):
    """An event, or a line, is longer than is held. size_at_least: in bytes."""

    def __init__(self, size_at_least: int) -> None:
        self.size_at_least = size_at_least
        super().__init__(f"an event of more than {size_at_least} bytes")


class EventReader:
    """Cuts a byte stream into events. most: bytes that an event may have.

    work: lines and events met so far, for whoever wants to know how much was done.
    """

    def __init__(self, most: int) -> None:
        self.work = 0
        self._most = most
        self._line = bytearray()
        self._data: bytes | bytearray | None = None
        self._fields: dict[bytes, bytes] = {}
        self._held = 0
        self._skip_feed = False
        self._begun = False

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """The events that ``piece`` completes, in order. Raises EventTooLongError; it is of no use then."""
        if not self._begun:
            self._begun = True
            piece = piece.removeprefix(_MARK)
        if self._skip_feed and piece:
            self._skip_feed = False
            piece = piece.removeprefix(b"\n")
        if b"\n" not in piece and b"\r" not in piece:  # a long line: no copy but the one that keeps it
            self._hold(piece)
            return
        *lines, rest = _lines(piece)
        self._skip_feed = piece.endswith(b"\r")
        for line in lines:
            self.work += 1
            self._take(line)
            if not line and not self._line:
                if self._data is not None or self._fields:
                    yield self._event()
            else:
                self._ended(line)
        self._hold(rest)

    def _take(self, piece: bytes) -> None:
        if self._held + len(self._line) + len(piece) > self._most:
            raise EventTooLongError(self._most)

    def _hold(self, piece: bytes) -> None:
        self._take(piece)
        self._line += piece

    def _ended(self, end: bytes) -> None:
        """A line ended with ``end``; what stood before it was held."""
        if self._line:
            self._line += end
            name, value = _parted(bytes(self._line[:6]))
            line = memoryview(self._line)
        else:
            name, value = _parted(end[:6])
            line = memoryview(end)
        if name == b"data":
            self._add(bytes(line[value:]))
        else:
            whole = bytes(line[:16])
            kept = next((one for one in _KEPT if whole.startswith(one + b":")), None)
            if kept is not None and len(line) <= EVENT_FIELD:
                self._fields[kept] = bytes(line)
                self._held += len(line)
        line.release()
        self._line = bytearray()

    def _add(self, value: bytes) -> None:
        self._held += len(value) + 1
        if self._data is None:
            self._data = value
            return
        if isinstance(self._data, bytes):
            self._data = bytearray(self._data)
        self._data += b"\n"
        self._data += value

    def _event(self) -> StreamEvent:
        data = b"" if self._data is None else self._data
        event = StreamEvent(data if isinstance(data, bytes) else bytes(data), tuple(self._fields.values()))
        self._data, self._fields, self._held = None, {}, 0
        return event


def _lines(piece: bytes) -> list[bytes]:
    """The lines of ``piece``, the last without an end; "" where it ends with one."""
    lines = piece.splitlines()
    if piece.endswith((b"\n", b"\r")):
        lines.append(b"")
    return lines


def _parted(start: bytes) -> tuple[bytes, int]:
    """Whether a line that begins so is data, and where its value begins."""
    if start.startswith(b"data: "):
        return b"data", 6
    if start.startswith(b"data:"):
        return b"data", 5
    if start == b"data":
        return b"data", 4
    return b"", 0
