"""The messages that wait to be sent on one HTTP response, in order. Whoever adds one never waits."""

from collections import deque
from collections.abc import Collection
from typing import Protocol

import msgspec

BATCH = 64 * 1024
"""Bytes taken at a time, or one message: what a slow client hasn't received yet stays here and is counted."""


class FinalMessage(msgspec.Struct, frozen=True):
    """The response to a JSON-RPC request. line: as `wire.Peer` writes it; status: of the HTTP response, if no
    other message was sent on it; failed: whether it is an error; headers: of that response, too.
    """

    line: bytes
    status: int = 200
    failed: bool = False
    headers: tuple[tuple[bytes, bytes], ...] = ()


class QueueBudget:
    """How much may wait for clients that don't read. each: bytes of one queue; small: bytes that every queue
    may have however full the others are; together: bytes of all queues beyond that; taken: how much of that
    is in use.
    """

    def __init__(self, each: int, small: int, together: int) -> None:
        self.each, self.small, self._together = each, small, together
        self.taken = 0

    def has_room(self, size: int) -> bool:
        """Whether a queue may grow by ``size`` bytes beyond ``small``."""
        return self.taken + size <= self._together


class Reader(Protocol):
    """What sends the messages of a queue."""

    def pump(self) -> None:
        """Called when there is something to send, and when the queue is closed."""

    def detach(self) -> None:
        """Called when another reader takes over."""


class SendQueue:
    """Lines, as `wire.Peer` writes them.

    final: the last message, once there is one. closed: nothing more is sent. reader: what sends them, if
    anything does. abandoned: whether there was no reader for so long that the client is asked nothing here.
    """

    def __init__(self, budget: QueueBudget) -> None:
        self.final: FinalMessage | None = None
        self.closed = False
        self.reader: Reader | None = None
        self.abandoned = False
        self._budget, self._size = budget, 0
        self._waiting: deque[bytes] = deque()

    @property
    def open(self) -> bool:
        """Whether anything more can be added."""
        return not self.closed and self.final is None

    @property
    def full(self) -> bool:
        """Whether as much waits as may."""
        return self._size >= self._budget.each

    @property
    def next_size(self) -> int:
        """Bytes of the next message; 0 for none."""
        if self._waiting:
            return len(self._waiting[0])
        return 0 if self.final is None else len(self.final.line)

    def put_if_room(self, line: bytes) -> None:
        """Adds a message that may be lost: it is dropped if too much waits already."""
        size = self._size + len(line)
        if size <= self._budget.each and (size <= self._budget.small or self._budget.has_room(len(line))):
            self.put(line)

    def put(self, line: bytes) -> None:
        """Adds a message; does nothing behind the final message, or once it is closed."""
        if self.open:
            self._waiting.append(line)
            self._grow(len(line))
            self._notify()

    def put_first(self, lines: Collection[bytes]) -> None:
        """Adds messages, ahead of all others, that were taken but may not have arrived."""
        if not self.open:
            return
        lost = [line for line in lines if line not in self._waiting]
        self._waiting.extendleft(reversed(lost))
        self._grow(sum(map(len, lost)))
        self._notify()

    def finish(self, final: FinalMessage) -> None:
        """Adds the last message."""
        if self.open:
            self.final = final
            self._notify()

    def close(self) -> None:
        """Drops what waits; nothing more is sent."""
        self.closed = True
        self._waiting.clear()
        self._grow(-self._size)
        self._notify()

    def attach(self, reader: Reader) -> None:
        """From now on ``reader`` sends the messages; a reader before it is detached."""
        before, self.reader = self.reader, reader
        self.abandoned = False
        if before is not None:
            before.detach()
        reader.pump()

    def take(self) -> list[bytes]:
        """Removes the next messages and returns them."""
        taken: list[bytes] = []
        size = 0
        while self._waiting and (not taken or size + len(self._waiting[0]) <= BATCH):
            taken.append(self._waiting.popleft())
            size += len(taken[-1])
        if taken:
            self._grow(-size)
        return taken

    def _notify(self) -> None:
        if self.reader is not None:
            self.reader.pump()

    def _grow(self, size: int) -> None:
        before = max(self._size - self._budget.small, 0)
        self._size += size
        self._budget.taken += max(self._size - self._budget.small, 0) - before
