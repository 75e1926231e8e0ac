"""What is known of tools beside their texts: preferences of the config, past use, servers in trouble.

The rule: signals move tools that fit about as well, and no more; they never put anything before a tool that
is called what the query says. Only what the config itself says can do more than that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

USED = 0.06  # what a tool gains at most that was used a lot; half of it after `HALF` recent uses
HALF = 3.0
FAILING = 0.9  # what is left to the tools of a server that can't be reached
STALE = 0.97  # … of one whose tools are as they were when it could last be asked


@dataclass(frozen=True, eq=False)
class Signals:
    """boosts: by server, as configured; 1 when absent. uses: by the name of a tool, its recent successful
    calls, decayed. failing, stale: names of servers.

    Compared by identity: make a new one only when something changed.
    """

    boosts: Mapping[str, float] = field(default_factory=dict)
    uses: Mapping[str, float] = field(default_factory=dict)
    failing: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()

    def factor(self, server: str, name: str) -> float:
        """What the score of the tool called ``name`` is multiplied by."""
        if self is NO_SIGNALS:
            return 1.0
        factor = 1.0
        for _, each in self.parts(server, name):
            factor *= each
        return factor

    def parts(self, server: str, name: str) -> list[tuple[str, float]]:
        """What `factor` is made of, each with its reason."""
        found: list[tuple[str, float]] = []
        if server in self.boosts:
            found.append(("boost", self.boosts[server]))
        if name in self.uses:
            uses = self.uses[name]
            found.append(("used before", 1 + USED * uses / (uses + HALF)))
        if server in self.failing:
            found.append(("failing", FAILING))
        elif server in self.stale:
            found.append(("stale", STALE))
        return found


NO_SIGNALS = Signals()
