"""What is done for the clients of a site, and its end."""

import asyncio
import contextvars
from collections import Counter
from collections.abc import Callable, Coroutine

from mcpzip.model import limits
from mcpzip.proxy.workers import ASKER, Asker
from mcpzip.server.endpoint import fault_of
from mcpzip.system.tasks import retrieve_exception
from mcpzip.wire import INTERNAL_ERROR, RpcError

Outcome = bytes | RpcError
"""The result of a request, as JSON text, or why there is none."""

_STOPPING = RpcError(INTERNAL_ERROR, "mcpzip was told to stop; the request was cancelled.")


class Work:
    """Tasks: requests that are answered, and what nobody waits for.

    limit: requests at once. over: whether it ends, and whatever begins now is cancelled.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._answering: set[asyncio.Task[bytes]] = set()
        self._of: Counter[object] = Counter()  # how many of them, by whose
        self._aside: set[asyncio.Task[None]] = set()
        self.over = False

    def answer(
        self, work: Coroutine[None, None, bytes], settled: Callable[[Outcome], None], asker: Asker
    ) -> "asyncio.Task[bytes]":
        """Does ``work`` for ``asker`` and tells what came of it."""
        context = contextvars.copy_context()
        context.run(ASKER.set, asker)
        task = asyncio.create_task(work, context=context)
        self._answering.add(task)
        self._of[asker.whose] += 1

        def done(task: "asyncio.Task[bytes]") -> None:
            self._answering.discard(task)
            self._of[asker.whose] -= 1
            if not self._of[asker.whose]:
                del self._of[asker.whose]
            settled(_outcome(task))

        task.add_done_callback(done)
        if self.over:  # it came while the last connections were being closed
            task.cancel()
        return task

    @property
    def full(self) -> bool:
        """Whether there are as many requests as there may be."""
        return len(self._answering) >= self._limit

    def full_for(self, whose: object) -> bool:
        """Whether there are as many of ``whose``: there are always as many left for all others."""
        return self.full or self._of[whose] > self._limit - len(self._answering)

    @property
    def crowded(self) -> bool:
        """Whether as much is under way that is answered by nothing as may be."""
        return len(self._aside) >= limits.NOTICES

    def aside(self, work: Coroutine[None, None, None]) -> None:
        """Does ``work``, which is answered by nothing."""
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        task.add_done_callback(retrieve_exception)

    async def settle(self, patience: float, letting_go: float) -> None:
        """Requests get ``patience`` seconds, then are cancelled and get ``letting_go`` to end."""
        if self._answering:
            await asyncio.wait(list(self._answering), timeout=patience)
        self.over = True
        await _end(self._answering, letting_go)

    async def finish(self, letting_go: float) -> None:
        """All else gets ``letting_go`` seconds, then is cancelled."""
        if self._aside:
            await asyncio.wait(list(self._aside), timeout=letting_go)
        await _end(self._aside, letting_go)


async def _end(tasks: "set[asyncio.Task[bytes]] | set[asyncio.Task[None]]", patience: float) -> None:
    left = list(tasks)
    for each in left:
        each.cancel()
    if left:
        await asyncio.wait(left, timeout=patience)


def _outcome(task: "asyncio.Task[bytes]") -> Outcome:
    if task.cancelled():
        return _STOPPING
    failure = task.exception()
    if failure is None:
        return task.result()
    return fault_of(failure).error if isinstance(failure, Exception) else _STOPPING
