"""A long list in parts: which rows a page shows, and where the others are (pure)."""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from mcpzip.ui.limits import ROWS

T = TypeVar("T")


class Part(msgspec.Struct, Generic[T], frozen=True):
    """Some rows of a list. first: the number of the first one, from 1. total: of all. page, pages: from 1."""

    rows: Sequence[T]
    first: int
    total: int
    page: int
    pages: int

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.first + len(self.rows) - 1


def part_of(rows: Sequence[T], page: int, size: int = ROWS) -> Part[T]:
    """The rows of ``page``, the nearest page that there is."""
    pages = max(1, -(-len(rows) // size))
    at = min(max(page, 1), pages)
    begin = (at - 1) * size
    shown = rows[begin : begin + size]
    return Part(shown, begin + 1 if shown else 0, len(rows), at, pages)
