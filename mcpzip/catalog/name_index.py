""" "Did you mean": the tool names that are similar to a name that doesn't exist.

The rule: case, separators and a missing server don't count: ``sendMessage``, ``send-message`` and
``Slack.send_message`` all mean ``slack__send_message``. The similarity of what remains is Dice's coefficient
of the letter pairs (Ecology 26:3, 1945), which is high despite typing errors and swapped words.
"""

import re
from collections.abc import Collection, Iterable

from mcpzip.model.limits import ASKED_NAME, NAME_COMPARED, NAME_LIKE
from mcpzip.model.names import folded, join, split

_LEAST_SIMILARITY = 0.45
"""From 0 to 1. Below it two names are similar by chance only."""

_OTHER_SERVER, _NO_SERVER = 0.9, 0.95
"""Factors of the similarity if only the tool's own name is similar: with another server, and with none."""


class NameIndex:
    """Finds similar names among ``(server, tool)`` pairs. Tools with names longer than `NAME_LIKE` aren't
    found."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._full_names: dict[str, list[str]] = {}
        self._tools: dict[str, list[str]] = {}
        for server, tool in names:
            if len(tool) > NAME_LIKE:
                continue
            name = join(server, tool)
            self._full_names.setdefault(folded(name), []).append(name)
            self._tools.setdefault(folded(tool), []).append(name)

    def alike(self, name: str, servers: Collection[str] | None = None) -> tuple[str, ...]:
        """The full names that equal ``name``, with or without their server, except for case and separators.

        servers: if given, only names of these, and names equal without their server only if no others are.
        """
        key = folded(name) if len(name) <= ASKED_NAME else ""
        if not key:
            return ()
        full, tools = self._full_names.get(key, ()), self._tools.get(key, ())
        if servers is None:
            return tuple(sorted({*full, *tools}))
        return tuple(sorted(_of(servers, full) or _of(servers, tools)))

    def nearest(self, name: str, n: int) -> tuple[str, ...]:
        """At most ``n`` full names that are similar to ``name``, best first. The first `NAME_COMPARED`
        characters of each are compared.
        """
        if len(name) > ASKED_NAME:
            return ()
        full, tool = folded(name), folded(_SERVER_SEPARATOR.split(name)[-1])
        scores: dict[str, float] = {}
        for wanted, names, weight in (
            (full, self._full_names, 1.0),
            (full, self._tools, _NO_SERVER),
            (tool if tool != full else "", self._tools, _OTHER_SERVER),
        ):
            pairs = _pairs(wanted)
            for other, full_names in names.items() if pairs else ():
                score = weight * _similarity(pairs, other)
                if score >= _LEAST_SIMILARITY:
                    scores.update((each, score) for each in full_names if score > scores.get(each, 0.0))
        return tuple(sorted(scores, key=lambda each: (-scores[each], each))[:n])


_SERVER_SEPARATOR = re.compile(r"__|[./:]")


def _of(servers: Collection[str], names: Iterable[str]) -> list[str]:
    return [name for name in names if (parts := split(name)) and parts[0] in servers]


def _pairs(key: str) -> frozenset[str]:
    framed = f" {key[:NAME_COMPARED]} "
    return frozenset(framed[at : at + 2] for at in range(len(framed) - 1)) if key else frozenset()


def _similarity(pairs: frozenset[str], key: str) -> float:
    """From 0 to 1. Searching ``key`` for each pair is faster than making its pairs: there may be 50,000
    names."""
    framed = f" {key[:NAME_COMPARED]} "
    shared = sum([pair in framed for pair in pairs])
    return 2 * shared / (len(pairs) + max(shared, len(framed) - 1))
