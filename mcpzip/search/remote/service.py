"""Calls to a remote service: deadlines, one retry, and a circuit breaker.

The rule: a call never takes longer than its deadline, and a service that is known to be down costs no time.
Within the deadline there is one retry, of a transient failure. After a failure the service is paused: for
30 s at first, and twice as long after each further one, up to 10 min.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import TypeVar

from mcpzip.system.backoff import Backoff

T = TypeVar("T")
Clock = Callable[[], float]
"""Monotonic seconds."""

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
REFUSED_PAUSE = 300.0
"""Seconds of the pause after a failure of the configuration: a refused key, an unknown model, no extra."""
DOCUMENTS_DEADLINE = 120.0
"""Seconds for a batch of tools: the service may have to load the model first."""

_RETRY_DELAY = 0.1
_MIN_TIME = 0.05
"""Seconds: before a retry where the service named no delay, and left for the retry itself."""


@dataclass(eq=False)
class Unavailable(Exception):
    """A service gave no answer.

    reason: a short sentence without secrets. transient: whether a retry may succeed. retry_after: the seconds
    that the service asked to wait before it. pause: seconds to pause the service, at least. bad_request:
    whether only this request failed, so that the service is not paused. timed_out: whether there was no
    answer in time.
    """

    reason: str
    _: KW_ONLY
    transient: bool = False
    retry_after: float | None = None
    pause: float = 0.0
    bad_request: bool = False
    timed_out: bool = False


def overloaded(status: int, retry_after: float | None) -> Unavailable:
    """The failure of an HTTP status 429 or 5xx."""
    reason = "rate limit exceeded" if status == 429 else "server error"
    return Unavailable(
        f"{reason} ({status})", transient=True, retry_after=retry_after, pause=retry_after or 0.0
    )


class Service:
    """The state of one service: whether it is paused, and its last failure."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._paused_until = 0.0
        self._reason = ""

    def paused(self) -> str | None:
        """Why the service is paused; None where it is not."""
        if self._backoff.taken and self._clock() < self._paused_until:
            return f"{self._reason}; not tried again for a while"
        return None

    def failed(self, reason: str, pause: float = 0.0) -> None:
        """Pause the service after a failure, for ``pause`` seconds at least."""
        self._paused_until = self._clock() + max(self._backoff.next(), pause)
        self._reason = reason

    def succeeded(self) -> None:
        """End the pause, and forget the failures."""
        self._backoff.reset()
        self._paused_until, self._reason = 0.0, ""

    async def ask(
        self,
        attempt: Callable[[], Awaitable[T]],
        deadline: float,
        *,
        spent: float = 0.0,
        though_paused: bool = False,
    ) -> T:
        """The result of ``attempt``, which is called at most twice. Raises Unavailable.

        deadline: seconds for the whole call, of which ``spent`` are over already.
        """
        reason = None if though_paused else self.paused()
        if reason:
            raise Unavailable(reason)
        try:
            async with asyncio.timeout(deadline - spent) as timeout:
                answer = await self._with_retry(attempt, timeout)
        except TimeoutError:
            failure = Unavailable(f"no answer within {deadline:g} s", timed_out=True)
        except Unavailable as error:
            failure = error
        else:
            self.succeeded()
            return answer
        if not failure.bad_request:
            self.failed(failure.reason, failure.pause)
        raise failure

    async def _with_retry(self, attempt: Callable[[], Awaitable[T]], timeout: asyncio.Timeout) -> T:
        try:
            return await attempt()
        except Unavailable as error:
            if not error.transient:
                raise
            delay = _RETRY_DELAY if error.retry_after is None else error.retry_after
            left = (timeout.when() or 0.0) - asyncio.get_running_loop().time()
            if delay + _MIN_TIME > left:
                raise
        await asyncio.sleep(delay)
        return await attempt()
