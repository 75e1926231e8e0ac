"""Tells open pages that something changed: a stream of server-sent events for each tab that is looked at.

The rules:

1. Nothing is asked while nobody looks. What is sent says only that there is news; the page asks for it.
2. Each stream begins with news, once it is known what a change is compared with: what changed between the
   answer that a tab shows and its stream would be seen by nobody.
"""

import asyncio
import hashlib

import msgspec

from mcpzip.server.http.response import HttpResponse
from mcpzip.server.http.send_queue import QueueBudget, SendQueue
from mcpzip.ui.limits import LIMITS, STREAMS
from mcpzip.ui.sources import Sources

INTERVAL = 2.0
"""Seconds between two looks while a page is open; run files are written as often."""
_NEWS = b'{"changed":true}'


class Changes:
    """The streams of all open pages."""

    def __init__(self, sources: Sources, interval: float = INTERVAL) -> None:
        self._sources, self._interval = sources, interval
        self._budget = QueueBudget(LIMITS.untold, LIMITS.untold_small, LIMITS.untold_by_all)
        self._queues: set[SendQueue] = set()
        self._task: asyncio.Task[None] | None = None
        self._looked = False  # whether the task knows what a change is compared with

    @property
    def is_full(self) -> bool:
        """Whether no more pages can be told."""
        return len(self._queues) >= STREAMS

    def tell(self, response: HttpResponse) -> None:
        """Sends ``response`` an event for each change from now on."""
        queue = SendQueue(self._budget)
        self._queues.add(queue)
        ended = response.on_end

        def end() -> None:
            ended()
            self._queues.discard(queue)
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
        before = b""
        while True:
            now = await self._digest()
            if now != before:
                before, self._looked = now, True
                await self._sources.open_ahead()
                for queue in list(self._queues):
                    queue.put_if_room(_NEWS)
            await asyncio.sleep(self._interval)

    async def _digest(self) -> bytes:
        """Of all that a page shows and that changes by itself. Memory changes all the time, so it isn't in
        it.
        """
        try:
            found: object = await self._sources.processes(memory=False)
        except Exception as error:  # the page that asks the same says it; here it only is a change
            found = f"{type(error).__name__}: {error}"
        said = msgspec.json.encode((found, self._sources.stamp(), self._sources.logins.reports()))
        return hashlib.blake2b(said, digest_size=16).digest()

    async def close(self) -> None:
        """Ends all streams."""
        for queue in list(self._queues):
            queue.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
