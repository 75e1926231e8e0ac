"""The words the catalog knows, and what a word it doesn't know was probably meant to be.

The rule: a word that leads to an indexed term is never touched. Only an unknown one is repaired: by the nearest known words (restricted
Damerau-Levenshtein distance, where two swapped letters are one mistake), by cutting it in two known words, or by the
known words it begins.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcpzip.search.tokenizer import stem

SHORTEST_REPAIRED = 4  # letters: every shorter word is one mistake away from dozens of others
TWO_MISTAKES_FROM = 8  # letters from which a second mistake still leaves a word recognisable
MOST_CANDIDATES = 3
_LONGEST_REPAIRED = 32


@dataclass(frozen=True, slots=True)
class Repair:
    """What an unknown word may stand for: alternatives (best first), each the known words that take its place."""

    alternatives: tuple[tuple[str, ...], ...]
    kind: str  # "typo", "split" or "prefix"


class Vocabulary:
    """Known words with their document frequencies. Immutable."""

    def __init__(self, frequencies: Mapping[str, int]) -> None:
        self._frequencies = dict(frequencies)
        buckets: dict[int, list[str]] = {}
        for word in sorted(self._frequencies):
            if len(word) >= 3 and word.isalpha():
                buckets.setdefault(len(word), []).append(word)
        self._by_length = {
            length: (tuple(bucket), array("Q", map(_signature, bucket))) for length, bucket in buckets.items()
        }

    def __contains__(self, word: str) -> bool:
        return word in self._frequencies

    def repair(self, word: str) -> Repair | None:
        """What the unknown ``word`` may stand for; None when nothing is near enough."""
        if not SHORTEST_REPAIRED <= len(word) <= _LONGEST_REPAIRED or not word.isalpha():
            return None
        typos = self.nearest(word, 2 if len(word) >= TWO_MISTAKES_FROM else 1)
        if typos:
            best = typos[0][0]
            return Repair(tuple((w,) for cost, w in typos[:MOST_CANDIDATES] if cost == best), "typo")
        parts = self._split(word)
        if parts:
            return Repair((parts,), "split")
        begun = sorted(
            (-self._frequencies[w], w)
            for length, (bucket, _) in self._by_length.items()
            if length > len(word)
            for w in bucket
            if w.startswith(word)
        )
        if begun:
            return Repair(tuple((w,) for _, w in begun[:MOST_CANDIDATES]), "prefix")
        return None

    def nearest(self, word: str, most: int) -> list[tuple[int, str]]:
        """``(distance, word)`` of the known words within ``most`` mistakes, nearest then most frequent first."""
        signature = _signature(word)
        found: list[tuple[int, int, str]] = []
        for length in range(len(word) - most, len(word) + most + 1):
            bucket, signatures = self._by_length.get(length, ((), ()))
            # One mistake changes at most two letters of the set, so most words are ruled out by one xor.
            for i in [i for i, other in enumerate(signatures) if (other ^ signature).bit_count() <= 2 * most]:
                cost = distance(word, bucket[i], most)
                if cost <= most:
                    found.append((cost, -self._frequencies[bucket[i]], bucket[i]))
        return [(cost, known) for cost, _, known in sorted(found)]

    def _split(self, word: str) -> tuple[str, str] | None:
        best: tuple[int, str, str] | None = None
        for cut in range(2, len(word) - 1):
            left, right = word[:cut], word[cut:]
            if left in self._frequencies and right in self._frequencies:
                weakest = min(self._frequencies[left], self._frequencies[right])
                if best is None or weakest > best[0]:
                    best = (weakest, left, right)
        return best[1:] if best else None


def distance(left: str, right: str, most: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words, or ``most + 1`` when more.

    Optimal string alignment (restricted Damerau-Levenshtein): no letter is touched twice.
    """
    if abs(len(left) - len(right)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        current = [i]
        for j, b in enumerate(right, 1):
            cost = min(row[j] + 1, current[-1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, row = row, current
    return row[-1]


def _signature(word: str) -> int:
    """The set of letters of ``word`` as bits; letters beyond a-z share bits."""
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 63)
    return bits
