"""The words the catalog knows, and what a word it doesn't know was probably meant to be.

The rule: a known word is never touched. An unknown one is repaired by the first of these that answers: two
known words written as one, the known words fewest mistakes away (two swapped neighbours are one mistake), the
known words it is the beginning of. Equally near words all stand for it; the rest of the query decides between
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# Beside each, what another value costs in nDCG@10; no repairs at all cost .017.
SHORTEST_REPAIRED = 4  # letters; a shorter word is one mistake away from dozens of others. 5: −.001
TWO_MISTAKES_FROM = 7  # letters; 6: −.001, 8: −.001
SHORTEST_BEGINNING = 3  # letters; never: −.002
SHORTEST_PART = 3  # letters of one of two words written as one; never: −.001
MOST_ALTERNATIVES = 3  # 1, 2 and 5 are equal

_SHORTEST_KEPT = 3  # letters
_LONGEST_REPAIRED = 32  # letters
_REMEMBERED = 512  # repairs
_KEYS = {
    key: (row, place + 0.5 * row)
    for row, keys in enumerate(("qwertyuiop", "asdfghjkl", "zxcvbnm"))
    for place, key in enumerate(keys)
}
"""Where the letters are on most keyboards: row and column."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What an unknown word may stand for.

    alternatives: known words, best first; of a "split" they are its two parts, and both are meant.
    """

    kind: Literal["typo", "split", "beginning"]
    alternatives: tuple[str, ...]


class Vocabulary:
    """Known words and in how many tools each stands. Never changes but for what it remembers."""

    def __init__(self, frequencies: Mapping[str, int]) -> None:
        self._frequencies = frequencies
        self._lengths: dict[int, list[str]] = {}
        for word in frequencies:
            if len(word) >= _SHORTEST_KEPT and word.isalpha():
                self._lengths.setdefault(len(word), []).append(word)
        self._by_length: dict[int, tuple[list[str], list[int]]] = {}
        self._repairs: dict[str, Repair | None] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._frequencies

    def __len__(self) -> int:
        return len(self._frequencies)

    def repair(self, word: str) -> Repair | None:
        """What the unknown ``word`` may stand for; None when nothing is near enough."""
        repairs = self._repairs  # another thread may start a new one at any time
        if word not in repairs:
            if len(repairs) >= _REMEMBERED:
                repairs = self._repairs = {}
            repairs[word] = self._repair(word)
        return repairs[word]

    def nearest(self, word: str, most: int) -> list[str]:
        """The known words fewest mistakes away from ``word``, at most ``most``: slips of a finger first, then
        the most frequent.
        """
        letters = _letters(word)
        measure = Measure(word)
        for mistakes in range(1, most + 1):
            found: list[str] = []
            allowed = 2 * mistakes
            for length in range(len(word) - mistakes, len(word) + mistakes + 1):
                known, sets = self._of_length(length)
                # A mistake changes the set of letters by two at most: one xor rules out nearly every word.
                near = [
                    k for k, its in zip(known, sets, strict=True) if (its ^ letters).bit_count() <= allowed
                ]
                found += [candidate for candidate in near if measure.distance(candidate) <= mistakes]
            if found:
                return sorted(
                    found, key=lambda near: (not slipped(near, word), -self._frequencies[near], near)
                )
        return []

    def beginning_with(self, word: str) -> list[str]:
        """The known words that begin with ``word``, the most frequent first."""
        # Words kept in order would be found sooner; to put them in order is one call that nothing interrupts.
        found = [
            known
            for length, same in self._lengths.items()
            if length >= len(word)
            for known in same
            if known.startswith(word)
        ]
        return sorted(found, key=lambda known: (-self._frequencies[known], known))

    def _of_length(self, length: int) -> tuple[list[str], list[int]]:
        """The words of ``length`` letters and the letters of each: made when they are first asked for."""
        found = self._by_length.get(length)
        if found is None:
            known = self._lengths.get(length, [])
            found = self._by_length[length] = (known, [_letters(word) for word in known])
        return found

    def _repair(self, word: str) -> Repair | None:
        if not word.isalpha() or len(word) > _LONGEST_REPAIRED:
            return None
        if len(word) >= SHORTEST_REPAIRED:
            parts = self._split(word)
            if parts:
                return Repair("split", parts)
            near = self.nearest(word, 2 if len(word) >= TWO_MISTAKES_FROM else 1)
            if near:
                return Repair("typo", tuple(near[:MOST_ALTERNATIVES]))
        begun = self.beginning_with(word) if len(word) >= SHORTEST_BEGINNING else []
        return Repair("beginning", tuple(begun[:MOST_ALTERNATIVES])) if begun else None

    def _split(self, word: str) -> tuple[str, str] | None:
        """``word`` cut into two known words, at the cut whose rarer part is the most frequent."""
        known = self._frequencies
        cuts = [
            (min(known[word[:cut]], known[word[cut:]]), cut)
            for cut in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)
            if word[:cut] in known and word[cut:] in known
        ]
        if not cuts:
            return None
        _, cut = max(cuts)
        return word[:cut], word[cut:]


def slipped(meant: str, written: str) -> bool:
    """Whether fingers alone explain how ``meant`` became ``written``: letters swapped, doubled or not, or
    taken for their neighbours on the keyboard.
    """
    start = 0
    while start < min(len(meant), len(written)) and meant[start] == written[start]:
        start += 1
    end = 0
    while end < min(len(meant), len(written)) - start and meant[-1 - end] == written[-1 - end]:
        end += 1
    one, other = meant[start : len(meant) - end], written[start : len(written) - end]
    if len(one) == len(other):
        swapped = sorted(one) == sorted(other)
        return swapped or all(_neighbours(a, b) for a, b in zip(one, other, strict=True) if a != b)
    if {len(one), len(other)} != {0, 1}:
        return False
    letter, others = one or other, written[max(0, start - 1) : start] + written[start + len(other) :][:1]
    return letter in others or any(_neighbours(letter, key) for key in others)


def _neighbours(one: str, other: str) -> bool:
    """Whether two keys touch."""
    if one not in _KEYS or other not in _KEYS:
        return False
    (row, column), (other_row, other_column) = _KEYS[one], _KEYS[other]
    return abs(row - other_row) <= 1 and abs(column - other_column) <= 1


class Measure:
    """Distances from one word: insertions, deletions, substitutions, swaps of neighbours; no letter touched
    twice.

    Restricted Damerau-Levenshtein distance by bit vectors, a column a letter (H. Hyyrö, "A bit-vector
    algorithm for computing Levenshtein and Damerau edit distances", Nordic Journal of Computing 10, 2003).
    """

    __slots__ = ("_length", "_places")

    def __init__(self, word: str) -> None:
        self._length = len(word)
        self._places: dict[str, int] = {}
        for place, letter in enumerate(word):
            self._places[letter] = self._places.get(letter, 0) | 1 << place

    def distance(self, other: str) -> int:
        """How many mistakes lie between the word and ``other``."""
        if not self._length:
            return len(other)
        every, last = (1 << self._length) - 1, 1 << (self._length - 1)
        mistakes = self._length
        rises, falls, same, before = every, 0, 0, 0
        places = self._places.get
        for letter in other:
            here = places(letter, 0)
            swapped = ((~same & here) << 1) & before
            same = ((((here & rises) + rises) ^ rises) | here | falls | swapped) & every
            next_rises = falls | (~(same | rises) & every)
            next_falls = same & rises
            if next_rises & last:
                mistakes += 1
            elif next_falls & last:
                mistakes -= 1
            next_rises = next_rises << 1 | 1
            rises = (next_falls << 1 | ~(same | next_rises)) & every
            falls = next_rises & same & every
            before = here
        return mistakes


def _letters(word: str) -> int:
    """The set of letters of ``word`` as bits; letters 64 code points apart share one."""
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 63)
    return bits
