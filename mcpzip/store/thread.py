"""A store with an event loop and a thread of its own, for code on any loop and in any thread.

The rules: everything that happens to the store, and to what its users remember of it, happens on this loop.
It waits with selectors, which psycopg needs on Windows. The package for the store is imported in the thread,
when it is first used.
"""

import asyncio
import errno
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any, TypeVar

from mcpzip.store.store import Opener, Store
from mcpzip.system.threads import begin_thread

T = TypeVar("T")
_CLOSING = 3.0
"""Seconds to end in."""


class StoreThread:
    """The store that ``opener`` opens, from the first operation on."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._store: Store | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._closed = False

    @property
    def store(self) -> Store:
        """The store, for work on its loop. Raises StoreError."""
        if self._store is None:
            self._store = self._opener()
        return self._store

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of ``work`` on the store's loop. It blocks: it is for threads."""
        try:
            return self.begin(work).result()
        except CancelledError:
            raise OSError(errno.EBADF, "the store was closed") from None

    async def ask(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The same from another loop. A cancelled caller cancels ``work``."""
        return await asyncio.wrap_future(self.begin(work))

    def begin(self, work: Callable[[], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Begins ``work`` on the store's loop."""
        with self._lock:
            if self._closed:
                raise OSError(errno.EBADF, "the store is closed")
            if self._loop is None:
                self._loop = asyncio.SelectorEventLoop()
                run = partial(self._run, self._loop)
                begin_thread(threading.Thread(target=run, name="store", daemon=True))
            return asyncio.run_coroutine_threadsafe(work(), self._loop)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Ends the store, after ``last``. It blocks, for a few seconds at most."""
        with self._lock:
            loop, self._loop, self._closed = self._loop, None, True
        if loop is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._close(last), loop).result(_CLOSING)
        except (TimeoutError, RuntimeError):
            pass  # its connections end with the process
        loop.call_soon_threadsafe(loop.stop)

    async def _close(self, last: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        if last is not None:
            await last()
        own = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not own]
        for task in rest:
            task.cancel()
        if self._store is not None:
            await self._store.close()
        if rest:
            await asyncio.wait(rest, timeout=1.0)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()
