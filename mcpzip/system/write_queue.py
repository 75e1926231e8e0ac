"""A queue that a thread writes to disk.

The rule: who puts an item never waits. Items that can't be queued or written are counted, so that the count
can be written later.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from mcpzip.system.threads import begin_thread

GATHER = 0.05
"""Seconds that items are gathered, so that many cost one write."""

T = TypeVar("T")


class WriteQueue(Generic[T]):
    """items: those that wait. lost: how many could not be queued or written, and are not told yet."""

    def __init__(
        self,
        name: str,
        most: int,
        write: Callable[[], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """name: of the thread. most: items that may wait. write: called in the thread while there are items;
        it takes one at least, and must not raise. ended: called in the thread after the last.
        """
        self.items: deque[T] = deque()
        self.lost = 0
        self._name, self._most, self._write, self._ended = name, most, write, ended
        self._counting = threading.Lock()
        self._wake, self._closing, self._done = threading.Event(), threading.Event(), threading.Event()
        self._started = threading.Lock()

    def put(self, item: T) -> None:
        """Has ``item`` written. Never waits, never raises."""
        if len(self.items) >= self._most:
            self.count_lost(1)
            return
        self.items.append(item)
        if not self._wake.is_set():
            self._wake.set()
            if self._started.acquire(blocking=False):  # by the first item, for ever
                begin_thread(threading.Thread(target=self._run, name=self._name, daemon=True))

    def close(self, timeout: float) -> None:
        """Writes what is queued, for ``timeout`` seconds at most."""
        self._closing.set()
        if self._started.locked():
            self._wake.set()
            self._done.wait(timeout)

    def pause(self, seconds: float) -> bool:
        """Waits, in the thread. Returns at once, and True, when the queue is closed."""
        return self._closing.wait(seconds)

    def count_lost(self, change: int) -> None:
        """Changes `lost`."""
        with self._counting:
            self.lost += change

    def _run(self) -> None:
        closing = False
        while not closing:
            self._wake.wait()
            closing = self._closing.wait(GATHER)
            self._wake.clear()
            while self.items:
                self._write()
        self._ended()
        self._done.set()
