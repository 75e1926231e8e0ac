"""The words of the catalog, and spelling correction of the words of a query.

The rule: a known word is never corrected. For an unknown one, the first of these that exists is used: two
known words written as one; the known words at the smallest edit distance (a swap of two neighbouring letters
is one edit); the known words that it is a prefix of. Of several equally near words all are alternatives, and
the other words of the query decide between them.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

# Beside each, what another value costs in nDCG@10; without any correction the loss is .017.
MIN_CORRECTED_LENGTH = 4  # letters; a shorter word is one edit away from dozens of others. 5: −.001
TWO_EDITS_LENGTH = 7  # letters from which on two edits are corrected, else one. 6: −.001, 8: −.001
MIN_PREFIX_LENGTH = 3  # letters; no prefixes: −.002
MIN_PART_LENGTH = 3  # letters of one of two words written as one; no splits: −.001
MAX_ALTERNATIVES = 3  # 1, 2 and 5 are equal

_MIN_KNOWN_LENGTH = 3  # letters; shorter words are no corrections
_MAX_CORRECTED_LENGTH = 32  # letters
_CACHED_CORRECTIONS = 512
_KEYS = {
    key: (row, column + 0.5 * row)
    for row, keys in enumerate(("qwertyuiop", "asdfghjkl", "zxcvbnm"))
    for column, key in enumerate(keys)
}
"""The row and column of a letter on a QWERTY keyboard."""


class Correction(msgspec.Struct, frozen=True):
    """The correction of an unknown word.

    alternatives: known words, best first; of a "split" they are its two parts, and both are meant. likely:
    whether it is likelier than a word that no tool has, one edit away: the beginning of a word, or one edit
    away by a common typo.
    """

    kind: Literal["typo", "split", "prefix"]
    alternatives: tuple[str, ...]
    likely: bool = False


class Vocabulary:
    """Known words and in how many tools each occurs. Immutable, except for a cache of corrections."""

    def __init__(self, frequencies: Mapping[str, int]) -> None:
        self._frequencies = frequencies
        self._lengths: dict[int, list[str]] = {}
        for word in frequencies:
            if len(word) >= _MIN_KNOWN_LENGTH and word.isalpha():
                self._lengths.setdefault(len(word), []).append(word)
        self._by_length: dict[int, tuple[list[str], list[int]]] = {}
        self._corrections: dict[str, Correction | None] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._frequencies

    def __len__(self) -> int:
        return len(self._frequencies)

    def correct(self, word: str) -> Correction | None:
        """The correction of the unknown ``word``; None where no word is near enough."""
        corrections = self._corrections  # another thread may replace the cache at any time
        if word not in corrections:
            if len(corrections) >= _CACHED_CORRECTIONS:
                corrections = self._corrections = {}
            corrections[word] = self._correct(word)
        return corrections[word]

    def nearest(self, word: str, max_edits: int) -> list[str]:
        """The known words at the smallest edit distance from ``word``, at most ``max_edits``: common typos
        first, then the most frequent.
        """
        letters = _letters(word)
        measure = EditDistance(word)
        for edits in range(1, max_edits + 1):
            found: list[str] = []
            allowed = 2 * edits
            for length in range(len(word) - edits, len(word) + edits + 1):
                known, sets = self._of_length(length)
                # An edit changes the set of letters by two at most: one xor rules out nearly every word.
                near = [
                    k for k, its in zip(known, sets, strict=True) if (its ^ letters).bit_count() <= allowed
                ]
                found += [candidate for candidate in near if measure.distance(candidate) <= edits]
            if found:
                return sorted(
                    found, key=lambda near: (not is_common_typo(near, word), -self._frequencies[near], near)
                )
        return []

    def with_prefix(self, prefix: str) -> list[str]:
        """The known words that begin with ``prefix``, the most frequent first."""
        # A sorted list would be faster to search, but sorting it is one long call that holds the GIL.
        found = [
            known
            for length, same in self._lengths.items()
            if length >= len(prefix)
            for known in same
            if known.startswith(prefix)
        ]
        return sorted(found, key=lambda known: (-self._frequencies[known], known))

    def _of_length(self, length: int) -> tuple[list[str], list[int]]:
        """The words of ``length`` letters and the set of letters of each, computed at the first call."""
        found = self._by_length.get(length)
        if found is None:
            known = self._lengths.get(length, [])
            found = self._by_length[length] = (known, [_letters(word) for word in known])
        return found

    def _correct(self, word: str) -> Correction | None:
        if not word.isalpha() or len(word) > _MAX_CORRECTED_LENGTH:
            return None
        if len(word) >= MIN_CORRECTED_LENGTH:
            parts = self._split(word)
            if parts:
                return Correction("split", parts)
            near = self.nearest(word, 2 if len(word) >= TWO_EDITS_LENGTH else 1)
            if near:
                likely = EditDistance(word).distance(near[0]) == 1 and is_common_typo(near[0], word)
                return Correction("typo", tuple(near[:MAX_ALTERNATIVES]), likely)
        longer = self.with_prefix(word) if len(word) >= MIN_PREFIX_LENGTH else []
        return Correction("prefix", tuple(longer[:MAX_ALTERNATIVES]), True) if longer else None

    def _split(self, word: str) -> tuple[str, str] | None:
        """``word`` split into two known words, so that the less frequent one is as frequent as possible."""
        known = self._frequencies
        cuts = [
            (min(known[word[:cut]], known[word[cut:]]), cut)
            for cut in range(MIN_PART_LENGTH, len(word) - MIN_PART_LENGTH + 1)
            if word[:cut] in known and word[cut:] in known
        ]
        if not cuts:
            return None
        _, cut = max(cuts)
        return word[:cut], word[cut:]


def is_common_typo(meant: str, written: str) -> bool:
    """Whether ``written`` differs from ``meant`` by a common typo: a letter that is left out, or letters that
    are swapped, doubled, or replaced by or typed with a neighbour on the keyboard.
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
        return swapped or all(_are_neighbours(a, b) for a, b in zip(one, other, strict=True) if a != b)
    if len(one) + len(other) != 1:
        return False
    others = written[max(0, start - 1) : start] + written[start + 1 : start + 2]
    return bool(one) or other in others or any(_are_neighbours(other, key) for key in others)


def _are_neighbours(one: str, other: str) -> bool:
    """Whether two keys touch."""
    if one not in _KEYS or other not in _KEYS:
        return False
    (row, column), (other_row, other_column) = _KEYS[one], _KEYS[other]
    return abs(row - other_row) <= 1 and abs(column - other_column) <= 1


class EditDistance:
    """Restricted Damerau-Levenshtein distances from one word: insertions, deletions, substitutions, and swaps
    of neighbouring letters, where no letter is edited twice.

    The bit-vector algorithm, a column per letter (H. Hyyrö, "A bit-vector algorithm for computing Levenshtein
    and Damerau edit distances", Nordic Journal of Computing 10, 2003).
    """

    __slots__ = ("_length", "_positions")

    def __init__(self, word: str) -> None:
        self._length = len(word)
        self._positions: dict[str, int] = {}
        for position, letter in enumerate(word):
            self._positions[letter] = self._positions.get(letter, 0) | 1 << position

    def distance(self, other: str) -> int:
        """The number of edits between the word and ``other``."""
        if not self._length:
            return len(other)
        every, last = (1 << self._length) - 1, 1 << (self._length - 1)
        edits = self._length
        rises, falls, same, before = every, 0, 0, 0
        positions = self._positions.get
        for letter in other:
            here = positions(letter, 0)
            swapped = ((~same & here) << 1) & before
            same = ((((here & rises) + rises) ^ rises) | here | falls | swapped) & every
            next_rises = falls | (~(same | rises) & every)
            next_falls = same & rises
            if next_rises & last:
                edits += 1
            elif next_falls & last:
                edits -= 1
            next_rises = next_rises << 1 | 1
            rises = (next_falls << 1 | ~(same | next_rises)) & every
            falls = next_rises & same & every
            before = here
        return edits


def _letters(word: str) -> int:
    """The set of letters of ``word`` as bits; letters 64 code points apart share one."""
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 63)
    return bits
