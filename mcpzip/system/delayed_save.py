"""Saving what changes often, not every time that it changes.

The rule: a save begins some time after it is wanted, and whatever is wanted in between is saved with it. Two
saves never overlap, so that an older state cannot replace a newer one.
"""

import asyncio
from collections.abc import Awaitable, Callable


class DelayedSave:
    """Calls ``save`` some time after it is wanted. Everything runs on one event loop.

    save: keeps what is there when it is called; it raises nothing. name: that of its tasks.
    """

    def __init__(self, save: Callable[[], Awaitable[None]], name: str) -> None:
        self._save, self._name = save, name
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def want(self, after: float, *, quiet: bool = False) -> None:
        """Save in ``after`` seconds, unless that is planned already.

        quiet: whether what is planned is put off, so that a save begins after so many seconds without a wish.
        """
        if self._timer is not None:
            if not quiet:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(after, self._begin)

    def withdraw(self) -> bool:
        """Plan no save any more. Returns whether one was planned."""
        if self._timer is None:
            return False
        self._timer.cancel()
        self._timer = None
        return True

    async def settled(self, timeout: float | None = None) -> None:
        """Waits until no save is under way, for ``timeout`` seconds at most."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout)

    async def flush(self) -> None:
        """Saves at once what a save was planned for, and waits until it is saved."""
        if self.withdraw():
            self._begin()
        await self.settled()

    def _begin(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._in_turn(self._task), name=self._name)

    async def _in_turn(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait({before})
        await self._save()
