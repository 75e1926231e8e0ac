"""The names most like one that isn't there.

The rule: case and separators don't count, and neither does a missing server: ``sendMessage``,
``send-message`` and ``Slack.send_message`` all mean ``slack__send_message``. What is left is told by the
pairs of letters two names share (the coefficient of Dice, Ecology 26:3, 1945), which forgives slips of the
finger and swapped words alike.
"""

import re
from collections.abc import Iterable

from mcpzip.model.names import join

_LEAST = 0.45
"""Of 1. Below it two names look alike by accident only."""

_OTHER_SERVER, _NO_SERVER = 0.9, 0.95
"""What likeness counts when only the tool's own name is like it."""


class Names:
    """The names of a catalog, ready to be compared with: ``(server, tool)`` pairs."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._wholes: dict[str, list[str]] = {}
        self._tools: dict[str, list[str]] = {}
        for server, tool in names:
            name = join(server, tool)
            self._wholes.setdefault(_folded(name), []).append(name)
            self._tools.setdefault(_folded(tool), []).append(name)

    def alike(self, name: str) -> tuple[str, ...]:
        """The names equal to ``name`` but for case and separators; else those whose tool's own name is."""
        folded = _folded(name)
        found = self._wholes.get(folded) or self._tools.get(folded) if folded else None
        return tuple(sorted(found or ()))

    def nearest(self, name: str, n: int) -> tuple[str, ...]:
        """The ``n`` names most like ``name``, best first; fewer when fewer are like it."""
        whole, tool = _folded(name), _folded(_LAST_PART.split(name)[-1])
        scores: dict[str, float] = {}
        for asked, names, weight in (
            (whole, self._wholes, 1.0),
            (whole, self._tools, _NO_SERVER),
            (tool if tool != whole else "", self._tools, _OTHER_SERVER),
        ):
            pairs = _pairs(asked)
            for folded, joined in names.items() if pairs else ():
                score = weight * _likeness(pairs, folded)
                if score >= _LEAST:
                    scores.update((each, score) for each in joined if score > scores.get(each, 0.0))
        return tuple(sorted(scores, key=lambda each: (-scores[each], each))[:n])


_SEPARATORS = re.compile(r"[\W_]+")
_LAST_PART = re.compile(r"__|[./:]")


def _folded(name: str) -> str:
    return _SEPARATORS.sub("", name.casefold())


def _pairs(folded: str) -> frozenset[str]:
    framed = f" {folded} "
    return frozenset(framed[at : at + 2] for at in range(len(framed) - 1)) if folded else frozenset()


def _likeness(pairs: frozenset[str], folded: str) -> float:
    """From 0 to 1. The pairs are looked for in the name, not made of it: there may be 50,000 names."""
    framed = f" {folded} "
    shared = sum([pair in framed for pair in pairs])
    return 2 * shared / (len(pairs) + max(shared, len(framed) - 1))
