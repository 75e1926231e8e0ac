"""Which rows the table has: word pieces, whole words and pairs of words.

Input: texts with the number of times each counts, and the teacher's tokenizer. Output: the entries in the
order of the rows. Everything is decided by counts and, where these are equal, by the alphabet.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from tools.semantic.settings import Sizes
from tools.semantic.table import Reader, words

_ALONE = 20  # texts in which a pair must stand


def choose(texts: Sequence[str], counts: Sequence[int], tokenizer: str, sizes: Sizes) -> list[str]:
    """The entries: the teacher's pieces that are used, words by frequency, pairs by how much they say."""
    pieces = json.loads(tokenizer)["model"]["vocab"]
    known = [p for p in sorted(pieces, key=pieces.__getitem__) if _plain(p)]
    frequency, beside = Counter[str](), Counter[tuple[str, str]]()
    for text, count in zip(texts, counts, strict=True):
        found = words(text)
        for word in set(found):
            frequency[word] += count
        for pair in {p for p in pairwise(found) if p[0].isalpha() and p[1].isalpha()}:
            beside[pair] += count
    reader = Reader({piece: i for i, piece in enumerate(known)})
    use = [0] * len(known)
    for word, count in frequency.items():
        for row in reader.word(word):
            use[row] += count
    kept = [p for p, n in zip(known, use, strict=True) if n >= 3 or len(p.removeprefix("##")) == 1]
    whole = set(kept)
    new = [
        w
        for w, n in frequency.items()
        if n >= sizes.least and w not in whole and not w.isdigit() and len(w) < 24
    ]
    new.sort(key=lambda w: (-frequency[w], w))
    total = sum(counts)
    worth = {
        pair: math.log(n * total / (frequency[pair[0]] * frequency[pair[1]])) * math.sqrt(n)
        for pair, n in beside.items()
        if n >= _ALONE
    }
    best = sorted(worth, key=lambda p: (-worth[p], p))[: sizes.pairs]
    return [*kept, *new[: sizes.rows - len(kept) - len(best)], *(" ".join(p) for p in best)]


def _plain(piece: str) -> bool:
    letters = piece.removeprefix("##")
    return letters.isascii() and letters.isalnum() and letters == letters.lower()
