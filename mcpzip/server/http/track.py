"""The events of a stream: their form, their ids, and what is kept of them for a client that hung up
(2025-11-25 `basic/transports/streamable-http`, "Resumability and Redelivery").

The rules: an id names a stream and a place on it, and means something only in its session. What was said on a
stream is kept once its client may know one of its ids, within bounds; past them the stream goes first on
which nothing was said for longest.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

RETRY = 1_000
"""Milliseconds a client waits before it resumes a stream."""
PING = 15.0
"""Seconds of silence on a stream after which it is pinged: proxies close one that is idle for 30 and more."""
OVERHEAD = 256
"""Bytes that an event takes to be kept, besides its message."""

_EVENT_ID = re.compile(r"([1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})")
_LINE_ENDS = {"\u0085".encode(): rb"\u0085", "\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029"}


def is_event_id(text: str) -> bool:
    """Whether it has the form of our ids."""
    return _EVENT_ID.fullmatch(text) is not None


def event(line: bytes) -> bytes:
    """A message as a server-sent event.

    Those characters are escaped that some clients take for the end of a line (httpx does): they can only
    stand in strings.
    """
    for character, escaped in _LINE_ENDS.items():
        if character in line:
            line = line.replace(character, escaped)
    return b"event: message\r\ndata: %b\r\n\r\n" % line.removesuffix(b"\n")


class Untracked:
    """A stream whose events have no ids. patience: seconds until it begins where nothing is said, None where
    it then doesn't.
    """

    def __init__(self, patience: float | None) -> None:
        self.patience = patience

    def opening(self, *, whole: bool) -> bytes:
        """What stands before its first event. whole: whether that is its last, too."""
        return b""

    def event(self, line: bytes, *, last: bool = False) -> bytes:
        """Its next event. last: whether no other follows."""
        return event(line)


UNTRACKED = Untracked(PING)
UNBEGUN = Untracked(None)
"""One that has its head only when it is known how it ends."""


class Memory:
    """What is kept of all streams. each: bytes of one session; together: bytes of all of them; taken: how
    many there are.
    """

    def __init__(self, each: int, together: int) -> None:
        self.each, self.together = each, together
        self.taken = 0
        self.kept: dict[Track, None] = {}
        """The streams of which something is kept, in the order in which something was last said on them."""


class Tracks:
    """The streams of one session. patience: as in `Untracked`."""

    def __init__(self, memory: Memory, patience: float) -> None:
        self.memory, self.patience = memory, patience
        self.taken = 0
        self.ended = False
        self.kept: dict[Track, None] = {}
        """As in `Memory`."""
        self.known: dict[int, Track] = {}
        """Those that can be resumed, by number."""
        self._count = 0

    def new(self, owner: object) -> "Track":
        """A stream for the answer to one request, which is ``owner``."""
        self._count += 1
        return Track(self, self._count, owner)

    def at(self, event_id: str) -> "tuple[Track, int] | None":
        """The stream, and the place on it, that an id names; None when it can't be resumed from there."""
        if (found := _EVENT_ID.fullmatch(event_id)) and (track := self.known.get(int(found[1]))):
            number = int(found[2])
            return (track, number) if number <= track.said else None
        return None

    def end(self) -> None:
        """Nothing is kept any more."""
        self.ended = True
        for track in list(self.known.values()):
            track.forget()


@dataclass(frozen=True, slots=True)
class _Said:
    """An event. line: its message, None where that was too long to be kept."""

    number: int
    line: bytes | None

    @property
    def size(self) -> int:
        return OVERHEAD + len(self.line or b"")


class Track:
    """One stream. owner: as in `Tracks.new`; said: how many events were said; over: whether the last of them
    was its answer.
    """

    def __init__(self, tracks: Tracks, number: int, owner: object) -> None:
        self.owner = owner
        self.said = 0
        self.over = False
        self._tracks, self._number = tracks, number
        self._kept: deque[_Said] = deque()

    @property
    def patience(self) -> float:
        return self._tracks.patience

    @property
    def resumable(self) -> bool:
        """Whether its client may come back to it."""
        return self._number in self._tracks.known

    def opening(self, *, whole: bool) -> bytes:
        """As `Untracked.opening`: an event without a message, so that its client knows an id from the
        beginning, and when to come back.
        """
        if not whole and not self._tracks.ended:
            self._tracks.known[self._number] = self
        return self.primed(0)

    def primed(self, number: int) -> bytes:
        """An event without a message, under the id of event ``number``."""
        return b"id: %d-%d\r\nretry: %d\r\ndata:\r\n\r\n" % (self._number, number, RETRY)

    def event(self, line: bytes, *, last: bool = False) -> bytes:
        """As `Untracked.event`."""
        self.said += 1
        self.over = last
        if self.resumable:
            self._keep(_Said(self.said, line if len(line) + OVERHEAD <= self._tracks.memory.each else None))
        return self._written(self.said, line)

    def after(self, number: int) -> Iterator[bytes]:
        """The events behind ``number`` as they were, so far as they are kept."""
        kept = [each for each in self._kept if each.number > number and each.line is not None]
        return (self._written(each.number, each.line or b"") for each in kept)

    def keeps(self, line: bytes) -> bool:
        """Whether this was said and is kept."""
        return any(each.line == line for each in self._kept)

    @property
    def answer_lost(self) -> bool:
        """Whether its answer was said, and is not kept."""
        return self.over and not (self._kept and self._kept[-1].line is not None)

    def lost_after(self, number: int) -> bool:
        """Whether anything behind ``number`` was said that is not kept."""
        kept = sum(each.number > number and each.line is not None for each in self._kept)
        return kept < self.said - number

    def forget(self) -> None:
        """Nothing of it is kept. It can be resumed only if there is more to come."""
        while self._kept:
            self._drop()
        self._tracks.kept.pop(self, None)
        self._tracks.memory.kept.pop(self, None)
        if self.over or self._tracks.ended:
            self._tracks.known.pop(self._number, None)

    def _written(self, number: int, line: bytes) -> bytes:
        return b"id: %d-%d\r\n%b" % (self._number, number, event(line))

    def _keep(self, said: _Said) -> None:
        tracks, memory = self._tracks, self._tracks.memory
        self._kept.append(said)
        tracks.taken += said.size
        memory.taken += said.size
        for kept in (tracks.kept, memory.kept):
            kept.pop(self, None)
            kept[self] = None
        while tracks.taken > memory.each:
            self._make_room(next(iter(tracks.kept)))
        while memory.taken > memory.together:
            self._make_room(next(iter(memory.kept)))

    def _make_room(self, oldest: "Track") -> None:
        if oldest is self:
            self._drop()
        else:
            oldest.forget()

    def _drop(self) -> None:
        size = self._kept.popleft().size
        self._tracks.taken -= size
        self._tracks.memory.taken -= size
