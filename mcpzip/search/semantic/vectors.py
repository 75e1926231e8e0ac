"""The tools nearest in meaning to a query: exact cosines of many vectors at once, with the standard library.

The rule: vectors are kept as numbers of 4 bits and compared as such, query and tool alike; that costs .01 of
a cosine. One dimension of all vectors is one big integer, a 16-bit lane a vector: 15 · 15 · 256 still fits a
lane. The columns that the query gives the same number are added up first and multiplied once: as many
additions of integers as there are dimensions, and sixteen multiplications, whatever the number of vectors.

Beyond `WHOLE` vectors they are kept in clusters around leaders (cluster pruning: Manning, Raghavan & Schütze,
"Introduction to Information Retrieval", 7.1.6) and only the nearest clusters are looked into.
"""

from collections.abc import Sequence
from hashlib import blake2b
from heapq import nlargest
from math import isqrt, sqrt
from operator import mul

LEVELS = 7  # a number is −7 … 7
ZERO = 8
_LANE = 2  # bytes
_MOST_DIMENSIONS = 65_535 // (LEVELS + ZERO) ** 2  # 291: lanes must not overflow
WHOLE = 16_384  # vectors that are compared one and all: 3 ms. From there on the nearest clusters
PROBED = 0.08  # of the clusters

_LOW = bytes(number & 15 for number in range(256))
_HIGH = bytes(number >> 4 for number in range(256))

Packed = bytes
"""A vector in 4 bits a number: two a byte, the even one below."""


def packed(vector: Sequence[float]) -> Packed:
    """``vector`` in 4 bits a number, its direction kept. One without a direction is all zeros."""
    highest = max(max(vector), -min(vector))
    scale = LEVELS / highest if highest else 0.0
    numbers = [int(number * scale + ZERO + 0.5) for number in vector]
    return bytes([low | high << 4 for low, high in zip(numbers[::2], numbers[1::2], strict=True)])


def unpacked(vector: Packed) -> bytes:
    """The numbers of ``vector``, one a byte, `ZERO` standing for 0."""
    numbers = bytearray(2 * len(vector))
    numbers[::2] = vector.translate(_LOW)
    numbers[1::2] = vector.translate(_HIGH)
    return bytes(numbers)


class Vectors:
    """Many vectors of one dimension, comparable to a query. Never changes; threads may share it."""

    def __init__(self, vectors: Sequence[Packed], dimension: int) -> None:
        """Raises ValueError for a dimension that is odd or too high."""
        if dimension % 2 or dimension > _MOST_DIMENSIONS:
            raise ValueError(f"vectors have an even number of dimensions, at most {_MOST_DIMENSIONS}")
        self._count = len(vectors)
        self._clusters: list[tuple[list[int], _Block]] = []
        self._leaders: _Block | None = None
        if len(vectors) <= WHOLE:
            self._clusters.append((list(range(len(vectors))), _Block(vectors, dimension)))
        else:
            self._cluster(vectors, dimension)

    def __len__(self) -> int:
        return self._count

    def cosines(self, query: Sequence[float], names: Sequence[int]) -> dict[int, float]:
        """The cosines of ``query`` with the vectors, by their ``names``; of many, of the nearest clusters."""
        numbers = unpacked(packed(query))
        if self._leaders is None:
            return dict(zip(names, self._clusters[0][1].cosines(numbers), strict=True))
        near = self._leaders.cosines(numbers)
        probed = nlargest(max(1, int(PROBED * len(near))), range(len(near)), key=near.__getitem__)
        found: dict[int, float] = {}
        for cluster in probed:
            members, block = self._clusters[cluster]
            found.update(zip([names[member] for member in members], block.cosines(numbers), strict=True))
        return found

    @property
    def whole(self) -> bool:
        """Whether `cosines` gives those of all vectors."""
        return self._leaders is None

    def _cluster(self, vectors: Sequence[Packed], dimension: int) -> None:
        """Leaders are drawn by a hash of the vectors; every vector follows the nearest of them."""
        distinct = sorted(set(vectors), key=hash_of)
        leaders = distinct[: isqrt(len(distinct))]
        self._leaders = _Block(leaders, dimension)
        members: list[list[int]] = [[] for _ in leaders]
        for number, vector in enumerate(vectors):
            near = self._leaders.cosines(unpacked(vector))
            members[near.index(max(near))].append(number)
        self._clusters = [
            (those, _Block([vectors[number] for number in those], dimension)) for those in members
        ]


def cosine(one: Packed, other: Packed) -> float:
    """The cosine of two packed vectors, −1…1: the very number that `Vectors.cosines` gives."""
    left, right = unpacked(one), unpacked(other)
    shift = ZERO * ZERO * len(left)
    lengths = [sum(map(mul, numbers, numbers)) - 2 * ZERO * sum(numbers) + shift for numbers in (left, right)]
    if not all(lengths):
        return 0.0
    product: int = sum(map(mul, left, right)) - ZERO * sum(left) + shift - ZERO * sum(right)
    return product * (1 / sqrt(lengths[0])) * (1 / sqrt(lengths[1]))


def hash_of(vector: Packed) -> bytes:
    """A sort key that scatters vectors, the same on every machine."""
    return blake2b(vector, digest_size=8).digest()


class _Block:
    """Vectors that are compared together."""

    __slots__ = ("_columns", "_corrections", "_dimension", "_inverses", "_size")

    def __init__(self, vectors: Sequence[Packed], dimension: int) -> None:
        self._dimension, self._size = dimension, len(vectors)
        flat = b"".join(vectors)
        half = dimension // 2
        self._columns: list[int] = []
        for place in range(half):
            pairs = flat[place::half]
            for numbers in (pairs.translate(_LOW), pairs.translate(_HIGH)):
                lanes = bytearray(_LANE * self._size)
                lanes[::_LANE] = numbers
                self._columns.append(int.from_bytes(lanes, "little"))
        self._corrections: list[int] = []
        self._inverses: list[float] = []
        for vector in vectors:
            numbers = unpacked(vector)
            total, squares = sum(numbers), sum(map(mul, numbers, numbers))
            self._corrections.append(ZERO * total)
            length = squares - 2 * ZERO * total + ZERO * ZERO * dimension
            self._inverses.append(1 / sqrt(length) if length else 0.0)

    def cosines(self, numbers: bytes) -> list[float]:
        """The cosines with the vector of these unpacked numbers."""
        total, squares = sum(numbers), sum(map(mul, numbers, numbers))
        shift = ZERO * ZERO * self._dimension
        length = squares - 2 * ZERO * total + shift
        if not length or not self._size:
            return [0.0] * self._size
        sums = [0] * 16
        for number, column in zip(numbers, self._columns, strict=True):
            sums[number] += column
        lanes = sum(map(mul, range(16), sums))
        inverse = 1 / sqrt(length)
        shift -= ZERO * total
        products = memoryview(lanes.to_bytes(_LANE * self._size, "little")).cast("H")
        return [
            (product - correction + shift) * each * inverse
            for product, correction, each in zip(products, self._corrections, self._inverses, strict=True)
        ]
