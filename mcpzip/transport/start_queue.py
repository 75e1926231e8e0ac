"""The queue of servers that are waiting to be started.

The rule: no more servers start at the same time than there are processors. Servers that a request waits for
start first, then servers that were never listed. A start occupies a slot during its expensive part only: the
slot is released when the server has answered, when it only waits for something (a network, a lock), or after
a few seconds.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import IntEnum

from mcpzip.model import limits

POLL_INTERVAL = 0.2
"""Seconds between two checks whether starting servers still use the processor, while others wait."""


class StartPriority(IntEnum):
    """The order of starts."""

    ASKED = 0
    """A request waits for it."""
    NEW = 1
    """It was never listed."""
    KNOWN = 2
    """Its tools are known and are listed again to find changes."""


def never() -> bool:
    """The ``resting`` of a start whose activity can't be observed."""
    return False


class _Turn:
    """One server's start. come: done when it may start. since: when it was allowed to (monotonic s)."""

    def __init__(self, server: str, rank: StartPriority, number: int, resting: Callable[[], bool]) -> None:
        self.server, self.rank, self.number, self.resting = server, rank, number, resting
        self.come: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.since = 0.0

    @property
    def order(self) -> tuple[StartPriority, int]:
        return self.rank, self.number


class StartQueue:
    """The starts of all servers of a pool. Everything runs on one event loop.

    at_once: how many servers may start at the same time; twice as many while requests wait for them.
    """

    def __init__(self, at_once: int | None = None) -> None:
        self.at_once = max(limits.STARTS_AT_LEAST, os.cpu_count() or 1) if at_once is None else at_once
        self._waiting: list[_Turn] = []
        self._starting: list[_Turn] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def crowded(self) -> bool:
        """Whether any server is waiting."""
        return bool(self._waiting)

    def waits(self, server: str) -> bool:
        """Whether ``server`` is waiting."""
        return any(turn.server == server for turn in self._waiting)

    def prioritize(self, server: str) -> None:
        """Moves ``server`` to the front, because a request waits for it."""
        for turn in self._waiting:
            if turn.server == server:
                turn.rank = StartPriority.ASKED
        self._admit()

    @asynccontextmanager
    async def turn(
        self, server: str, rank: StartPriority, resting: Callable[[], bool] = never
    ) -> AsyncIterator[None]:
        """Waits until ``server`` may start. Its slot is released at the end of the context at the latest.

        resting: whether the start only waits for something; called repeatedly.
        """
        self._count += 1
        turn = _Turn(server, rank, self._count, resting)
        self._waiting.append(turn)
        self._admit()
        try:
            await turn.come
            yield
        finally:
            self._remove(turn)

    def _admit(self) -> None:
        while self._waiting:
            first = min(self._waiting, key=lambda turn: turn.order)
            slots = self.at_once * 2 if first.rank is StartPriority.ASKED else self.at_once
            if len(self._starting) >= slots:
                break
            self._waiting.remove(first)
            self._starting.append(first)
            first.since = time.monotonic()
            if not first.come.done():
                first.come.set_result(None)
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(POLL_INTERVAL, self._release_idle)

    def _remove(self, turn: _Turn) -> None:
        for turns in (self._waiting, self._starting):
            if turn in turns:
                turns.remove(turn)
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._admit()

    def _release_idle(self) -> None:
        """Releases the slots that were held too long or are not used."""
        self._timer = None
        late = time.monotonic() - limits.START_HELD
        self._starting = [turn for turn in self._starting if turn.since > late and not turn.resting()]
        self._admit()
