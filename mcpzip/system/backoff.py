"""How long to wait before something is tried again (pure).

The rule: every pause is longer than the one before it, up to a longest one. With ``jitter``, a share of each
pause is drawn at random, so that those who failed together do not return together; 0.5 is the equal jitter of
"Exponential Backoff And Jitter" (M. Brooker, AWS Architecture Blog, 2015).
"""

import random

_MOST = 60
"""The exponent is bounded: what fails for days would overflow a float."""


class Backoff:
    """Pauses from ``shortest`` to ``longest`` seconds, each ``factor`` times the one before.

    jitter: the share of a pause that is drawn at random, 0 to 1. taken: how many pauses were taken since the
    beginning, or since `reset`.
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
        """source: where random numbers come from; None means one that nobody can predict."""
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
        """The pause of this ``number``, counted from 1, in seconds and without jitter."""
        return min(self._longest, self._shortest * self._factor ** min(max(number - 1, 0), _MOST))

    def reset(self) -> None:
        """The next pause is the shortest again."""
        self.taken = 0
