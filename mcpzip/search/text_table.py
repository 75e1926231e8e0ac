"""Mappings from text to numbers that are used as they are in the index file.

The rule: nothing is decoded before it is asked for. A text is found by the CRC-32 of its UTF-8 among the
sorted ones, and compared with what is stored there. What was found, or not, is cached.

    table       <I texts · hashes: <I each, ascending · positions: <I each, of the text with that hash
                · ends: <I each, where a text ends, in the order of the texts · the texts in UTF-8
"""

from abc import abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar, overload
from zlib import crc32

_CACHED = 8_192  # texts that were looked up
_NUMBER = 4  # bytes

T = TypeVar("T")
D = TypeVar("D")


class TextTable:
    """Texts in a file, each with its position. Raises ValueError for data of another length than it says."""

    def __init__(self, data: memoryview) -> None:
        self._count = count = data[:_NUMBER].cast("I")[0] if len(data) >= _NUMBER else -1
        text = _NUMBER * (1 + 3 * count)
        if count < 0 or len(data) < text:
            raise ValueError("a table of texts that is shorter than it says")
        numbers = data[_NUMBER:text].cast("I")
        self._hashes = numbers[:count]
        self._positions = numbers[count : 2 * count]
        self._ends = numbers[2 * count :]
        self._text = data[text:]
        if len(self._text) != (self._ends[-1] if count else 0):
            raise ValueError("a table of texts that is shorter or longer than it says")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        """The texts in their order."""
        whole = bytes(self._text)
        return (whole[start:end].decode() for start, end in pairwise((0, *self._ends)))

    def find(self, text: str) -> int:
        """The position of ``text``; -1 where it is not in the table."""
        wanted = text.encode("utf-8", "surrogatepass")
        hashed = crc32(wanted)
        at = bisect_left(self._hashes, hashed)
        while at < self._count and self._hashes[at] == hashed:
            position = self._positions[at]
            start = self._ends[position - 1] if position else 0
            if self._text[start : self._ends[position]] == wanted:
                return position
            at += 1
        return -1


def table_of(texts: Iterable[str]) -> bytes:
    """The table of ``texts``, which are distinct."""
    encoded = [text.encode() for text in texts]
    hashes = list(map(crc32, encoded))
    positions = sorted(range(len(encoded)), key=hashes.__getitem__)
    numbers = array("I", (len(encoded),))
    numbers.extend(map(hashes.__getitem__, positions))
    numbers.extend(positions)
    numbers.extend(ends_of(map(len, encoded)))
    return numbers.tobytes() + b"".join(encoded)


def ends_of(lengths: Iterable[int]) -> Iterator[int]:
    """Where parts of these ``lengths`` end when they follow one another."""
    end = 0
    for length in lengths:
        end += length
        yield end


class _ByText(Mapping[str, T]):
    """A mapping from the texts of a table. Immutable; safe between threads."""

    __slots__ = ("_found", "_table")

    def __init__(self, table: TextTable) -> None:
        self._table = table
        self._found: dict[str, T | None] = {}

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.get(text) is not None

    def __getitem__(self, text: str) -> T:
        found = self.get(text)
        if found is None:
            raise KeyError(text)
        return found

    @overload
    def get(self, text: str, default: None = None, /) -> T | None: ...
    @overload
    def get(self, text: str, default: T | D, /) -> T | D: ...
    def get(self, text: str, default: object = None, /) -> object:
        """The value of ``text``, or ``default``."""
        found = self._found  # another thread may replace it
        if text not in found:
            if len(found) >= _CACHED:
                found = self._found = {}
            position = self._table.find(text)
            found[text] = None if position < 0 else self._value(position)
        value = found[text]
        return default if value is None else value

    def copy(self) -> dict[str, T]:
        """A dictionary of all of them."""
        return dict(zip(self._table, map(self._value, range(len(self._table))), strict=True))

    @abstractmethod
    def _value(self, position: int) -> T:
        """The value of the text at ``position``."""


class NumberByText(_ByText[int]):
    """A number for each text."""

    __slots__ = ("_numbers",)

    def __init__(self, table: TextTable, numbers: Sequence[int]) -> None:
        """numbers: in the order of the texts. Raises ValueError where there are more or fewer."""
        super().__init__(table)
        if len(numbers) != len(table):
            raise ValueError("a table with another number of texts than of numbers")
        self._numbers = numbers

    def _value(self, position: int) -> int:
        return self._numbers[position]


class NumbersByText(_ByText[tuple[int, ...]]):
    """Some numbers for each text."""

    __slots__ = ("_ends", "_numbers")

    def __init__(self, table: TextTable, ends: Sequence[int], numbers: Sequence[int]) -> None:
        """ends: where those of each text end in ``numbers``. Raises ValueError as `NumberByText`."""
        super().__init__(table)
        if len(ends) != len(table) or len(numbers) != (ends[-1] if len(ends) else 0):
            raise ValueError("a table with another number of texts than of numbers")
        self._ends, self._numbers = ends, numbers

    def _value(self, position: int) -> tuple[int, ...]:
        start = self._ends[position - 1] if position else 0
        return tuple(self._numbers[start : self._ends[position]])
