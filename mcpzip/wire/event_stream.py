"""Parses server-sent events, without I/O (HTML standard, "Server-sent events").

At most ``most`` bytes of an event are buffered, including an incomplete line. The work is linear in the
length of the input, however it is split into chunks and lines.
"""

from collections.abc import Iterator
from typing import NamedTuple

from mcpzip.model.limits import EVENT_FIELD

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = (b"id", b"event", b"retry")


class StreamEvent(NamedTuple):
    """data: its data lines, joined with newlines. fields: its lines for ``id``, ``event`` and ``retry``."""

    data: bytes
    fields: tuple[bytes, ...]


class EventTooLongError(ValueError):
    """An event is longer than the limit. size_at_least: in bytes."""

    def __init__(self, size_at_least: int) -> None:
        self.size_at_least = size_at_least
        super().__init__(f"an event of more than {size_at_least} bytes")


class EventReader:
    """Splits a byte stream into events.

    most: the maximum bytes of an event. work: the number of lines parsed so far, by which a caller decides
    when to let other tasks run.
    """

    def __init__(self, most: int) -> None:
        self.work = 0
        self._most = most
        self._line = bytearray()
        self._data: bytes | bytearray | None = None
        self._fields: dict[bytes, bytes] = {}
        self._size = 0
        self._skip_line_feed = False
        self._started = False

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yields the events that ``chunk`` completes. The reader can't be used after EventTooLongError."""
        if not self._started:
            self._started = True
            chunk = chunk.removeprefix(_BYTE_ORDER_MARK)
        if self._skip_line_feed and chunk:
            self._skip_line_feed = False
            chunk = chunk.removeprefix(b"\n")
        if b"\n" not in chunk and b"\r" not in chunk:  # a part of a long line: copied only once
            self._buffer(chunk)
            return
        *lines, rest = _lines(chunk)
        self._skip_line_feed = chunk.endswith(b"\r")
        for line in lines:
            self.work += 1
            self._check_size(line)
            if not line and not self._line:
                if self._data is not None or self._fields:
                    yield self._event()
            else:
                self._end_line(line)
        self._buffer(rest)

    def _check_size(self, chunk: bytes) -> None:
        if self._size + len(self._line) + len(chunk) > self._most:
            raise EventTooLongError(self._most)

    def _buffer(self, chunk: bytes) -> None:
        self._check_size(chunk)
        self._line += chunk

    def _end_line(self, end: bytes) -> None:
        """Processes the buffered line, of which ``end`` is the last part."""
        if self._line:
            self._line += end
            start = _data_start(bytes(self._line[:6]))
            line = memoryview(self._line)
        else:
            start = _data_start(end[:6])
            line = memoryview(end)
        if start:
            self._add_data(bytes(line[start:]))
        else:
            head = bytes(line[:16])
            field = next((name for name in _FIELDS if head.startswith(name + b":")), None)
            if field is not None and len(line) <= EVENT_FIELD:
                self._fields[field] = bytes(line)
                self._size += len(line)
        line.release()
        self._line = bytearray()

    def _add_data(self, value: bytes) -> None:
        self._size += len(value) + 1
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
        self._data, self._fields, self._size = None, {}, 0
        return event


def _lines(chunk: bytes) -> list[bytes]:
    """The lines of ``chunk``; the last item is the incomplete line at its end, possibly empty."""
    lines = chunk.splitlines()
    if chunk.endswith((b"\n", b"\r")):
        lines.append(b"")
    return lines


def _data_start(line: bytes) -> int:
    """The offset of the value in a ``data`` line, given its first 6 bytes; 0 for other lines."""
    if line.startswith(b"data: "):
        return 6
    if line.startswith(b"data:"):
        return 5
    return 4 if line == b"data" else 0
