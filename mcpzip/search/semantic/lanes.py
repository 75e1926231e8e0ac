"""Sums of word vectors, their lengths, and a weighted sum of their directions, in big integers.

The rule: a vector is one integer with a lane for each dimension, so adding two integers adds two vectors, and
one multiplication scales a vector (SWAR; L. Lamport, "Multiple byte processing with full-word instructions",
CACM 18, 1975). Numbers of rows are stored with a zero point added, so no lane is negative: the sum of n rows
has n times the zero point in every lane.
"""

from collections.abc import Iterable
from functools import cache
from math import dist
from struct import Struct
from typing import NamedTuple

from mcpzip.search.packed_matrix import INT4

NARROW, WIDE, WIDEST = 2, 8, 16
"""Bytes of a lane: of a sum of rows, of a weighted sum, and of a weighted sum times a ratio."""
_WEIGHT_BITS = 40  # of a fraction: of a weight divided by a length
_RATIO_BITS = 80  # of a fraction: of the highest level divided by the largest number
_EXACT_BITS = (
    24  # of that fraction that are certain: a number this near below a half is rounded up, as halves
)


class Sum(NamedTuple):
    """The sum of some rows. lanes: `NARROW`, each with ``rows`` times the zero point added."""

    lanes: int
    rows: int

    def numbers(self, dimension: int) -> tuple[int, ...]:
        """The numbers of the vector, with the zero points."""
        numbers: tuple[int, ...] = _narrow(dimension).unpack(
            self.lanes.to_bytes(NARROW * dimension, "little")
        )
        return numbers

    @property
    def zero(self) -> int:
        """The number for 0."""
        return self.rows * INT4.zero_point


def weighted(parts: Iterable[tuple[float, Sum | None]], dimension: int) -> bytes | None:
    """The sum of the unit vectors of ``parts``, each times its weight, quantized to 4 bits and packed as in
    `vectors.Packed`. None where the sum is 0, or of nothing.
    """
    total = zero = 0
    for weight, part in parts:
        if part is None:
            continue
        numbers = part.numbers(dimension)
        length = dist(numbers, (part.zero,) * dimension)
        if length:
            factor = round(weight / length * (1 << _WEIGHT_BITS))
            total += factor * _widened(part.lanes, dimension)
            zero += factor * part.zero
    lanes = memoryview(total.to_bytes(WIDE * dimension, "little")).cast("Q")
    sums = lanes.tolist()
    highest = max(max(sums) - zero, zero - min(sums))
    if not highest:
        return None
    # number · levels / highest + zero point + ½, of which the whole part is the quantized number
    ratio = (INT4.levels << _RATIO_BITS) // highest
    half = (1 << (_RATIO_BITS - 1)) + (1 << (_RATIO_BITS - _EXACT_BITS))
    rest = (INT4.zero_point << _RATIO_BITS) + half - zero * ratio
    widest = bytearray(WIDEST * dimension)
    memoryview(widest).cast("Q")[:: WIDEST // WIDE] = lanes
    levels = int.from_bytes(widest, "little") * ratio + rest * _ones(dimension)
    quantized = levels.to_bytes(WIDEST * dimension, "little")[_RATIO_BITS // 8 :: WIDEST]
    packed = int.from_bytes(quantized[::2], "little") | int.from_bytes(quantized[1::2], "little") << 4
    return packed.to_bytes(dimension // 2, "little")


def _widened(lanes: int, dimension: int) -> int:
    """`NARROW` lanes as `WIDE` ones."""
    narrow = lanes.to_bytes(NARROW * dimension, "little")
    wide = bytearray(WIDE * dimension)
    wide[::WIDE] = narrow[::NARROW]
    wide[1::WIDE] = narrow[1::NARROW]
    return int.from_bytes(wide, "little")


@cache
def _ones(dimension: int) -> int:
    """A 1 in each of the `WIDEST` lanes."""
    return int.from_bytes(b"\1".ljust(WIDEST, b"\0") * dimension, "little")


@cache
def _narrow(dimension: int) -> Struct:
    return Struct(f"<{dimension}H")
