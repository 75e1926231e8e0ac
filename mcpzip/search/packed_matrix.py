"""Many vectors, and their cosines with one, with the standard library alone (pure).

The rule: a number of a vector is a whole one of a few bits. One dimension of all vectors is one big integer
with a lane for each of them, so that thousands of products are summed by one multiplication and one addition
(SWAR; L. Lamport, "Multiple byte processing with full-word instructions", CACM 18, 1975). The columns that
the query gives the same number are added up first and multiplied once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from math import sqrt
from operator import mul
from struct import unpack


@dataclass(frozen=True, slots=True)
class Quantization:
    """What numbers are rounded to. levels: a number is −levels … levels. lane: bytes in which the products of
    `most` dimensions have room, with their sign.
    """

    levels: int
    lane: int
    most: int

    @property
    def zero(self) -> int:
        """What stands for 0, so that no number is negative."""
        return self.levels + 1


FINE = Quantization(127, 4, 16_384)
"""8 bits a number, which costs .002 of a cosine at most."""
COARSE = Quantization(7, 2, 291)
"""4 bits a number, which costs .01 of a cosine."""


def rounded(vector: Sequence[float], grid: Quantization) -> bytes:
    """The numbers of ``vector``, one a byte. Only its direction is kept.

    Raises ValueError for one that has no direction, or no finite one.
    """
    highest = max(max(vector), -min(vector), 0.0)
    scale, half = (grid.levels / highest if highest else 0.0), grid.zero + 0.5
    if not 0.0 < scale < float("inf"):
        raise ValueError("a vector without a direction")
    return bytes([int(number * scale + half) for number in vector])


class PackedMatrix:
    """Vectors of one dimension. Never changes; any number of threads may read it."""

    __slots__ = ("_columns", "_grid", "_inverses", "_ones", "_size", "dimension")

    def __init__(self, vectors: Sequence[bytes], dimension: int, grid: Quantization) -> None:
        """vectors: a number a byte, as `rounded` makes them.

        Raises ValueError for a dimension that lanes have no room for, or a vector of another.
        """
        if not 0 < dimension <= grid.most or any(len(vector) != dimension for vector in vectors):
            raise ValueError(f"vectors have one dimension, at most {grid.most:,}")
        self.dimension, self._grid, self._size = dimension, grid, len(vectors)
        self._ones = int.from_bytes(b"\1".ljust(grid.lane, b"\0") * self._size, "little")
        flat = b"".join(vectors)
        self._columns: list[int] = []
        for place in range(dimension):
            lanes = bytearray(grid.lane * self._size)
            lanes[:: grid.lane] = flat[place::dimension]
            self._columns.append(int.from_bytes(lanes, "little"))
        self._inverses = [_inverse(vector, grid.zero) for vector in vectors]

    def __len__(self) -> int:
        return self._size

    def cosines(self, query: bytes) -> list[float]:
        """The cosines of ``query`` with the vectors, −1 … 1, in their order."""
        if not self._size:
            return []
        levels, lane, zero = self._grid.levels, self._grid.lane, self._grid.zero
        sums = [0] * (2 * zero)
        for number, column in zip(query, self._columns, strict=True):
            if number != zero:  # of coarse numbers a fifth
                sums[number] += column
        # A lane is ``bias`` and the product, whichever sign that has: no lane borrows from its neighbour.
        bias = 1 << (8 * lane - 1)
        lanes = (bias - zero * (sum(query) - zero * self.dimension)) * self._ones
        for level in range(1, levels + 1):
            lanes += level * (sums[zero + level] - sums[zero - level])
        lanes -= zero * sums[0]
        lanes ^= bias * self._ones  # from above ``bias`` to a sign
        form = f"<{self._size}{'h' if lane == 2 else 'i'}"
        products = unpack(form, lanes.to_bytes(lane * self._size, "little"))
        return list(map(mul, map(mul, products, self._inverses), repeat(_inverse(query, zero))))


def cosine(one: bytes, other: bytes, grid: Quantization) -> float:
    """The cosine of two vectors, −1 … 1: the very number that `PackedMatrix.cosines` gives."""
    zero = grid.zero
    shift = zero * zero * len(one) - zero * (sum(one) + sum(other))
    product: int = sum(map(mul, one, other)) + shift
    return product * _inverse(one, zero) * _inverse(other, zero)


def _inverse(vector: bytes, zero: int) -> float:
    """One by the length of ``vector``; 0 for one of no length."""
    length = sum(map(mul, vector, vector)) - 2 * zero * sum(vector) + zero * zero * len(vector)
    return 1 / sqrt(length) if length else 0.0
