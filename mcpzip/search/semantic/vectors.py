"""The tools nearest in meaning to a query: exact cosines of many vectors at once, with the standard library.

The rule: vectors are kept as numbers of 4 bits and compared as such, query and tool alike; that costs .01 of
a cosine. One dimension of all vectors is one big integer, a 16-bit lane a vector: 15 · 15 · 256 still fits a
lane. The columns that the query gives the same number are added up first and multiplied once: as many
additions of integers as there are dimensions, and sixteen multiplications, whatever the number of vectors.

Beyond `WHOLE` vectors they are kept in clusters around leaders (cluster pruning: Manning, Raghavan & Schütze,
"Introduction to Information Retrieval", 7.1.6) and only the nearest clusters are looked into.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from heapq import nlargest
from itertools import repeat
from math import isqrt, sqrt
from operator import mul

LEVELS = 7  # a number is −7 … 7
ZERO = 8
_LANE = 2  # bytes
_BIAS = 1 << 15  # what a lane has for a product of 0
_MOST_DIMENSIONS = 65_535 // (LEVELS + ZERO) ** 2  # 291: lanes must not overflow
WHOLE = 16_384  # vectors that are compared one and all: 3 ms. From there on the nearest clusters
PROBED = 0.08  # of the clusters

_LOW = bytes(number & 15 for number in range(256))
_HIGH = bytes(number >> 4 for number in range(256))

Packed = bytes
"""A vector in 4 bits a number: two a byte, the even one below."""


def packed(vector: Sequence[float]) -> Packed:
    """``vector`` in 4 bits a number, its direction kept. One without a direction is all zeros."""
    numbers = levels(vector)
    return bytes([low | high << 4 for low, high in zip(numbers[::2], numbers[1::2], strict=True)])


def levels(vector: Sequence[float]) -> bytes:
    """The numbers of ``vector`` that `packed` keeps, one a byte, `ZERO` standing for 0."""
    highest = max(max(vector), -min(vector))
    scale, half = (LEVELS / highest if highest else 0.0), ZERO + 0.5
    return bytes([int(number * scale + half) for number in vector])


def unpacked(vector: Packed) -> bytes:
    """The numbers of ``vector``, one a byte, `ZERO` standing for 0."""
    numbers = bytearray(2 * len(vector))
    numbers[::2] = vector.translate(_LOW)
    numbers[1::2] = vector.translate(_HIGH)
    return bytes(numbers)


class Vectors:
    """Many vectors of one dimension, comparable to a query. Never changes; threads may share it.

    leaders: of the clusters, none if there are none. followers: of every vector, the leader it follows.
    """

    def __init__(
        self, vectors: Sequence[Packed], dimension: int, known: Mapping[Packed, Packed] | None = None
    ) -> None:
        """known: of vectors that were clustered before, the leaders they followed: finding them is nearly all
        of the work. Raises ValueError for a dimension that is odd or too high.
        """
        if dimension % 2 or dimension > _MOST_DIMENSIONS:
            raise ValueError(f"vectors have an even number of dimensions, at most {_MOST_DIMENSIONS}")
        self.leaders: list[Packed] = []
        self.followers: list[int] = []
        self._clusters: list[tuple[list[int], _Block]] = []
        self._leaders: _Block | None = None
        if len(vectors) <= WHOLE:
            self._clusters.append((list(range(len(vectors))), _Block(vectors, dimension)))
        else:
            self._cluster(vectors, dimension, known or {})

    def cosines(self, query: Sequence[float], names: Sequence[int]) -> dict[int, float]:
        """The cosines of ``query`` with the vectors, by their ``names``; of many, of the nearest clusters."""
        numbers = levels(query)
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

    def _cluster(self, vectors: Sequence[Packed], dimension: int, known: Mapping[Packed, Packed]) -> None:
        """Every vector follows the nearest leader; without a new leader it goes on following its own."""
        self.leaders = leaders_of(vectors)
        self._leaders = _Block(self.leaders, dimension)
        places = {leader: place for place, leader in enumerate(self.leaders)}
        if not places.keys() <= set(known.values()):
            known = {}
        members: list[list[int]] = [[] for _ in self.leaders]
        for number, vector in enumerate(vectors):
            place = places.get(known.get(vector, b""))
            if place is None:
                near = self._leaders.cosines(unpacked(vector))
                place = near.index(max(near))
            self.followers.append(place)
            members[place].append(number)
        self._clusters = [
            (those, _Block([vectors[number] for number in those], dimension)) for those in members
        ]


def leaders_of(vectors: Iterable[Packed]) -> list[Packed]:
    """As many of ``vectors`` as the root of their number, drawn by a hash: the same whatever their order."""
    distinct = sorted(set(vectors), key=hash_of)
    return distinct[: isqrt(len(distinct))]


def cosine(one: Packed, other: Packed) -> float:
    """The cosine of two packed vectors, −1…1: the very number that `Vectors.cosines` gives."""
    left, right = unpacked(one), unpacked(other)
    shift = ZERO * ZERO * len(left) - ZERO * (sum(left) + sum(right))
    product: int = sum(map(mul, left, right)) + shift
    return product * _inverse(left) * _inverse(right)


def hash_of(vector: Packed) -> bytes:
    """A sort key that scatters vectors, the same on every machine."""
    return blake2b(vector, digest_size=8).digest()


class _Block:
    """Vectors that are compared together."""

    __slots__ = ("_columns", "_dimension", "_inverses", "_ones", "_size")

    def __init__(self, vectors: Sequence[Packed], dimension: int) -> None:
        self._dimension, self._size = dimension, len(vectors)
        self._ones = int.from_bytes(b"\1\0" * self._size, "little")
        flat = b"".join(vectors)
        half = dimension // 2
        self._columns: list[int] = []
        for place in range(half):
            pairs = flat[place::half]
            for numbers in (pairs.translate(_LOW), pairs.translate(_HIGH)):
                lanes = bytearray(_LANE * self._size)
                lanes[::_LANE] = numbers
                self._columns.append(int.from_bytes(lanes, "little"))
        self._inverses = [_inverse(unpacked(vector)) for vector in vectors]

    def cosines(self, numbers: bytes) -> list[float]:
        """The cosines with the vector of these unpacked numbers."""
        sums = [0] * 16
        for number, column in zip(numbers, self._columns, strict=True):
            if number != ZERO:  # a fifth of them
                sums[number] += column
        # A lane is _BIAS and the product, whichever sign that has: no lane ever borrows from its neighbour.
        lanes = (_BIAS - ZERO * (sum(numbers) - ZERO * self._dimension)) * self._ones
        for level in range(1, LEVELS + 1):
            lanes += level * (sums[ZERO + level] - sums[ZERO - level])
        lanes -= ZERO * sums[0]
        lanes ^= _BIAS * self._ones  # from above _BIAS to a sign
        products = memoryview(lanes.to_bytes(_LANE * self._size, "little")).cast("h").tolist()
        inverse = _inverse(numbers)
        return list(map(mul, map(mul, products, self._inverses), repeat(inverse)))


def _inverse(numbers: bytes) -> float:
    """One by the length of a vector; 0 for one of no length."""
    length = sum(map(mul, numbers, numbers)) - 2 * ZERO * sum(numbers) + ZERO * ZERO * len(numbers)
    return 1 / sqrt(length) if length else 0.0
