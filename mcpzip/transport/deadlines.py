"""How long requests may take.

The rule: a request that is answered in time pays next to nothing for its clock. So the clocks of a connection
share one timer; it is set for the first that may run out, and looks at all of them when it rings.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from types import TracebackType


class Deadline:
    """The time of one request, as a context: its task is cancelled when the time is up, and the context then
    raises TimeoutError, as `asyncio.timeout` does.

    due: when it is up, in the event loop's time. expired: whether it was.
    """

    __slots__ = ("_cancelling", "_clocks", "_task", "due", "expired")

    def __init__(self, clocks: "Deadlines", due: float) -> None:
        self._clocks, self.due, self.expired = clocks, due, False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[object] = task
        self._cancelling = task.cancelling()
        self._clocks.begin(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clocks.end(self)
        # Somebody else who cancelled the task as well wants it to end.
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """The time is up."""
        self.expired = True
        self._task.cancel()


class Deadlines:
    """The clocks of open requests. They stand still while the client is being asked something."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._left: dict[Deadline, float] = {}
        self._stops = 0
        self._timer: asyncio.TimerHandle | None = None

    def running(self, seconds: float) -> Deadline:
        """A clock that gives ``seconds`` from now on."""
        return Deadline(self, asyncio.get_running_loop().time() + seconds)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """For this long no clock runs that has begun to."""
        loop = asyncio.get_running_loop()
        self._stops += 1
        for clock in self._running:
            if not clock.expired and clock.due != inf:
                self._left[clock] = clock.due - loop.time()
                clock.due = inf
        try:
            yield
        finally:
            self._stops -= 1
            if self._stops == 0:
                for clock, left in self._left.items():
                    clock.due = loop.time() + left
                self._left.clear()
                self._set()

    def begin(self, clock: Deadline) -> None:
        """Called by ``clock``."""
        self._running.add(clock)
        if self._timer is None or clock.due < self._timer.when():
            self._set()

    def end(self, clock: Deadline) -> None:
        """Called by ``clock``."""
        self._running.discard(clock)
        self._left.pop(clock, None)

    def _set(self) -> None:
        """Sets the timer for the first clock that may run out."""
        first = min((clock.due for clock in self._running if not clock.expired), default=inf)
        if self._timer is not None:
            self._timer.cancel()
        ring = asyncio.get_running_loop().call_at
        self._timer = None if first == inf else ring(first, self._ring)

    def _ring(self) -> None:
        now = asyncio.get_running_loop().time()
        for clock in self._running:
            if clock.due <= now and not clock.expired:
                clock.expire()
        self._set()
