"""The static table: how a text becomes rows and a query a vector, and how both lie in a file (pure).

The rules of reading a text:
1. It is lower-cased; if it isn't ASCII, taken apart (NFKD) and combining marks dropped.
2. Its words are the runs of `[a-z0-9]`. Everything else only separates.
3. A word in the table is one row. Another one is cut greedily into the longest pieces that are in the
   table, those inside the word written `##piece`; a word that can't be cut to its end has no row.
4. Two neighbouring words whose pair `a b` is in the table add that row as well.
5. The text's vector is the sum of its rows; only its direction counts. A text of no row has no vector.
6. That of a query, of length 1, passes a layer: x becomes x + relu(x A + b) B.

The file: `MZW2`; little-endian `<IHHI`: rows, dimension, hidden units of the layer, bytes of the vocabulary;
the vocabulary, one entry a line in the order of the rows, deflated (zlib); the rows, two dimensions a byte,
the even one in the low half, each value plus 8. The scale of the values is left out, since it changes no
direction. Then the layer: float32 scales of the hidden units, b, scales of the dimensions; A and B row by
row, two values a byte as before; a value times the scale of its column is the number.
"""

import re
import struct
import unicodedata
import zlib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

MAGIC = b"MZW2"
HEADER = struct.Struct("<IHHI")
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


class Layer(NamedTuple):
    """What queries pass. into: (dimension, hidden). bias: (hidden,). out: (hidden, dimension)."""

    into: np.ndarray
    bias: np.ndarray
    out: np.ndarray

    def __call__(self, unit: np.ndarray) -> np.ndarray:
        return unit + np.maximum(unit @ self.into + self.bias, 0) @ self.out

    def to_bytes(self) -> bytes:
        scales = [np.maximum(np.abs(matrix).max(0), 1e-9) / 7 for matrix in (self.into, self.out)]
        floats = np.concatenate([scales[0], self.bias, scales[1]]).astype("<f4")
        into, out = (
            _halves(np.clip(np.round(matrix / scale), -7, 7))
            for matrix, scale in zip((self.into, self.out), scales, strict=True)
        )
        return floats.tobytes() + into + out

    @classmethod
    def from_bytes(cls, raw: bytes, dimension: int, hidden: int) -> "Layer":
        count = 2 * hidden + dimension
        floats = np.frombuffer(raw, "<f4", count)
        middle = 4 * count + dimension * hidden // 2
        into = _whole(raw[4 * count : middle], dimension) * floats[:hidden]
        out = _whole(raw[middle:], hidden) * floats[2 * hidden :]
        return cls(into.astype(np.float32), floats[hidden : 2 * hidden], out.astype(np.float32))


def _halves(values: np.ndarray) -> bytes:
    """Two values of −7…7 a byte."""
    shifted = (values + 8).astype(np.uint8)
    packed: bytes = (shifted[:, 0::2] | (shifted[:, 1::2] << 4)).tobytes()
    return packed


def _whole(raw: bytes, rows: int) -> np.ndarray:
    """The values of `_halves`, int8, (rows, columns)."""
    body = np.frombuffer(raw, np.uint8).reshape(rows, -1)
    values = np.empty((rows, 2 * body.shape[1]), np.int8)
    values[:, 0::2] = (body & 15).astype(np.int8) - 8
    values[:, 1::2] = (body >> 4).astype(np.int8) - 8
    return values


def pack(vocabulary: Iterable[str], quantised: np.ndarray, layer: Layer | None = None) -> bytes:
    """The file's bytes. quantised: (rows, dimension), −7…7."""
    names = zlib.compress("\n".join(vocabulary).encode("ascii"), 9)
    hidden = 0 if layer is None else len(layer.bias)
    head = MAGIC + HEADER.pack(*quantised.shape, hidden, len(names))
    return head + names + _halves(quantised) + (b"" if layer is None else layer.to_bytes())


def unpack(raw: bytes) -> tuple[list[str], np.ndarray, Layer | None]:
    """The vocabulary, the rows, int8, and the layer. Raises `ValueError` if it is no table."""
    if raw[:4] != MAGIC:
        raise ValueError("This file is no table of word vectors; make it with tools.semantic.build.")
    count, dimension, hidden, size = HEADER.unpack_from(raw, 4)
    start = 4 + HEADER.size
    end = start + size + count * dimension // 2
    names = zlib.decompress(raw[start : start + size]).decode("ascii").split("\n")
    layer = Layer.from_bytes(raw[end:], dimension, hidden) if hidden else None
    return names, _whole(raw[start + size : end], count), layer


class Table:
    """A table in use: texts and queries to unit vectors."""

    def __init__(self, vocabulary: list[str], rows: np.ndarray, layer: Layer | None = None) -> None:
        self.reader = Reader({entry: i for i, entry in enumerate(vocabulary)})
        self._rows = rows.astype(np.float32)
        self._layer = layer

    def vectors(self, texts: list[str]) -> np.ndarray:
        """Unit vectors, float32, (texts, dimension); zeros for a text of no row."""
        result = np.zeros((len(texts), self._rows.shape[1]), np.float32)
        for i, text in enumerate(texts):
            rows = self.reader.rows(text)
            if rows:
                result[i] = self._rows[rows].sum(0)
        return _unit(result)

    def queries(self, texts: list[str]) -> np.ndarray:
        """`vectors` of queries."""
        found = self.vectors(texts)
        return found if self._layer is None else _unit(self._layer(found))


def _unit(vectors: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit
