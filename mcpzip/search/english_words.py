"""Spelling correction by the words of the table of word vectors, whether any tool has them or not.

The rule: of the words one edit away (a swap of two neighbouring letters is one edit) the likeliest is meant:
a common one, one that is written so by a common typo, and one whose plural it is ("litters" is no typo of
"letters"). This is the noisy channel with two kinds of errors (Kernighan, Church & Gale, "A spelling
correction program based on a noisy channel model", COLING 1990). The rows of the table are in order of
frequency: first the word pieces of BERT's vocabulary, then other words by how often they are in the texts
that the table was made from.
"""

from collections.abc import Iterator
from math import log

from mcpzip.search.semantic.table import Table
from mcpzip.search.vocabulary import is_common_typo

# Chosen on 14,000 misspelled words of requests, half of them with common typos, half with any edits.
MIN_LENGTH = 5  # letters of a misspelled word; shorter ones are mostly names and abbreviations
_MAX_LENGTH = 24
_MIN_MEANT_LENGTH = 4  # letters of the word that is meant
_RARE = 1_000  # words that are about as likely as the commonest; 300 and 3,000 are equal
# The logarithm of how much rarer other errors than common typos are; .7 and 2.5 find fewer words.
_OTHER_ERROR = 1.5
_PLURAL = 4.0  # the logarithm of how much likelier a plural is; 1.5: one in fifty misread, 0: one in ten
_CACHED_WORDS = 512
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class EnglishWords:
    """The words of a table of word vectors. Safe between threads, which may at worst lose cached words."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._nearest: dict[str, str | None] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._table

    def nearest(self, word: str) -> str | None:
        """The word that ``word`` misspells, or whose plural it is or misspells; None where none is near.
        ``word`` is not in the table.
        """
        found = self._nearest  # another thread may replace the cache at any time
        if word not in found:
            if len(found) >= _CACHED_WORDS:
                found = self._nearest = {}
            found[word] = self._find(word) or self._find(word.removesuffix("s"))
        return found[word]

    def _find(self, word: str) -> str | None:
        if not MIN_LENGTH <= len(word) <= _MAX_LENGTH or not (word.isascii() and word.isalpha()):
            return None
        best: tuple[float, str] | None = None
        for meant in set(_edited(word)):
            row = self._table.row_of(meant) if len(meant) >= _MIN_MEANT_LENGTH else None
            if row is not None:
                cost = log(row + _RARE) + (0 if is_common_typo(meant, word) else _OTHER_ERROR)
                found = (cost - (_PLURAL if word == f"{meant}s" else 0), meant)
                best = min(best or found, found)
        return best[1] if best else None


def _edited(word: str) -> Iterator[str]:
    """All strings of letters that are one edit from ``word``, some of them twice."""
    for i in range(len(word)):
        before, letter, after = word[:i], word[i], word[i + 1 :]
        yield before + after
        if after:
            yield before + after[0] + letter + after[1:]
        for other in _LETTERS:
            yield before + other + after
            yield before + other + letter + after
    for other in _LETTERS:
        yield word + other
