"""Looks at the store whenever somebody says that something in it has changed, and now and then without that.

The rule: a message may be lost, and only saves time. What a look finds counts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from mcpzip.store.thread import StoreThread
from mcpzip.system.tasks import retrieve_exception

_FINISHING = 1.0
"""Seconds that `finish` takes at most."""
_LEAST = 0.05
"""Seconds between two looks, however many messages come."""


class Watching:
    """Calls ``look``, which may raise OSError, on the loop of ``thread``. poll: seconds after which it is
    called without a message.
    """

    def __init__(
        self, thread: StoreThread, channel: str, look: Callable[[], Awaitable[None]], poll: float
    ) -> None:
        self._thread, self._channel, self._look, self._poll = thread, channel, look, poll
        self._tasks: set[asyncio.Task[None]] = set()
        self._short: set[asyncio.Task[None]] = set()
        """Those of them that `finish` waits for."""

    def start(self) -> None:
        """Begins to watch. It ends with the loop."""
        self.begin(self._watch())

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Does ``work`` on the loop. Nobody waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(retrieve_exception)
        return task

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """The same for ``work`` that `finish` waits for."""
        task = self.begin(work)
        self._short.add(task)
        task.add_done_callback(self._short.discard)

    def tell(self, message: bytes) -> None:
        """Tells the other processes to look. It doesn't wait for that."""
        self.soon(self._tell(message))

    async def finish(self) -> None:
        """Waits a moment for what was begun with `soon`: for whoever closes the store."""
        if self._short:
            await asyncio.wait([*self._short], timeout=_FINISHING)

    async def _watch(self) -> None:
        news = asyncio.Event()
        listening: asyncio.Task[None] | None = None
        while True:
            if listening is None or listening.done():
                listening = self.begin(self._listen(news))
            news.clear()
            with suppress(OSError):
                await self._look()
            await asyncio.sleep(_LEAST)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await news.wait()

    async def _listen(self, news: asyncio.Event) -> None:
        with suppress(OSError):
            async with self._thread.store.subscribe(self._channel) as messages:
                news.set()  # what was said before
                async for _ in messages:
                    news.set()

    async def _tell(self, message: bytes) -> None:
        with suppress(OSError):
            await self._thread.store.publish(self._channel, message)
