"""The rows of words in the table of word vectors, as a hash table in a file that is used in place.

The rule: the file is made from `words.bin` alone (`python tools/row_index.py`), and says which one by its
checksum. It is mapped, so nothing is read or built at a start, and processes share its memory.

    words.idx   b"MZX1" · <IIII rows, slots, bytes of the words, CRC-32 of words.bin
                · slots: <I each, a power of two of them, more than rows: 0 for none, else the row + 1 in the
                  lower 20 bits and the upper 12 bits of the word's CRC-32 above. A word is in the slot of
                  its CRC-32's lower bits, or in one of those that follow without a gap
                · ends: <I for each row: where its word ends; the highest bit: whether a pair begins with it
                · the words in UTF-8, in the order of their rows
"""

import struct
import sys
from array import array
from collections.abc import Sequence
from zlib import crc32

MAGIC = b"MZX1"
_HEAD = struct.Struct("<IIII")
_START = len(MAGIC) + _HEAD.size
_ROW_BITS = 20
_ROW = (1 << _ROW_BITS) - 1
_BEGINS_PAIR = 1 << 31
_LENGTH = _BEGINS_PAIR - 1


class RowIndex:
    """Finds the row of a word. Immutable; safe between threads.

    Raises ValueError for data that is no such file, or shorter or longer than it says.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        if view[: len(MAGIC)] != MAGIC or len(view) < _START:
            raise ValueError("no index of rows")
        self.rows: int
        self.checksum: int
        slots: int
        self.rows, slots, length, self.checksum = _HEAD.unpack(view[len(MAGIC) : _START])
        ends, text = _START + 4 * slots, _START + 4 * (slots + self.rows)
        if len(view) != text + length or slots.bit_count() != 1 or not self.rows < min(slots, _ROW):
            raise ValueError("an index of rows that is damaged")
        self._mask = slots - 1
        self._slots: Sequence[int] = _numbers(view[_START:ends])
        self._ends: Sequence[int] = _numbers(view[ends:text])
        self._text = view[text:]

    def __len__(self) -> int:
        return self.rows

    def find(self, word: str) -> int | None:
        """The row of ``word``; None where it has none."""
        wanted = word.encode("utf-8", "replace")
        hashed = crc32(wanted)
        mark, slots, mask = hashed >> _ROW_BITS, self._slots, self._mask
        at = hashed & mask
        for _ in range(mask + 1):
            slot = slots[at]
            if not slot:
                return None
            row = (slot & _ROW) - 1
            if slot >> _ROW_BITS == mark and self._is(row, wanted):
                return row
            at = (at + 1) & mask
        return None

    def begins_pair(self, row: int) -> bool:
        """Whether a pair of words begins with the word of ``row``."""
        return bool(self._ends[row] & _BEGINS_PAIR)

    def _is(self, row: int, word: bytes) -> bool:
        if not 0 <= row < self.rows:
            return False  # damaged
        start = self._ends[row - 1] & _LENGTH if row else 0
        return bool(self._text[start : self._ends[row] & _LENGTH] == word)


def index_of(vocabulary: Sequence[str], checksum: int) -> bytes:
    """The file for a table with these words. checksum: the CRC-32 of the table.

    Raises ValueError for too many words.
    """
    if len(vocabulary) >= _ROW:
        raise ValueError(f"a table has at most {_ROW - 1:,} words")
    begin_pairs = {entry.partition(" ")[0] for entry in vocabulary if " " in entry}
    slots = array("I", bytes(4 << max((2 * len(vocabulary)).bit_length(), 1)))
    ends = array("I")
    end, mask = 0, len(slots) - 1
    for row, entry in enumerate(vocabulary):
        word = entry.encode("utf-8")
        end += len(word)
        ends.append(end | (_BEGINS_PAIR if entry in begin_pairs else 0))
        hashed = crc32(word)
        at = hashed & mask
        while slots[at]:
            at = (at + 1) & mask
        slots[at] = (hashed >> _ROW_BITS) << _ROW_BITS | (row + 1)
    if sys.byteorder == "big":
        slots.byteswap()
        ends.byteswap()
    head = MAGIC + _HEAD.pack(len(vocabulary), len(slots), end, checksum)
    return head + slots.tobytes() + ends.tobytes() + "".join(vocabulary).encode("utf-8")


def _numbers(data: memoryview) -> Sequence[int]:
    if sys.byteorder == "little":
        return data.cast("I")
    numbers = array("I", bytes(data))
    numbers.byteswap()
    return numbers
