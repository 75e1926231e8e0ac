"""A service that answers from elsewhere, as we call it.

The rule: it never costs more than its deadline, and one that is known to be away costs nothing. Within the
deadline there is one retry, of what may pass by itself; after a failure the service is left alone, 30 s at
first and twice as long each time, up to 10 min.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mcpzip.system.backoff import Backoff

T = TypeVar("T")
Clock = Callable[[], float]
"""Seconds, from any beginning, that never go back."""

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
REFUSED_PAUSE = 300.0
"""Seconds before a service that knows us and won't have us, or not this model, is asked again."""
DOCUMENTS_DEADLINE = 120.0
"""Seconds a batch of tools may take: a laptop may have to load the model first."""

_RETRY_PAUSE = 0.1
_ROOM = 0.05
"""Seconds: before a retry, if the service names no time of its own; and that a retry must have."""


class Unavailable(Exception):
    """There is no answer, and this is why.

    reason: a short sentence for people, no secrets in it. passing: whether a second try may do. wait: seconds
    the service asked for before it. rest: seconds to leave it alone, at least. refused: it was the request
    that the service did not want, and another might do.
    """

    def __init__(
        self,
        reason: str,
        *,
        passing: bool = False,
        wait: float | None = None,
        rest: float = 0.0,
        refused: bool = False,
        slow: bool = False,
    ) -> None:
        self.reason, self.passing, self.wait, self.rest = reason, passing, wait, rest
        self.refused, self.slow = refused, slow
        super().__init__(reason)


class Service:
    """What is known of one service: whether it may be asked, and how it failed last."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._rests_until = 0.0
        self._reason = ""

    def resting(self) -> str | None:
        """Why it is left alone now; None when it may be asked."""
        if self._backoff.taken and self._clock() < self._rests_until:
            return f"{self._reason}; left alone for a while"
        return None

    def failed(self, reason: str, rest: float = 0.0) -> None:
        """It failed: leave it alone, for ``rest`` seconds at least."""
        self._rests_until = self._clock() + max(self._backoff.next(), rest)
        self._reason = reason

    def succeeded(self) -> None:
        """It is back."""
        self._backoff.reset()
        self._rests_until, self._reason = 0.0, ""

    async def ask(
        self,
        attempt: Callable[[], Awaitable[T]],
        deadline: float,
        *,
        spent: float = 0.0,
        though_resting: bool = False,
    ) -> T:
        """What ``attempt`` gives, tried twice at most. Raises Unavailable.

        deadline: seconds from the question to the answer, of which some may be ``spent``.
        """
        reason = None if though_resting else self.resting()
        if reason:
            raise Unavailable(reason)
        try:
            async with asyncio.timeout(deadline - spent) as until:
                answer = await self._twice(attempt, until)
        except TimeoutError:
            failure = Unavailable(f"no answer within {deadline:g} s", slow=True)
        except Unavailable as error:
            failure = error
        else:
            self.succeeded()
            return answer
        if not failure.refused:
            self.failed(failure.reason, failure.rest)
        raise failure

    async def _twice(self, attempt: Callable[[], Awaitable[T]], until: asyncio.Timeout) -> T:
        try:
            return await attempt()
        except Unavailable as error:
            if not error.passing:
                raise
            pause = _RETRY_PAUSE if error.wait is None else error.wait
            left = (until.when() or 0.0) - asyncio.get_running_loop().time()
            if pause + _ROOM > left:
                raise
        await asyncio.sleep(pause)
        return await attempt()
