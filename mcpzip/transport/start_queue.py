"""Whose turn it is to start.

The rule: only so many servers start at the same time as there are processors to start them; who is asked for
goes first, then who was never listed. A place is held by the expensive part of a start: it is given back when
the server has answered, when it only waits for something (a network, a lock), or after a few seconds.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import IntEnum

from mcpzip.model import limits

LOOK = 0.2
"""Seconds between two looks at whether those that start still work, while others wait."""


class StartPriority(IntEnum):
    """Who goes first."""

    ASKED = 0
    """A call or a search names it."""
    NEW = 1
    """It was never listed."""
    KNOWN = 2
    """Its tools are known; it is to be seen whether they still are the same."""


def never() -> bool:
    """Of a start of which nothing can be told."""
    return False


class _Turn:
    def __init__(self, server: str, rank: StartPriority, number: int, resting: Callable[[], bool]) -> None:
        self.server, self.rank, self.number, self.resting = server, rank, number, resting
        self.come: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.since = 0.0

    @property
    def order(self) -> tuple[StartPriority, int]:
        return self.rank, self.number


class StartQueue:
    """The turns of all servers of a pool. Everything runs on one event loop.

    at_once: how many may start at the same time; as many again that are asked for.
    """

    def __init__(self, at_once: int | None = None) -> None:
        self.at_once = max(limits.STARTS_AT_LEAST, os.cpu_count() or 1) if at_once is None else at_once
        self._waiting: list[_Turn] = []
        self._starting: list[_Turn] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def crowded(self) -> bool:
        """Whether any server waits for its turn."""
        return bool(self._waiting)

    def waits(self, server: str) -> bool:
        """Whether ``server`` waits for its turn."""
        return any(turn.server == server for turn in self._waiting)

    def hurry(self, server: str) -> None:
        """``server`` is asked for: it goes first from now on."""
        for turn in self._waiting:
            if turn.server == server:
                turn.rank = StartPriority.ASKED
        self._admit()

    @asynccontextmanager
    async def turn(
        self, server: str, rank: StartPriority, resting: Callable[[], bool] = never
    ) -> AsyncIterator[None]:
        """Waits for the turn of ``server``, which is over at the end of the context at the latest.

        resting: is asked now and then whether the start only waits for something.
        """
        self._count += 1
        turn = _Turn(server, rank, self._count, resting)
        self._waiting.append(turn)
        self._admit()
        try:
            await turn.come
            yield
        finally:
            self._over(turn)

    def _admit(self) -> None:
        while self._waiting:
            first = min(self._waiting, key=lambda turn: turn.order)
            places = self.at_once * 2 if first.rank is StartPriority.ASKED else self.at_once
            if len(self._starting) >= places:
                break
            self._waiting.remove(first)
            self._starting.append(first)
            first.since = time.monotonic()
            if not first.come.done():
                first.come.set_result(None)
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK, self._look)

    def _over(self, turn: _Turn) -> None:
        for turns in (self._waiting, self._starting):
            if turn in turns:
                turns.remove(turn)
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._admit()

    def _look(self) -> None:
        """Gives the places on of those that have had theirs, or don't use it."""
        self._timer = None
        late = time.monotonic() - limits.START_HELD
        self._starting = [turn for turn in self._starting if turn.since > late and not turn.resting()]
        self._admit()
