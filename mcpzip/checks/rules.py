"""Rules that find phrases (pure).

The rule: a phrase is a row of parts that follow each other within a number of characters. Each part is
searched by itself, so that the work grows with the length of the text and not with its content: no part has
an unbounded gap in it, and parts are joined by bisection.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec import Struct

from mcpzip.checks.finding import Hit, Severity

USER = r"\b(?:user|human|person|customer|account holder|owner)s?\b"
"""The person whom the model works for, in a phrase."""
_SEARCHED = 16_384
"""Characters of a text that are searched at once."""
_MOST = 200
"""Places of one part that are looked at in one piece of text."""


class Rule(Struct, frozen=True):
    """A phrase. parts: regular expressions for folded text, in their order. within: characters from the start
    of one part to the start of the next. needs: texts of which one is in every match, so that most texts can
    be skipped without a search; also: texts of which another one is, if there are any.
    """

    check: str
    severity: Severity
    parts: tuple[str, ...]
    within: int
    needs: tuple[str, ...]
    also: tuple[str, ...] = ()

    def hits(self, text: str) -> Iterator[Hit]:
        """Every place of the phrase in the folded ``text``, by its first part."""
        found = [_places(_compiled(part), text) for part in self.parts]
        if not all(found):
            return
        starts = [[start for start, _ in places] for places in found[1:]]
        for start, end in found[0]:
            last, upto = start, end
            for at, places in enumerate(found[1:]):
                next_one = bisect_left(starts[at], upto)
                if next_one == len(places) or places[next_one][0] - last > self.within:
                    break
                last, upto = places[next_one]
            else:
                yield Hit(self.check, self.severity, start, upto)


def rule(
    check: str,
    severity: Severity,
    *parts: str,
    needs: Sequence[str],
    also: Sequence[str] = (),
    within: int = 100,
) -> Rule:
    """A `Rule` of patterns that are written as text."""
    return Rule(check, severity, parts, within, tuple(needs), tuple(also))


class RuleSet:
    """Rules of which most can be skipped for most texts."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        needed: dict[str, int] = {}
        for at, one in enumerate(self.rules):
            for word in one.needs:
                needed[word] = needed.get(word, 0) | 1 << at
        self._ascii = tuple((word, bits) for word, bits in needed.items() if word.isascii())
        self._needed = tuple(needed.items())

    def wanted(self, text: str) -> list[Rule]:
        """The rules that can find something in the folded ``text``."""
        bits = 0
        for word, rules in self._ascii if text.isascii() else self._needed:
            if word in text:
                bits |= rules
        if not bits:
            return []
        return [
            one
            for at, one in enumerate(self.rules)
            if bits >> at & 1 and (not one.also or any(word in text for word in one.also))
        ]

    def found(self, text: str) -> list[Rule]:
        """The rules that find something in the folded ``text``; if it is long, that can."""
        wanted = self.wanted(text)
        if len(text) > _SEARCHED:
            return wanted
        return [one for one in wanted if next(one.hits(text), None) is not None]


@cache
def _compiled(part: str) -> re.Pattern[str]:
    """Most rules are never tried, and compiling all of them takes longer than many a start."""
    return re.compile(part)


def _places(part: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    places = []
    for found in part.finditer(text):
        places.append(found.span())
        if len(places) == _MOST:
            break
    return places
