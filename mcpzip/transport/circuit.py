"""When to try a failing upstream again (pure).

The rule: a server that is down is asked ever less often, and clients that failed together do not return
together.
"""

import random

from mcpzip.system.backoff import Backoff

FIRST_DELAY = 0.5  # s
LONGEST_DELAY = 60.0  # s


class Circuit:
    """Closed: requests go through. Open: they fail at once until ``retry_at`` (monotonic s)."""

    __slots__ = ("_backoff", "reason", "retry_at")

    def __init__(self, source: random.Random | None = None) -> None:
        """source: where the random share of a delay comes from."""
        self._backoff = Backoff(FIRST_DELAY, LONGEST_DELAY, jitter=0.5, source=source)
        self.retry_at = 0.0
        self.reason = ""

    @property
    def failures(self) -> int:
        """How many attempts have failed in a row."""
        return self._backoff.taken

    def failed(self, now: float, reason: str) -> None:
        """A connection attempt failed at ``now``."""
        self.retry_at = now + self._backoff.next()
        self.reason = reason

    def succeeded(self) -> None:
        """It is back."""
        self._backoff.reset()
        self.retry_at, self.reason = 0.0, ""

    def open(self, now: float) -> bool:
        """Whether to refuse without trying."""
        return now < self.retry_at
