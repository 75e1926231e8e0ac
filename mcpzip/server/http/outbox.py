"""What is to be said to a client on one stream, in order, by whoever can't wait (no I/O)."""

import asyncio
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

AT_ONCE = 64 * 1024
"""Bytes taken at a time, or one message: what a slow client hasn't got yet waits here, and is counted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with. line: as `wire.Peer` writes it; status: HTTP's, where nothing was said
    before it; failed: whether it is an error.
    """

    line: bytes
    status: int = 200
    failed: bool = False


class Room:
    """How much may wait for clients that don't read. each: bytes for one stream; small: bytes of it that it
    always has; together: bytes for all streams beyond those; taken: how much of that there is.
    """

    def __init__(self, each: int, small: int, together: int) -> None:
        self.each, self.small, self._together = each, small, together
        self.taken = 0

    def has(self, size: int) -> bool:
        """Whether a stream may have ``size`` bytes more than it always may."""
        return self.taken + size <= self._together


class Outbox:
    """Lines, as `wire.Peer` writes them, on their way to one stream.

    room: what may wait; what is told beyond it is dropped. answer: the last to be said, once there is one.
    closed: nothing more is said, and nobody hears. reader: who takes from it, if anybody does. unheeded:
    whether nobody has for so long that nothing is asked on it.
    """

    def __init__(self, room: Room) -> None:
        self.answer: Answer | None = None
        self.closed = False
        self.reader: object = None
        self.unheeded = False
        self._room, self._size = room, 0
        self._waiting: deque[bytes] = deque()
        self._stirred = asyncio.Event()

    @property
    def open(self) -> bool:
        """Whether anything more can be said."""
        return not self.closed and self.answer is None

    @property
    def full(self) -> bool:
        """Whether as much waits as may."""
        return self._size >= self._room.each

    def tell(self, line: bytes) -> None:
        """Says it, unless too much waits already."""
        size = self._size + len(line)
        if size <= self._room.each and (size <= self._room.small or self._room.has(len(line))):
            self.put(line)

    def put(self, line: bytes) -> None:
        """Says it; nothing once there is an answer, or nobody who hears."""
        if self.open:
            self._waiting.append(line)
            self._grow(len(line))
            self._stirred.set()

    def repeat(self, lines: Collection[bytes]) -> None:
        """Says again, and first, what was taken and nobody may have heard; nothing once it is closed."""
        if not self.open:
            return
        taken = [line for line in lines if line not in self._waiting]
        self._waiting.extendleft(reversed(taken))
        self._grow(sum(map(len, taken)))
        self._stirred.set()

    def finish(self, answer: Answer) -> None:
        """``answer`` is the last to be said."""
        if self.open:
            self.answer = answer
            self._stirred.set()

    def close(self) -> None:
        """Nothing more is said."""
        self.closed = True
        self._waiting.clear()
        self._grow(-self._size)
        self._stirred.set()

    def read_by(self, reader: object) -> None:
        """``reader`` takes from it from now on, and who did before takes no more; None for nobody."""
        self.reader = reader
        self.unheeded = False
        self._stirred.set()

    def stir(self, _: object = None) -> None:
        """Wakes whoever waits."""
        self._stirred.set()

    async def stirred(self, patience: float | None) -> bool:
        """Waits until something has changed; False after ``patience`` seconds without, None for any time."""
        try:
            async with asyncio.timeout(patience):
                await self._stirred.wait()
        except TimeoutError:
            return False
        return True

    def take(self) -> list[bytes]:
        """The lines that are next, which then wait no more."""
        self._stirred.clear()
        taken: list[bytes] = []
        size = 0
        while self._waiting and (not taken or size + len(self._waiting[0]) <= AT_ONCE):
            taken.append(self._waiting.popleft())
            size += len(taken[-1])
        self._grow(-size)
        return taken

    def _grow(self, size: int) -> None:
        before = max(self._size - self._room.small, 0)
        self._size += size
        self._room.taken += max(self._size - self._room.small, 0) - before
