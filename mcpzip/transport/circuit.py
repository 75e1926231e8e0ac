"""When to try a failing upstream again (pure).

The rule: exponential back-off with equal jitter, half of each delay drawn at random ("Exponential Backoff
And Jitter", M. Brooker, AWS Architecture Blog, 2015). So a server that is down is asked ever less often, and
clients that failed together don't come back together.
"""

import random
from dataclasses import dataclass, field

FIRST_DELAY = 0.5  # s
LONGEST_DELAY = 60.0  # s


@dataclass(slots=True)
class Circuit:
    """Closed: requests go through. Open: they fail at once until ``retry_at`` (monotonic s)."""

    failures: int = 0
    retry_at: float = 0.0
    reason: str = ""
    _random: random.Random = field(default_factory=random.Random, repr=False)

    def failed(self, now: float, reason: str) -> None:
        """A connection attempt failed at ``now``."""
        self.failures += 1
        # The exponent is bounded: a server that is down for days would overflow it.
        ceiling = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(self.failures - 1, 60))
        self.retry_at = now + self._random.uniform(ceiling / 2, ceiling)
        self.reason = reason

    def succeeded(self) -> None:
        """It is back."""
        self.failures, self.retry_at, self.reason = 0, 0.0, ""

    def open(self, now: float) -> bool:
        """Whether to refuse without trying."""
        return now < self.retry_at
