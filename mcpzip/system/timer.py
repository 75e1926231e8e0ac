"""A timer that is set for every request and seldom fires.

The rule: setting and clearing it costs next to nothing. The event loop's own timer stays as it is, and is set
anew only when it would fire too late, or has fired too early.
"""

import asyncio
from collections.abc import Callable


class Timer:
    """A timer of one event loop. callback: what it will call; None while it isn't set."""

    def __init__(self) -> None:
        self.callback: Callable[[], object] | None = None
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def set(self, seconds: float, callback: Callable[[], object]) -> None:
        """Calls ``callback`` in ``seconds``, instead of what it was set to call before."""
        self.callback, self._due = callback, asyncio.get_running_loop().time() + seconds
        if self._handle is None or self._due < self._handle.when():
            self._schedule()

    def clear(self) -> None:
        """Calls nothing until it is set again."""
        self.callback = None

    def close(self) -> None:
        """Clears it, and cancels the event loop's timer."""
        self.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _schedule(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = asyncio.get_running_loop().call_at(self._due, self._fire)

    def _fire(self) -> None:
        self._handle = None
        if (callback := self.callback) is None:
            return
        if asyncio.get_running_loop().time() < self._due:
            self._schedule()
        else:
            self.clear()
            callback()
