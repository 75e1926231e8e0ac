"""The timeouts of requests.

The rule: the timeout of a request that is answered in time costs next to nothing. So all deadlines of a
connection share one timer, which is set for the earliest and checks all of them when it fires.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from types import TracebackType


class Deadline:
    """The deadline of one request, as a context: its task is cancelled when the deadline passes, and the
    context then raises TimeoutError, as `asyncio.timeout` does.

    due: the event loop's time at which it passes. expired: whether it has passed.
    """

    __slots__ = ("_cancelling", "_deadlines", "_seconds", "_task", "due", "expired")

    def __init__(self, deadlines: "Deadlines", seconds: float) -> None:
        """seconds: from when the context is entered."""
        self._deadlines, self._seconds, self.expired = deadlines, seconds, False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._task: asyncio.Task[object] = task
        self._cancelling = task.cancelling()
        self.due = loop.time() + self._seconds
        self._deadlines.begin(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.end(self)
        # A cancellation by anybody else must still end the task.
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancels the task."""
        self.expired = True
        self._task.cancel()


class Deadlines:
    """The deadlines of the open requests of one connection. They can be paused."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._left: dict[Deadline, float] = {}
        self._pauses = 0
        self._timer: asyncio.TimerHandle | None = None

    def running(self, seconds: float) -> Deadline:
        """A deadline of so many ``seconds``."""
        return Deadline(self, seconds)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Pauses the deadlines that have begun, until the context ends."""
        loop = asyncio.get_running_loop()
        self._pauses += 1
        for deadline in self._running:
            if not deadline.expired and deadline.due != inf:
                self._left[deadline] = deadline.due - loop.time()
                deadline.due = inf
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                for deadline, left in self._left.items():
                    deadline.due = loop.time() + left
                self._left.clear()
                self._set_timer()

    def begin(self, deadline: Deadline) -> None:
        """Called by ``deadline``."""
        self._running.add(deadline)
        if self._timer is None or deadline.due < self._timer.when():
            self._set_timer()

    def end(self, deadline: Deadline) -> None:
        """Called by ``deadline``."""
        self._running.discard(deadline)
        self._left.pop(deadline, None)

    def _set_timer(self) -> None:
        """Sets the timer for the earliest deadline."""
        first = min((deadline.due for deadline in self._running if not deadline.expired), default=inf)
        if self._timer is not None:
            self._timer.cancel()
        call_at = asyncio.get_running_loop().call_at
        self._timer = None if first == inf else call_at(first, self._check)

    def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        for deadline in self._running:
            if deadline.due <= now and not deadline.expired:
                deadline.expire()
        self._set_timer()
