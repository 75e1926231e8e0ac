"""The static table: how a text becomes rows, and how the table lies in its file (pure).

The rules of reading a text:
1. It is lower-cased; if it isn't ASCII, taken apart (NFKD) and combining marks dropped.
2. Its words are the runs of `[a-z0-9]`. Everything else only separates.
3. A word in the table is one row. Another one is cut greedily into the longest pieces that are in the
   table, those inside the word written `##piece`; a word that can't be cut to its end has no row.
4. Two neighbouring words whose pair `a b` is in the table add that row as well.
5. The text's vector is the sum of its rows; only its direction counts. A text of no row has no vector.

The file: `MZW1`; little-endian `<IHI`: rows, dimension, bytes of the vocabulary; the vocabulary, one entry
a line in the order of the rows, deflated (zlib); the rows, two dimensions a byte, the even one in the low
half, each value plus 8. The scale of the values is left out, since it changes no direction.
"""

import re
import struct
import unicodedata
import zlib
from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

MAGIC = b"MZW1"
HEADER = struct.Struct("<IHI")
_WORD = re.compile(r"[a-z0-9]+")


def words(text: str) -> list[str]:
    text = text.lower()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return _WORD.findall(text)


class Reader:
    """Texts to rows. vocabulary: entries to row numbers."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._rows = vocabulary
        self._known: dict[str, tuple[int, ...]] = {}

    def word(self, word: str) -> tuple[int, ...]:
        """The rows of a word; none if it can't be cut to its end."""
        found = self._known.get(word)
        if found is None:
            found = self._known[word] = self._cut(word)
        return found

    def _cut(self, word: str) -> tuple[int, ...]:
        rows: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                row = self._rows.get(word[start:end] if start == 0 else "##" + word[start:end])
                if row is not None:
                    rows.append(row)
                    start = end
                    break
            else:
                return ()
        return tuple(rows)

    def rows(self, text: str, most: int = 128) -> list[int]:
        """The rows of a text, at most `most`: those of its words first, then those of its pairs."""
        found = words(text)
        rows = [row for word in found for row in self.word(word)]
        rows += [row for pair in pairwise(found) if (row := self._rows.get(" ".join(pair))) is not None]
        return rows[:most]


def quantise(matrix: np.ndarray, edge: float) -> np.ndarray:
    """int8, −7…7, by one scale for all values; what lies beyond ±edge is clipped."""
    return np.clip(np.round(matrix / edge * 7), -7, 7).astype(np.int8)


def pack(vocabulary: Iterable[str], quantised: np.ndarray) -> bytes:
    """The file's bytes. quantised: (rows, dimension), −7…7."""
    names = zlib.compress("\n".join(vocabulary).encode("ascii"), 9)
    halves = (quantised + 8).astype(np.uint8)
    body = (halves[:, 0::2] | (halves[:, 1::2] << 4)).tobytes()
    return MAGIC + HEADER.pack(*quantised.shape, len(names)) + names + body


def unpack(raw: bytes) -> tuple[list[str], np.ndarray]:
    """The vocabulary and the rows, int8. Raises `ValueError` if it is no table."""
    if raw[:4] != MAGIC:
        raise ValueError("This file is no table of word vectors; make it with tools.semantic.build.")
    count, dimension, size = HEADER.unpack_from(raw, 4)
    start = 4 + HEADER.size
    names = zlib.decompress(raw[start : start + size]).decode("ascii").split("\n")
    body = np.frombuffer(raw, np.uint8, offset=start + size).reshape(count, dimension // 2)
    rows = np.empty((count, dimension), np.int8)
    rows[:, 0::2] = (body & 15).astype(np.int8) - 8
    rows[:, 1::2] = (body >> 4).astype(np.int8) - 8
    return names, rows


class Table:
    """A table in use: texts to unit vectors."""

    def __init__(self, vocabulary: list[str], rows: np.ndarray) -> None:
        self.reader = Reader({entry: i for i, entry in enumerate(vocabulary)})
        self._rows = rows.astype(np.float32)

    def vectors(self, texts: list[str]) -> np.ndarray:
        """Unit vectors, float32, (texts, dimension); zeros for a text of no row."""
        result = np.zeros((len(texts), self._rows.shape[1]), np.float32)
        for i, text in enumerate(texts):
            rows = self.reader.rows(text)
            if rows:
                result[i] = self._rows[rows].sum(0)
        return result / np.maximum(np.linalg.norm(result, axis=1, keepdims=True), 1e-9)
