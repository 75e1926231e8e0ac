"""The table of word vectors, and the embeddings of texts.

The rule: the embedding of a text is the sum of the rows of its words, of the word pieces of words without a
row, and of its pairs of neighbouring words that have a row. Rows have 4 bits per number. A row becomes one
big integer of 16-bit lanes, so that adding integers adds rows (SWAR; L. Lamport, "Multiple byte processing
with full-word instructions", CACM 18, 1975). `tools/semantic` makes the file:

    words.bin   b"MZW1" · <IHI rows, dimension, bytes of the vocabulary · the vocabulary: zlib of its words in
                order of their rows, a line each ("##" begins a piece inside a word, a space makes a pair)
                · rows: two numbers a byte, the even one in the lower bits, 8 stands for 0
"""

import mmap
import re
import struct
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from mcpzip.search.semantic.lanes import Sum
from mcpzip.search.semantic.vectors import HIGH, LOW

MAGIC = b"MZW1"
_HEAD = struct.Struct("<IHI")
MAX_TEXT = 10_000  # characters
_MAX_WORD = 64  # characters
_MAX_ROWS = 4_000  # of one text: the sum of 4,369 numbers of at most 15 fits in 16 bits
_CACHED_WORDS = 20_000
_MIN_STEM = 3  # letters of the first piece, which also has two thirds of the word, of a word with a meaning
_WORD = re.compile(r"[a-z0-9]+")

FILE = Path(__file__).with_name("words.bin")

_Word = tuple[int, int, bool]
"""The sum of the rows of a word or of its pieces; the number of rows; whether the word has a meaning."""


class Table:
    """Word vectors. Safe between threads, which may at worst lose cached words.

    Raises ValueError for a file that is no table, OSError for one that can't be read.
    """

    def __init__(self, path: Path = FILE) -> None:
        with path.open("rb") as file:
            try:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError as error:
                raise ValueError(f"{path} is damaged: {error}") from error
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError(f"{path} is no table of word vectors")
        start = len(MAGIC) + _HEAD.size
        try:
            rows, self.dimension, length = _HEAD.unpack(data[len(MAGIC) : start])
            vocabulary = zlib.decompress(data[start : start + length]).decode().split("\n")
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        if len(vocabulary) != rows or len(data) != start + length + rows * self.dimension // 2:
            raise ValueError(f"{path} is damaged: it is shorter or longer than it says")
        self._rows = dict(zip(vocabulary, range(rows), strict=True))
        self._data, self._start = data, start + length
        self._words: dict[str, _Word] = {}
        self._pairs: dict[str, int] = {}

    def __contains__(self, word: str) -> bool:
        """Whether ``word`` has a row of its own."""
        return word in self._rows

    def unknown(self, words: Iterable[str]) -> int:
        """How many of the distinct ``words`` have no row of their own."""
        return len(set(words).difference(self._rows))

    @cached_property
    def checksum(self) -> int:
        """The CRC-32 of the whole file."""
        return zlib.crc32(self._data)

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

    def sums(self, words: Sequence[str], lengths: Sequence[int]) -> list[Sum | None]:
        """The embeddings of the first words of ``words``, one for each of ``lengths``, which ascend; as sums
        of rows. None where no word has a meaning.
        """
        known, pairs, rows_of = self._words, self._pairs, self._rows
        found: list[Sum | None] = []
        total = count = start = 0
        before = ""
        meaningful = full = False
        for length in lengths:
            for word in words[start:length] if not full else ():
                lanes, rows, means = known.get(word) or self._word(word)
                if count + rows >= _MAX_ROWS:
                    full = True
                    break
                pair = f"{before} {word}"
                total += lanes
                count += rows
                meaningful = meaningful or means
                if pair in rows_of:
                    total += pairs.get(pair) or self._pair(pair)
                    count += 1
                before = word
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
        row = self._rows.get(word)
        if row is not None:
            return self._row(row), 1, len(word) > 1
        means = False
        total = count = start = 0
        while start < len(word):  # the longest piece at each position (Schuster & Nakajima, ICASSP 2012)
            for end in range(len(word), start, -1):
                row = self._rows.get(word[start:end] if start == 0 else "##" + word[start:end])
                if row is not None:
                    means = means or (start == 0 and end >= _MIN_STEM and 3 * end >= 2 * len(word))
                    total += self._row(row)
                    count += 1
                    start = end
                    break
            else:
                return 0, 0, False
        return total, count, means

    def _pair(self, pair: str) -> int:
        if len(self._pairs) >= _CACHED_WORDS:
            self._pairs = {}
        lanes = self._pairs[pair] = self._row(self._rows[pair])
        return lanes

    def _row(self, row: int) -> int:
        size = self.dimension // 2
        start = self._start + row * size
        packed = self._data[start : start + size]
        lanes = bytearray(4 * size)
        lanes[::4] = packed.translate(LOW)
        lanes[2::4] = packed.translate(HIGH)
        return int.from_bytes(lanes, "little")


def words_of(text: str) -> list[str]:
    """The words of the first `MAX_TEXT` characters of ``text``, folded and in lower case."""
    text = text[:MAX_TEXT].lower()
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join([letter for letter in decomposed if not unicodedata.combining(letter)])
    return _WORD.findall(text)
