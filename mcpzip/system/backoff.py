"""Exponential backoff: how long to wait before the next attempt (pure).

Each pause is ``factor`` times the one before, up to a maximum. With ``jitter``, a share of each pause is
random, so that clients that failed together do not retry together; 0.5 is the equal jitter of "Exponential
Backoff And Jitter" (M. Brooker, AWS Architecture Blog, 2015).
"""

import random

_MAX_EXPONENT = 60
"""Without a bound, the power overflows a float after days of failures."""


class Backoff:
    """Pauses from ``shortest`` to ``longest`` seconds, each ``factor`` times the one before.

    jitter: the random share of a pause, 0 to 1. taken: the number of pauses since the start or the last
    `reset`.
    """

    __slots__ = ("_factor", "_jitter", "_longest", "_random", "_shortest", "taken")

    def __init__(
        self,
        shortest: float,
        longest: float,
        *,
        factor: float = 2.0,
        jitter: float = 0.0,
        source: random.Random | None = None,
    ) -> None:
        """source: the random number generator; None means the `random` module."""
        self._shortest, self._longest, self._factor, self._jitter = shortest, longest, factor, jitter
        self._random = source
        self.taken = 0

    def next(self) -> float:
        """The next pause, in seconds."""
        self.taken += 1
        whole = self.pause(self.taken)
        if not self._jitter:
            return whole
        return whole * (self._random or random).uniform(1.0 - self._jitter, 1.0)

    def pause(self, number: int) -> float:
        """Pause ``number``, counted from 1, in seconds and without jitter."""
        return min(self._longest, self._shortest * self._factor ** min(max(number - 1, 0), _MAX_EXPONENT))

    def reset(self) -> None:
        """The next pause is the shortest again."""
        self.taken = 0
