"""Computing that clients ask for, off the event loop: few threads, and turns.

The rules: only what computes goes here. What waits for something else (a disk, a keyring, an import) has a
thread of its own, `mcpzip.system.threads`, and holds up nobody's turn. As there, the threads are daemons and
nobody waits for them. More of them would make nothing faster: each takes the interpreter from the event loop
for some milliseconds at a time.
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mcpzip.model.errors import OverloadedError
from mcpzip.model.limits import COMPUTATIONS, COMPUTING
from mcpzip.system.threads import begin_thread

T = TypeVar("T")

LINGERING = 2.0
"""Seconds after which a thread ends that has nothing to do."""


@dataclass(frozen=True, slots=True)
class Asker:
    """For whom something is computed. whose: those of one have their turns among each other. gone: whether
    nobody waits for it any more.
    """

    whose: object = None
    gone: Callable[[], bool] = lambda: False


ASKER: ContextVar[Asker] = ContextVar("asker", default=Asker())  # noqa: B039 # it never changes
"""For whom the task is that is running."""


class _Job(Generic[T]):
    """Something to compute, and who waits for it on which event loop."""

    def __init__(self, work: Callable[[], T], name: str, asker: Asker) -> None:
        self.work, self.name, self.asker = work, name, asker
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[T] = self.loop.create_future()

    @property
    def wanted(self) -> bool:
        """Whether anybody waits for it."""
        return not self.outcome.done() and not self.asker.gone()

    def run(self) -> None:
        """Computes it, and tells what came of it."""
        threading.current_thread().name = self.name
        try:
            self.tell(self.outcome.set_result, self.work())
        except BaseException as error:
            self.tell(self.outcome.set_exception, error)

    def tell(self, settle: Callable[[Any], None], result: object) -> None:
        """Tells it by ``settle``, from any thread."""

        def told() -> None:
            if not self.outcome.done():
                settle(result)

        try:
            self.loop.call_soon_threadsafe(told)
        except RuntimeError:
            pass  # the loop is closed: nobody wants to know any more


class Workers:
    """The threads, and what waits for one: each client has its turn, whose own is done in order.

    threads, room: how many there are, and how much may wait. Used from any event loop.
    """

    def __init__(self, threads: int = COMPUTING, room: int = COMPUTATIONS) -> None:
        self._threads, self._room = threads, room
        self._lock = threading.Lock()  # held for a moment only, by the event loop too
        self._there = threading.Semaphore(0)  # how much waits
        self._begun = self._idle = self._size = 0
        self._waiting: OrderedDict[object, deque[_Job[Any]]] = OrderedDict()

    async def compute(self, work: Callable[[], T], name: str) -> T:
        """``work()``, in its turn. Cancelling abandons it, or drops it if its turn hasn't come.

        name: of the thread, for as long. Raises OverloadedError when too much waits.
        """
        job = _Job(work, name, ASKER.get())
        self._add(job)
        try:
            return await job.outcome
        except asyncio.CancelledError:
            self._drop(job)
            raise

    def _add(self, job: _Job[Any]) -> None:
        with self._lock:
            self._make_room(job.asker.whose)
            self._waiting.setdefault(job.asker.whose, deque()).append(job)
            self._size += 1
            begins = self._idle < self._size and self._begun < self._threads
            self._begun += begins
        self._there.release()
        if begins:
            begin_thread(threading.Thread(target=self._work, name=job.name, daemon=True))

    def _make_room(self, whose: object) -> None:
        """Whoever has most waiting loses what came last. Raises OverloadedError when that is ``whose``."""
        if self._size < self._room:
            return
        most = max(self._waiting, key=lambda each: len(self._waiting[each]))
        if len(self._waiting[most]) <= len(self._waiting.get(whose, ())) + 1:
            raise OverloadedError
        lost = self._waiting[most].pop()
        self._size -= 1
        lost.tell(lost.outcome.set_exception, OverloadedError())

    def _drop(self, job: _Job[Any]) -> None:
        with self._lock:
            its = self._waiting.get(job.asker.whose, deque())
            if job in its:
                its.remove(job)
                self._size -= 1
                if not its:
                    del self._waiting[job.asker.whose]

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            called = self._there.acquire(timeout=LINGERING)
            with self._lock:
                self._idle -= 1
                job = self._next() if called else None
                if not called and not self._waiting:
                    self._begun -= 1
                    return
            if job is None:
                continue
            if job.wanted:
                job.run()
            else:
                job.tell(job.outcome.set_exception, OverloadedError())
            del job  # and all that it knows, until there is another

    def _next(self) -> "_Job[Any] | None":
        """What is next; None where that was dropped meanwhile."""
        if not self._waiting:
            return None
        whose, its = self._waiting.popitem(last=False)
        job = its.popleft()
        self._size -= 1
        if its:
            self._waiting[whose] = its  # behind everybody else
        return job


_workers = Workers()


async def computed(work: Callable[[], T], name: str) -> T:
    """`Workers.compute`, by those of this process."""
    return await _workers.compute(work, name)
