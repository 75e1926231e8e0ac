"""The words the catalog knows, and what a word it doesn't know was probably meant to be.

The rule: a known word is never touched. An unknown one is repaired by the first of these that answers: the known words fewest
mistakes away (two swapped neighbours are one mistake), two known words written as one, the known words it is the beginning of.
Equally near words all stand for it; the rest of the query decides between them.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

SHORTEST_REPAIRED = 4  # letters; every shorter word is one mistake away from dozens of others
TWO_MISTAKES_FROM = 7  # letters; from 6 on nothing was gained, at 8 "cacuate" stays unknown (docs/search.md)
SHORTEST_BEGINNING = 3
MOST_ALTERNATIVES = 3
_LONGEST_REPAIRED = 32
_REMEMBERED = 512


@dataclass(frozen=True, slots=True)
class Repair:
    """What an unknown word may stand for.

    alternatives: known words, best first; of a "split" they are parts, and all of them are meant.
    """

    kind: Literal["typo", "split", "beginning"]
    alternatives: tuple[str, ...]


class Vocabulary:
    """Known words and in how many tools each stands. Never changes."""

    def __init__(self, frequencies: Mapping[str, int]) -> None:
        self._frequencies = dict(frequencies)
        self._sorted = sorted(
            word for word in self._frequencies if len(word) >= SHORTEST_BEGINNING and word.isalpha()
        )
        self._by_length: dict[int, tuple[list[str], array[int]]] = {}
        for word in self._sorted:
            bucket, letters = self._by_length.setdefault(len(word), ([], array("Q")))
            bucket.append(word)
            letters.append(_letters(word))
        self._repairs: dict[str, Repair | None] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._frequencies

    def repair(self, word: str) -> Repair | None:
        """What the unknown ``word`` may stand for; None when nothing is near enough."""
        if word not in self._repairs:
            if len(self._repairs) >= _REMEMBERED:
                self._repairs = {}
            self._repairs[word] = self._repair(word)
        return self._repairs[word]

    def nearest(self, word: str, most: int) -> list[tuple[int, str]]:
        """``(mistakes, known word)`` of those within ``most`` mistakes: fewest mistakes, then most frequent, first."""
        letters = _letters(word)
        found: list[tuple[int, int, str]] = []
        for length in range(len(word) - most, len(word) + most + 1):
            if length not in self._by_length:
                continue
            bucket, known_letters = self._by_length[length]
            # A mistake changes the set of letters by two at most: one xor rules out nearly every word.
            near = [
                place
                for place, known in enumerate(known_letters)
                if (known ^ letters).bit_count() <= 2 * most
            ]
            for known in [bucket[place] for place in near]:
                mistakes = distance(word, known, most)
                if mistakes <= most:
                    found.append((mistakes, -self._frequencies[known], known))
        return [(mistakes, known) for mistakes, _, known in sorted(found)]

    def beginning_with(self, word: str) -> list[str]:
        """The known words that begin with ``word``, most frequent first."""
        start = bisect_left(self._sorted, word)
        end = bisect_right(self._sorted, word + "\U0010ffff")
        return sorted(self._sorted[start:end], key=lambda known: (-self._frequencies[known], known))

    def _repair(self, word: str) -> Repair | None:
        if not word.isalpha() or len(word) > _LONGEST_REPAIRED:
            return None
        if len(word) >= SHORTEST_REPAIRED:
            near = self.nearest(word, 2 if len(word) >= TWO_MISTAKES_FROM else 1)
            if near:
                best = [known for mistakes, known in near if mistakes == near[0][0]]
                return Repair("typo", tuple(best[:MOST_ALTERNATIVES]))
            parts = self._split(word)
            if parts:
                return Repair("split", parts)
        begun = self.beginning_with(word) if len(word) >= SHORTEST_BEGINNING else []
        return Repair("beginning", tuple(begun[:MOST_ALTERNATIVES])) if begun else None

    def _split(self, word: str) -> tuple[str, str] | None:
        """``word`` cut in two known words, the cut that leaves the rarer of them most frequent."""
        cuts = [
            (min(self._frequencies[word[:cut]], self._frequencies[word[cut:]]), cut)
            for cut in range(2, len(word) - 1)
            if word[:cut] in self._frequencies and word[cut:] in self._frequencies
        ]
        if not cuts:
            return None
        _, cut = max(cuts)
        return word[:cut], word[cut:]


def distance(left: str, right: str, most: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours from one word to the other; ``most + 1`` if more.

    Restricted Damerau-Levenshtein distance (optimal string alignment).
    """
    if abs(len(left) - len(right)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, letter in enumerate(left, 1):
        current = [i]
        for j, other in enumerate(right, 1):
            cost = min(row[j] + 1, current[-1] + 1, row[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > most and (not before or min(row) > most):
            return most + 1
        before, row = row, current
    return min(row[-1], most + 1)


def _letters(word: str) -> int:
    """The set of letters of ``word`` as bits; letters 64 code points apart share one."""
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 63)
    return bits
