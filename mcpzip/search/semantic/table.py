"""The table of word vectors, and the embeddings of texts.

The rule: the embedding of a text is the sum of the rows of its words, of the word pieces of words without a
row, and of its pairs of neighbouring words that have a row. Rows have 4 bits per number. A row becomes one
big integer of 16-bit lanes, so that adding integers adds rows (SWAR; L. Lamport, "Multiple byte processing
with full-word instructions", CACM 18, 1975). `tools/semantic` makes the file:

    words.bin   b"MZW2" · <IHHI rows, dimension, hidden units, bytes of the vocabulary · the vocabulary: zlib
                of its words in order of their rows, a line each ("##" begins a piece inside a word, a space
                makes a pair) · rows: two numbers a byte, the even one in the lower bits, 8 stands for 0
                · where there are hidden units, the layer that queries pass (`query_layer`)

Both it and the index of its words beside it (`row_index`) are mapped and never read as a whole.
"""

import mmap
import os
import re
import struct
import sys
import unicodedata
import zlib
from collections.abc import Iterable, Sequence

from mcpzip.search.semantic import row_index
from mcpzip.search.semantic.lanes import Sum
from mcpzip.search.semantic.query_layer import QueryLayer, size_of
from mcpzip.search.semantic.row_index import RowIndex
from mcpzip.search.semantic.vectors import HIGH, LOW

MAGIC = b"MZW2"
HEAD = struct.Struct("<IHHI")
MAX_TEXT = 10_000  # characters
_MAX_WORD = 64  # characters
_MAX_ROWS = 4_000  # of one text: the sum of 4,369 numbers of at most 15 fits in 16 bits
_CACHED_WORDS = 20_000
_MIN_STEM = 3  # letters of the first piece, which also has two thirds of the word, of a word with a meaning
_WORD = re.compile(r"[a-z0-9]+")

FILE = os.path.join(os.path.dirname(__file__), "words.bin")

_NO_ROW = -1

_Word = tuple[int, int, bool, bool]
"""The sum of the rows of a word or of its pieces; the number of rows; whether the word has a meaning; whether
a pair begins with it."""


class Table:
    """Word vectors. Safe between threads, which may at worst lose cached words.

    Raises ValueError for a file that is no table, OSError for one that can't be read.
    """

    def __init__(self, path: "str | os.PathLike[str]" = FILE) -> None:
        self._data = _mapped(path)
        data = self._data
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError(f"{path} is no table of word vectors")
        start = len(MAGIC) + HEAD.size
        try:
            rows, dimension, hidden, length = HEAD.unpack(data[len(MAGIC) : start])
            self.dimension: int = dimension
            layer = size_of(self.dimension, hidden)
        except (struct.error, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        self._start = start + length
        end = self._start + rows * self.dimension // 2
        if len(data) != end + layer:
            raise ValueError(f"{path} is damaged: it is shorter or longer than it says")
        try:
            self._layer = QueryLayer(data[end:], self.dimension, hidden) if hidden else None
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        index = _row_index(path, rows)
        if index is None:
            try:
                vocabulary = zlib.decompress(data[start : self._start]).decode().split("\n")
            except (zlib.error, UnicodeDecodeError) as error:
                raise ValueError(f"{path} is damaged: {error}") from error
            if len(vocabulary) != rows:
                raise ValueError(f"{path} is damaged: it has fewer or more words than it says")
            index = RowIndex(row_index.index_of(vocabulary, zlib.crc32(data)))
        self._index = index
        self.checksum: int = self._index.checksum
        """The CRC-32 of the whole file."""
        self._words: dict[str, _Word] = {}
        self._rows, self._pair_rows = _Rows(index), _Rows(index)
        self._pairs: dict[int, int] = {}

    def forget(self) -> None:
        """Empty the caches, which grow while tools are indexed, and release the pages that were read."""
        self._words, self._pairs = {}, {}
        self._rows, self._pair_rows = _Rows(self._index), _Rows(self._index)
        if sys.platform != "win32" and hasattr(mmap, "MADV_DONTNEED"):
            self._data.madvise(mmap.MADV_DONTNEED)  # they stay in the system's cache

    def __contains__(self, word: str) -> bool:
        """Whether ``word`` has a row of its own."""
        return self._rows[word] != _NO_ROW

    def row_of(self, word: str) -> int | None:
        """The row of ``word``: the lower, the more common it is; None where it has none."""
        return self._index.find(word)

    def unknown(self, words: Iterable[str]) -> int:
        """How many of ``words`` have no row of their own."""
        return list(map(self._rows.__getitem__, words)).count(_NO_ROW)

    def embed(self, text: str) -> list[int] | None:
        """The embedding of the first `MAX_TEXT` characters of ``text``: `dimension` numbers, not normalised;
        None where no word is known.
        """
        return self.embed_words(words_of(text))

    def embed_words(self, words: Sequence[str]) -> list[int] | None:
        """`embed` of words that are split, folded and in lower case. None where no word has a meaning: single
        letters have none, nor have most word pieces, such as those of "xyzzy".
        """
        (found,) = self.sums(words, (len(words),))
        if found is None:
            return None
        zero = found.zero
        return [number - zero for number in found.numbers(self.dimension)]

    def query_vector(self, words: Sequence[str]) -> list[float] | None:
        """The vector of a query with these words, for cosines with the embeddings of tools; not normalized.
        None where `embed_words` has none.
        """
        found = self.embed_words(words)
        if found is None:
            return None
        return self._layer(found) if self._layer else list(map(float, found))

    def sums(self, words: Sequence[str], lengths: Sequence[int]) -> list[Sum | None]:
        """The embeddings of the first words of ``words``, one for each of ``lengths``, which ascend; as sums
        of rows. None where no word has a meaning.
        """
        known, pairs, pair_rows = self._words, self._pairs, self._pair_rows
        found: list[Sum | None] = []
        total = count = start = 0
        before = ""  # the last word, if a pair begins with it
        meaningful = full = False
        for length in lengths:
            for word in words[start:length] if not full else ():
                lanes, rows, means, begins_pair = known.get(word) or self._word(word)
                if count + rows >= _MAX_ROWS:
                    full = True
                    break
                total += lanes
                count += rows
                meaningful = meaningful or means
                if before and (row := pair_rows[f"{before} {word}"]) != _NO_ROW:
                    total += pairs.get(row) or self._pair(row)
                    count += 1
                before = word if begins_pair else ""
            start = length
            found.append(Sum(total, count) if meaningful else None)
        return found

    def _word(self, word: str) -> _Word:
        if len(self._words) >= _CACHED_WORDS:
            self._words = {}
        found = self._words[word] = self._compute_word(word)
        return found

    def _compute_word(self, word: str) -> _Word:
        word = word[:_MAX_WORD]
        find = self._index.find
        row = find(word)
        if row is not None:
            return self._row(row), 1, len(word) > 1, self._index.begins_pair(row)
        means = False
        total = count = start = 0
        while start < len(word):  # the longest piece at each position (Schuster & Nakajima, ICASSP 2012)
            for end in range(len(word), start, -1):
                row = find(word[start:end] if start == 0 else "##" + word[start:end])
                if row is not None:
                    means = means or (start == 0 and end >= _MIN_STEM and 3 * end >= 2 * len(word))
                    total += self._row(row)
                    count += 1
                    start = end
                    break
            else:
                return 0, 0, False, False
        return total, count, means, False

    def _pair(self, row: int) -> int:
        if len(self._pairs) >= _CACHED_WORDS:
            self._pairs = {}
        lanes = self._pairs[row] = self._row(row)
        return lanes

    def _row(self, row: int) -> int:
        size = self.dimension // 2
        start = self._start + row * size
        packed = self._data[start : start + size]
        lanes = bytearray(4 * size)
        lanes[::4] = packed.translate(LOW)
        lanes[2::4] = packed.translate(HIGH)
        return int.from_bytes(lanes, "little")


class _Rows(dict[str, int]):
    """The rows of words, `_NO_ROW` for a word without one; found when first asked for."""

    def __init__(self, index: RowIndex) -> None:
        super().__init__()
        self._index = index

    def __missing__(self, word: str) -> int:
        if len(self) >= _CACHED_WORDS:
            self.clear()
        row = self._index.find(word)
        self[word] = found = _NO_ROW if row is None else row
        return found


def _mapped(path: "str | os.PathLike[str]") -> mmap.mmap:
    """The content of a file. Raises ValueError for an empty one, OSError."""
    with open(path, "rb") as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error


def _row_index(path: "str | os.PathLike[str]", rows: int) -> RowIndex | None:
    """The index beside the table at ``path``; None where there is none for it, so that it must be made."""
    try:
        index = RowIndex(memoryview(_mapped(f"{os.path.splitext(path)[0]}.idx")))
    except (OSError, ValueError):
        return None
    return index if index.rows == rows else None


def words_of(text: str) -> list[str]:
    """The words of the first `MAX_TEXT` characters of ``text``, folded and in lower case."""
    text = text[:MAX_TEXT].lower()
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join([letter for letter in decomposed if not unicodedata.combining(letter)])
    return _WORD.findall(text)
