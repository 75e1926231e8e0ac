"""Tells open pages that something changed: a stream of server-sent events for each tab that is looked at.

The rules:

1. Nothing is asked while nobody looks. What is sent says only that there is news; the page asks for it.
2. Each stream begins with news, once it is known what a change is compared with: what changed between the
   answer that a tab shows and its stream would be seen by nobody.
3. A stream ends with the sign-in of its browser.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import msgspec

from mcpzip.server.http.response import HttpResponse
from mcpzip.server.http.send_queue import QueueBudget, SendQueue
from mcpzip.ui.limits import LIMITS
from mcpzip.ui.sources import Sources

INTERVAL = 2.0
"""Seconds between two looks while a page is open; run files are written as often."""
_NEWS = b'{"changed":true}'
_NOTHING = object()


def stream_budget() -> QueueBudget:
    """What may wait in the streams of one server."""
    return QueueBudget(LIMITS.untold, LIMITS.untold_small, LIMITS.untold_by_all)


class Changes:
    """The streams of the pages that show the same."""

    def __init__(
        self,
        look: Callable[[], Awaitable[object]],
        budget: QueueBudget,
        interval: float = INTERVAL,
        *,
        before_news: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """look: finds out what they show; what equals the former is no change. interval: seconds.
        before_news: awaited before a change is told.
        """
        self._look_at, self._budget, self._interval = look, budget, interval
        self._before_news = before_news
        self._queues: dict[SendQueue, Callable[[], bool]] = {}
        self._task: asyncio.Task[None] | None = None
        self._looked = False  # whether the task knows what a change is compared with

    def __len__(self) -> int:
        """How many there are."""
        return len(self._queues)

    def tell(self, response: HttpResponse, is_signed_in: Callable[[], bool] = lambda: True) -> None:
        """Sends ``response`` an event for each change from now on, as long as its browser is signed in."""
        queue = SendQueue(self._budget)
        self._queues[queue] = is_signed_in
        ended = response.on_end

        def end() -> None:
            ended()
            self._queues.pop(queue, None)
            if not self._queues and self._task is not None:
                self._task.cancel()
                self._task = None

        response.on_end = end
        response.stream()
        response.deliver(queue)
        if self._task is None:
            self._looked = False
            self._task = asyncio.create_task(self._look(), name="changes")
        elif self._looked:
            queue.put_if_room(_NEWS)

    async def _look(self) -> None:
        before: object = _NOTHING
        while True:
            for queue, is_signed_in in list(self._queues.items()):
                if not is_signed_in():
                    queue.close()
            try:
                now = await self._look_at()
            except Exception as error:  # the page that asks the same says it; here it only is a change
                now = f"{type(error).__name__}: {error}"
            if now != before:
                before, self._looked = now, True
                if self._before_news is not None:
                    await self._before_news()
                for queue in list(self._queues):
                    queue.put_if_room(_NEWS)
            await asyncio.sleep(self._interval)

    async def close(self) -> None:
        """Ends all streams."""
        task = self._task
        for queue in list(self._queues):
            queue.close()
        if task is not None:
            task.cancel()
            await asyncio.wait({task})


async def digest_of(sources: Sources) -> bytes:
    """That of all that a page of `mcpzip ui` shows and that changes by itself. Memory changes all the time,
    so it isn't in it.
    """
    try:
        found: object = await sources.processes(memory=False)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    said = msgspec.json.encode((found, sources.stamp(), sources.logins.reports()))
    return hashlib.blake2b(said, digest_size=16).digest()
