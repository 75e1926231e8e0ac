"""Server-sent events: their form, their ids, and those that are kept so that a client can resume a stream
(2025-11-25 `basic/transports/streamable-http`, "Resumability and Redelivery").

An event id names a stream and a position in it, and is valid only in its session. Events are kept as soon as
their client may know an id of their stream, within limits; beyond those, the events of the stream that had no
new event for longest are dropped first.
"""

import re
from collections import deque
from collections.abc import Iterator

import msgspec

RETRY = 1_000
"""Milliseconds a client waits before it resumes a stream."""
PING = 15.0
"""Seconds without an event after which a comment is sent: proxies close a stream that is idle for 30."""
OVERHEAD = 256
"""Bytes that a kept event takes besides its message."""

_EVENT_ID = re.compile(r"([1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})")
_LINE_ENDS = {"\u0085".encode(): rb"\u0085", "\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029"}


def is_event_id(text: str) -> bool:
    """Whether it has the form of our event ids."""
    return _EVENT_ID.fullmatch(text) is not None


def sse_event(line: bytes) -> bytes:
    """A message as a server-sent event.

    U+0085, U+2028 and U+2029 are escaped because some clients (httpx) take them for the end of a line. They
    can only occur inside JSON strings.
    """
    for character, escaped in _LINE_ENDS.items():
        if character in line:
            line = line.replace(character, escaped)
    return b"event: message\r\ndata: %b\r\n\r\n" % line.removesuffix(b"\n")


class PlainEvents:
    """The events of a stream without ids. patience: seconds without a message after which the stream begins;
    None for never, so that the status and headers of the response can depend on the final message.
    """

    def __init__(self, patience: float | None) -> None:
        self.patience = patience

    def first(self, *, only: bool) -> bytes:
        """What precedes the first event. only: whether that is the last event, too."""
        return b""

    def add(self, line: bytes, *, last: bool = False) -> bytes:
        """The next event. last: whether no other follows."""
        return sse_event(line)


PLAIN_EVENTS = PlainEvents(PING)
NO_EVENTS_BEFORE_END = PlainEvents(None)


class ReplayBudget:
    """How much is kept of all streams. each: bytes of one session; together: bytes of all; taken: bytes in
    use.
    """

    def __init__(self, each: int, together: int) -> None:
        self.each, self.together = each, together
        self.taken = 0
        self.kept: dict[EventStream, None] = {}
        """The streams with kept events, the one with the latest event last."""


class EventStore:
    """The streams of one session. patience: as in `PlainEvents`. before: the number before that of its first
    stream: a session that goes on in another process has other numbers there.
    """

    def __init__(self, budget: ReplayBudget, patience: float, before: int = 0) -> None:
        self.budget, self.patience = budget, patience
        self.taken = 0
        self.ended = False
        self.kept: dict[EventStream, None] = {}
        """As in `ReplayBudget`."""
        self.resumable: dict[int, EventStream] = {}
        """The streams that can be resumed, by number."""
        self._count = before

    def new(self, owner: object) -> "EventStream":
        """The stream of the response to one request. owner: whatever `find` is to lead to."""
        self._count += 1
        return EventStream(self, self._count, owner)

    def find(self, event_id: str) -> "tuple[EventStream, int] | None":
        """The stream and the position that an id names; None if the stream can't be resumed from there."""
        if (found := _EVENT_ID.fullmatch(event_id)) and (stream := self.resumable.get(int(found[1]))):
            number = int(found[2])
            return (stream, number) if number <= stream.count else None
        return None

    def end(self) -> None:
        """Drops all events; no stream can be resumed any more."""
        self.ended = True
        for stream in list(self.resumable.values()):
            stream.forget()


class _Event(msgspec.Struct, frozen=True):
    """line: its message; None where that was too long to be kept."""

    number: int
    line: bytes | None

    @property
    def size(self) -> int:
        return OVERHEAD + len(self.line or b"")


class EventStream:
    """The events of one stream, which have ids. owner: as in `EventStore.new`; count: how many there were;
    over: whether the last of them was the final message.
    """

    def __init__(self, store: EventStore, number: int, owner: object) -> None:
        self.owner = owner
        self.count = 0
        self.over = False
        self.patience: float | None = store.patience
        self._store, self._number = store, number
        self._kept: deque[_Event] = deque()

    @property
    def resumable(self) -> bool:
        """Whether its client may resume it."""
        return self._number in self._store.resumable

    def first(self, *, only: bool) -> bytes:
        """As `PlainEvents.first`: an event without a message, from which the client knows an id and how long
        to wait before it resumes.
        """
        if not only and not self._store.ended:
            self._store.resumable[self._number] = self
        return self.empty_event(0)

    def empty_event(self, number: int) -> bytes:
        """An event without a message, with the id of event ``number``."""
        return b"id: %d-%d\r\nretry: %d\r\ndata:\r\n\r\n" % (self._number, number, RETRY)

    def add(self, line: bytes, *, last: bool = False) -> bytes:
        """As `PlainEvents.add`."""
        self.count += 1
        self.over = last
        if self._number in self._store.resumable:
            fits = len(line) + OVERHEAD <= self._store.budget.each
            self._keep(_Event(self.count, line if fits else None))
        return self._with_id(self.count, line)

    def after(self, number: int) -> Iterator[bytes]:
        """The kept events after ``number``, as they were sent."""
        kept = [each for each in self._kept if each.number > number and each.line is not None]
        return (self._with_id(each.number, each.line or b"") for each in kept)

    def keeps(self, line: bytes) -> bool:
        """Whether an event with this message is kept."""
        return any(each.line == line for each in self._kept)

    @property
    def lost_final(self) -> bool:
        """Whether there was a final message that is not kept."""
        return self.over and not (self._kept and self._kept[-1].line is not None)

    def lost_after(self, number: int) -> bool:
        """Whether any event after ``number`` is not kept."""
        kept = sum(each.number > number and each.line is not None for each in self._kept)
        return kept < self.count - number

    def forget(self) -> None:
        """Drops its events. It can be resumed only if there are more to come."""
        while self._kept:
            self._drop()
        self._store.kept.pop(self, None)
        self._store.budget.kept.pop(self, None)
        if self.over or self._store.ended:
            self._store.resumable.pop(self._number, None)

    def _with_id(self, number: int, line: bytes) -> bytes:
        return b"id: %d-%d\r\n%b" % (self._number, number, sse_event(line))

    def _keep(self, event: _Event) -> None:
        store, budget = self._store, self._store.budget
        self._kept.append(event)
        store.taken += event.size
        budget.taken += event.size
        for kept in (store.kept, budget.kept):
            kept.pop(self, None)
            kept[self] = None
        while store.taken > budget.each:
            self._make_room(next(iter(store.kept)))
        while budget.taken > budget.together:
            self._make_room(next(iter(budget.kept)))

    def _make_room(self, oldest: "EventStream") -> None:
        if oldest is self:
            self._drop()
        else:
            oldest.forget()

    def _drop(self) -> None:
        size = self._kept.popleft().size
        self._store.taken -= size
        self._store.budget.taken -= size


Events = PlainEvents | EventStream
