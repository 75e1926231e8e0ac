"""Ranking signals other than a tool's text: configured boosts, past use, and the health of servers.

The rule: signals never put a tool before one whose name the query gives. They reorder tools of similar scores
only, except for a configured boost, and for words that led to a tool before (`learned_words`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from mcpzip.search.learned_words import LearnedWords

MAX_USAGE_BONUS = 0.06  # the limit of the bonus of a tool that was often used
HALF_BONUS_USES = 3.0  # recent uses that give half of it
FAILING_FACTOR = 0.9  # of tools whose server can't be reached
STALE_FACTOR = 0.97  # of tools whose server could not be listed last time


class Signals(msgspec.Struct, frozen=True, eq=False):
    """boosts: factors by server; 1 when absent. uses: by a tool's name, its recent successful calls, decayed.
    failing, stale: names of servers. words: that led to tools before; None for none.

    Compared by identity, as a part of cache keys: reuse an instance while nothing changes.
    """

    boosts: Mapping[str, float] = {}
    uses: Mapping[str, float] = {}
    failing: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()
    words: "LearnedWords | None" = None

    def factor(self, server: str, name: str) -> float:
        """The factor of the score of the tool called ``name``."""
        if self is NO_SIGNALS:
            return 1.0
        factor = 1.0
        for _, each in self.factors(server, name):
            factor *= each
        return factor

    def factors(self, server: str, name: str) -> list[tuple[str, float]]:
        """The factors whose product is `factor`, each with its reason."""
        found: list[tuple[str, float]] = []
        if server in self.boosts:
            found.append(("boost", self.boosts[server]))
        if name in self.uses:
            uses = self.uses[name]
            found.append(("used before", 1 + MAX_USAGE_BONUS * uses / (uses + HALF_BONUS_USES)))
        if server in self.failing:
            found.append(("failing", FAILING_FACTOR))
        elif server in self.stale:
            found.append(("stale", STALE_FACTOR))
        return found


NO_SIGNALS = Signals()
