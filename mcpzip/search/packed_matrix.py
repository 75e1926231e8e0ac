"""Cosine similarities of one vector with many quantized ones, with the standard library alone (pure).

The rule: vectors are quantized to integers of a few bits. A column, one dimension of all vectors, is one big
integer with a lane for each vector, so one multiplication and one addition compute thousands of products
(SWAR; L. Lamport, "Multiple byte processing with full-word instructions", CACM 18, 1975). Columns for which
the query has the same number are added first and multiplied once.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import repeat
from math import sqrt
from operator import mul
from struct import unpack

import msgspec


class Quantization(msgspec.Struct, frozen=True):
    """A quantization to the integers −levels … levels, each stored as a byte with `zero_point` added.

    lane: bytes of a lane. max_dimension: the most dimensions for which a lane holds the signed dot product.
    """

    levels: int
    lane: int
    max_dimension: int

    @property
    def zero_point(self) -> int:
        """The byte for 0; so no byte is negative."""
        return self.levels + 1


_SQUARED_LEVELS = 14  # the most levels of which every square, that of the unused lowest number too, is a byte
INT8 = Quantization(127, 4, 16_384)
"""8 bits a number. The error of a cosine is at most .002."""
INT4 = Quantization(7, 2, 291)
"""4 bits a number. The error of a cosine is about .01."""


def quantize(vector: Sequence[float], quantization: Quantization) -> bytes:
    """``vector``, scaled to its largest number and quantized: a byte per dimension.

    Raises ValueError for a vector of zeros, or with a number that is not finite.
    """
    highest = max(max(vector), -min(vector), 0.0)
    scale, half = (quantization.levels / highest if highest else 0.0), quantization.zero_point + 0.5
    if not 0.0 < scale < float("inf"):
        raise ValueError("a vector without a direction")
    return bytes([int(number * scale + half) for number in vector])


class PackedMatrix:
    """Quantized vectors of one dimension. Immutable; safe between threads.

    A column has lanes of half the quantization's width, in which some columns can be added; only their sums
    are split into the even and the odd vectors, with lanes of the whole width. So less memory is read.

    columns: integers with a lane for each vector. inverse_norms: 1 divided by the norm of each vector; 0 for
    a norm of 0.
    """

    __slots__ = ("_mask", "_ones", "_quantization", "_size", "columns", "dimension", "inverse_norms")

    def __init__(self, vectors: Sequence[bytes], dimension: int, quantization: Quantization) -> None:
        """vectors: a byte per dimension, of `quantize`.

        Raises ValueError for a dimension above the quantization's, or a vector of another dimension.
        """
        if not 0 < dimension <= quantization.max_dimension or any(len(v) != dimension for v in vectors):
            raise ValueError(f"vectors have one dimension, at most {quantization.max_dimension:,}")
        flat = b"".join(vectors)
        columns = (flat[column::dimension] for column in range(dimension))
        self._set(columns, [_inverse_norm(vector, quantization) for vector in vectors], quantization)

    @classmethod
    def of_columns(
        cls, columns: Iterable[bytes], inverse_norms: Sequence[float], quantization: Quantization
    ) -> "PackedMatrix":
        """The matrix with these ``columns``, a byte per vector. inverse_norms: of the vectors, as the matrix
        that was made of the vectors has them.
        """
        matrix = cls.__new__(cls)
        matrix._set(columns, inverse_norms, quantization)
        return matrix

    def _set(
        self, columns: Iterable[bytes], inverse_norms: Sequence[float], quantization: Quantization
    ) -> None:
        self._quantization, self._size = quantization, len(inverse_norms)
        lane, half, pairs = quantization.lane, quantization.lane // 2, (self._size + 1) // 2
        self._ones = int.from_bytes(b"\1".ljust(lane, b"\0") * pairs, "little")
        self._mask = int.from_bytes((b"\xff" * half).ljust(lane, b"\0") * pairs, "little")
        self.columns: list[int] = []
        for column in columns:
            lanes: bytes | bytearray = column
            if half > 1:
                lanes = bytearray(half * self._size)
                lanes[::half] = column
            self.columns.append(int.from_bytes(lanes, "little"))
        self.dimension = len(self.columns)
        self.inverse_norms = list(inverse_norms)

    def __len__(self) -> int:
        return self._size

    def cosines(self, query: bytes) -> list[float]:
        """The cosines of the quantized ``query`` with the vectors, −1 … 1, in their order."""
        values, scale = self.scaled_cosines(query)
        return list(map(mul, values, repeat(scale)))

    def scaled_cosines(self, query: bytes) -> tuple[list[float], float]:
        """Numbers that are the cosines when multiplied by the second result, which is not negative."""
        if not self._size:
            return [], 0.0
        quantization = self._quantization
        zero = quantization.zero_point
        columns: list[list[int]] = [[] for _ in range(2 * zero)]
        for number, column in zip(query, self.columns, strict=True):
            columns[number].append(column)
        columns[zero].clear()  # a fifth of INT4 numbers are zero
        products = [0] * (self._size + self._size % 2)
        sums = [self._sums(each) for each in columns]
        lane, pairs = quantization.lane, len(products) // 2
        # A lane holds ``bias`` plus the dot product, which may be negative: so no lane borrows from the next.
        bias = 1 << (8 * lane - 1)
        first = (bias - zero * (sum(query) - zero * self.dimension)) * self._ones
        form = f"<{pairs}{'h' if lane == 2 else 'i'}"
        for parity in (0, 1):
            lanes = first - zero * sums[0][parity]
            for level in range(1, quantization.levels + 1):
                lanes += level * (sums[zero + level][parity] - sums[zero - level][parity])
            lanes ^= bias * self._ones  # from biased to two's complement
            products[parity::2] = unpack(form, lanes.to_bytes(lane * pairs, "little"))
        return list(map(mul, products, self.inverse_norms)), _inverse_norm(query, quantization)

    def _sums(self, columns: Sequence[int]) -> tuple[int, int]:
        """The sums of ``columns``: for the vectors with an even position, and for the others."""
        half = 4 * self._quantization.lane  # bits
        addends = ((1 << half) - 1) // (2 * self._quantization.zero_point - 1)
        even = odd = 0
        for start in range(0, len(columns), addends):
            total = sum(columns[start : start + addends])
            even += total & self._mask
            odd += total >> half & self._mask
        return even, odd


def cosine(one: bytes, other: bytes, quantization: Quantization) -> float:
    """The cosine of two quantized vectors, −1 … 1; exactly equal to that of `PackedMatrix.cosines`."""
    zero = quantization.zero_point
    shift = zero * zero * len(one) - zero * (sum(one) + sum(other))
    product: int = sum(map(mul, one, other)) + shift
    return product * _inverse_norm(one, quantization) * _inverse_norm(other, quantization)


def _inverse_norm(vector: bytes, quantization: Quantization) -> float:
    """1 divided by the Euclidean norm of ``vector``; 0 where the norm is 0."""
    zero = quantization.zero_point
    if quantization.levels <= _SQUARED_LEVELS:
        square = sum(vector.translate(_squares(zero)))
    else:
        square = sum(map(mul, vector, vector)) - 2 * zero * sum(vector) + zero * zero * len(vector)
    return 1 / sqrt(square) if square else 0.0


@cache
def _squares(zero: int) -> bytes:
    """A table for `bytes.translate`: the squares of numbers, of which the highest fits in a byte."""
    return bytes([(byte - zero) ** 2 if byte <= 2 * zero else 0 for byte in range(256)])
