"""Debounced saving of state that changes often.

A save begins some time after the first request, and serves all requests until then. Two saves never overlap,
so an older state cannot replace a newer one.
"""

import asyncio
from collections.abc import Awaitable, Callable


class DelayedSave:
    """Calls ``save`` some time after `want`. Not thread-safe: belongs to one event loop.

    save: writes the current state; must not raise. name: the name of its tasks.
    """

    def __init__(self, save: Callable[[], Awaitable[None]], name: str) -> None:
        self._save, self._name = save, name
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def want(self, after: float, *, quiet: bool = False) -> None:
        """Schedules a save in ``after`` seconds, unless a save is scheduled already.

        quiet: reschedules it instead, so that a save begins ``after`` seconds after the last call.
        """
        if self._timer is not None:
            if not quiet:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(after, self._begin)

    def withdraw(self) -> bool:
        """Cancels the scheduled save. Returns whether there was one."""
        if self._timer is None:
            return False
        self._timer.cancel()
        self._timer = None
        return True

    async def settled(self, timeout: float | None = None) -> None:
        """Waits until no save is running, for ``timeout`` seconds at most."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout)

    async def flush(self) -> None:
        """Starts the scheduled save now, and waits until no save is running."""
        if self.withdraw():
            self._begin()
        await self.settled()

    def _begin(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._save_after(self._task), name=self._name)

    async def _save_after(self, previous: "asyncio.Task[None] | None") -> None:
        if previous is not None:
            await asyncio.wait({previous})
        await self._save()
