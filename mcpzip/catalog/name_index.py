"""The names most like one that isn't there.

The rule: case and separators don't count, and neither does a missing server: ``sendMessage``,
``send-message`` and ``Slack.send_message`` all mean ``slack__send_message``. What is left is told by the
pairs of letters two names share (the coefficient of Dice, Ecology 26:3, 1945), which forgives slips of the
finger and swapped words alike.
"""

import re
from collections.abc import Collection, Iterable

from mcpzip.model.limits import ASKED_NAME, NAME_COMPARED, NAME_LIKE
from mcpzip.model.names import folded, join, split

_LEAST = 0.45
"""Of 1. Below it two names look alike by accident only."""

_OTHER_SERVER, _NO_SERVER = 0.9, 0.95
"""What likeness counts when only the tool's own name is like it."""


class NameIndex:
    """The names of a catalog, ready to be compared with: ``(server, tool)`` pairs.

    One longer than `NAME_LIKE` is like no other.
    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._wholes: dict[str, list[str]] = {}
        self._tools: dict[str, list[str]] = {}
        for server, tool in names:
            if len(tool) > NAME_LIKE:
                continue
            name = join(server, tool)
            self._wholes.setdefault(folded(name), []).append(name)
            self._tools.setdefault(folded(tool), []).append(name)

    def alike(self, name: str, servers: Collection[str] | None = None) -> tuple[str, ...]:
        """The names equal to ``name`` but for case and separators, and those whose tool's own name is.

        servers: only theirs count, and the tools' own names only where no whole name is equal.
        """
        key = folded(name) if len(name) <= ASKED_NAME else ""
        if not key:
            return ()
        wholes, tools = self._wholes.get(key, ()), self._tools.get(key, ())
        if servers is None:
            return tuple(sorted({*wholes, *tools}))
        return tuple(sorted(_of(servers, wholes) or _of(servers, tools)))

    def nearest(self, name: str, n: int) -> tuple[str, ...]:
        """The ``n`` names most like ``name``, best first; fewer when fewer are like it. Of each name the
        first `NAME_COMPARED` characters count.
        """
        if len(name) > ASKED_NAME:
            return ()
        whole, tool = folded(name), folded(_LAST_PART.split(name)[-1])
        scores: dict[str, float] = {}
        for asked, names, weight in (
            (whole, self._wholes, 1.0),
            (whole, self._tools, _NO_SERVER),
            (tool if tool != whole else "", self._tools, _OTHER_SERVER),
        ):
            pairs = _pairs(asked)
            for other, joined in names.items() if pairs else ():
                score = weight * _likeness(pairs, other)
                if score >= _LEAST:
                    scores.update((each, score) for each in joined if score > scores.get(each, 0.0))
        return tuple(sorted(scores, key=lambda each: (-scores[each], each))[:n])


_LAST_PART = re.compile(r"__|[./:]")


def _of(servers: Collection[str], names: Iterable[str]) -> list[str]:
    return [name for name in names if (parts := split(name)) and parts[0] in servers]


def _pairs(key: str) -> frozenset[str]:
    framed = f" {key[:NAME_COMPARED]} "
    return frozenset(framed[at : at + 2] for at in range(len(framed) - 1)) if key else frozenset()


def _likeness(pairs: frozenset[str], key: str) -> float:
    """From 0 to 1. The pairs are looked for in the name, not made of it: there may be 50,000 names."""
    framed = f" {key[:NAME_COMPARED]} "
    shared = sum([pair in framed for pair in pairs])
    return 2 * shared / (len(pairs) + max(shared, len(framed) - 1))
