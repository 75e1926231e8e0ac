"""A small pool of threads for computations of clients, with a fair queue (round-robin by client).

The rules: only computations run here. Work that waits for a disk, a keyring or an import has a thread of its
own (`mcpzip.system.threads`), so that it delays no client. The threads are daemons, and the exit of the
process doesn't wait for them. There are few of them, because they share the interpreter lock with the event
loop.
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import msgspec

from mcpzip.model.errors import OverloadedError
from mcpzip.model.limits import COMPUTATIONS, COMPUTING
from mcpzip.system.threads import begin_thread

T = TypeVar("T")

IDLE_TIMEOUT = 2.0
"""Seconds without work after which a thread ends."""


class Requester(msgspec.Struct, frozen=True):
    """The client that a computation is for. key: identifies it; computations with equal keys are done in
    order. gone: whether the client no longer waits for the result.
    """

    key: object = None
    gone: Callable[[], bool] = lambda: False


REQUESTER: ContextVar[Requester] = ContextVar("requester", default=Requester())  # noqa: B039 # it is immutable
"""The client that the running task works for."""


class _Job(Generic[T]):
    """A computation, and the future of its result on the event loop that waits for it."""

    def __init__(self, work: Callable[[], T], name: str, requester: Requester) -> None:
        self.work, self.name, self.requester = work, name, requester
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[T] = self.loop.create_future()

    @property
    def wanted(self) -> bool:
        """Whether its result is still needed."""
        return not self.outcome.done() and not self.requester.gone()

    def run(self) -> None:
        """Runs the computation and sets the future."""
        threading.current_thread().name = self.name
        try:
            self.settle(self.outcome.set_result, self.work())
        except BaseException as error:
            self.settle(self.outcome.set_exception, error)
        finally:
            # This frame is in the traceback of the exception, which the future of this job has: such a cycle
            # would keep all that ``work`` used, perhaps 64 MiB, until the next garbage collection.
            del self

    def settle(self, set_outcome: Callable[[Any], None], outcome: object) -> None:
        """Sets the future by ``set_outcome``, from any thread."""

        def set_if_pending() -> None:
            if not self.outcome.done():
                set_outcome(outcome)

        try:
            self.loop.call_soon_threadsafe(set_if_pending)
        except RuntimeError:
            pass  # the event loop is closed


class Workers:
    """The threads and their queue. Clients take turns; the computations of one client are done in order.

    threads: at most. capacity: computations that may wait. Used from any event loop.
    """

    def __init__(self, threads: int = COMPUTING, capacity: int = COMPUTATIONS) -> None:
        self._threads, self._capacity = threads, capacity
        self._lock = threading.Lock()  # held for a moment only, by the event loop too
        self._queued = threading.Semaphore(0)  # counts waiting jobs
        self._started = self._idle = self._size = 0
        self._waiting: OrderedDict[object, deque[_Job[Any]]] = OrderedDict()

    async def compute(self, work: Callable[[], T], name: str) -> T:
        """The result of ``work()``. Cancelling removes it from the queue; if it runs already, its result is
        ignored.

        name: of the thread while it runs. Raises OverloadedError when too many computations wait.
        """
        job = _Job(work, name, REQUESTER.get())
        self._add(job)
        try:
            return await job.outcome
        except asyncio.CancelledError:
            self._drop(job)
            raise
        finally:
            del job  # as in `_Job.run`

    def _add(self, job: _Job[Any]) -> None:
        with self._lock:
            self._make_room(job.requester.key)
            self._waiting.setdefault(job.requester.key, deque()).append(job)
            self._size += 1
            starts = self._idle < self._size and self._started < self._threads
            self._started += starts
        self._queued.release()
        if starts:
            begin_thread(threading.Thread(target=self._work, name=job.name, daemon=True))

    def _make_room(self, key: object) -> None:
        """If the queue is full, drops the newest job of the client with the most jobs. Raises OverloadedError
        if that is the client ``key``.
        """
        if self._size < self._capacity:
            return
        longest = max(self._waiting, key=lambda each: len(self._waiting[each]))
        if len(self._waiting[longest]) <= len(self._waiting.get(key, ())) + 1:
            raise OverloadedError
        dropped = self._waiting[longest].pop()
        self._size -= 1
        dropped.settle(dropped.outcome.set_exception, OverloadedError())

    def _drop(self, job: _Job[Any]) -> None:
        with self._lock:
            jobs = self._waiting.get(job.requester.key, deque())
            if job in jobs:
                jobs.remove(job)
                self._size -= 1
                if not jobs:
                    del self._waiting[job.requester.key]

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            has_job = self._queued.acquire(timeout=IDLE_TIMEOUT)
            with self._lock:
                self._idle -= 1
                job = self._next() if has_job else None
                if not has_job and not self._waiting:
                    self._started -= 1
                    return
            if job is None:
                continue
            if job.wanted:
                job.run()
            else:
                job.settle(job.outcome.set_exception, OverloadedError())
            del job  # frees its memory while the thread waits

    def _next(self) -> "_Job[Any] | None":
        """The next job; None if the one that was counted has been dropped."""
        if not self._waiting:
            return None
        key, jobs = self._waiting.popitem(last=False)
        job = jobs.popleft()
        self._size -= 1
        if jobs:
            self._waiting[key] = jobs  # behind all other clients
        return job


_workers = Workers()


async def run_in_worker(work: Callable[[], T], name: str) -> T:
    """The result of ``work()``, computed by a thread of the process-wide `Workers`; see `Workers.compute`."""
    return await _workers.compute(work, name)
