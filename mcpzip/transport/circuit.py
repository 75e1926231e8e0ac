"""When to connect to a failing upstream again.

The rule: attempts become less frequent, to one a minute, and a random share of each delay spreads out
clients that failed at the same moment.
"""

import random

from mcpzip.system.backoff import Backoff

FIRST_DELAY = 0.5  # s
LONGEST_DELAY = 60.0  # s


class CircuitBreaker:
    """Closed: requests go through. Open: they fail at once until ``retry_at`` (monotonic s)."""

    __slots__ = ("_backoff", "reason", "retry_at")

    def __init__(self, source: random.Random | None = None) -> None:
        """source: of the random share of a delay."""
        self._backoff = Backoff(FIRST_DELAY, LONGEST_DELAY, jitter=0.5, source=source)
        self.retry_at = 0.0
        self.reason = ""

    @property
    def failures(self) -> int:
        """How many attempts have failed in a row."""
        return self._backoff.taken

    def failed(self, now: float, reason: str) -> None:
        """Opens the circuit: a connection attempt failed at ``now``."""
        self.retry_at = now + self._backoff.next()
        self.reason = reason

    def succeeded(self) -> None:
        """Closes the circuit."""
        self._backoff.reset()
        self.retry_at, self.reason = 0.0, ""

    def open(self, now: float) -> bool:
        """Whether requests fail without a connection attempt."""
        return now < self.retry_at
