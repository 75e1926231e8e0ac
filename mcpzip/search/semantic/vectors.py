"""The tools nearest in meaning to a query: exact cosines of many vectors at once, with the standard library.

The rule: vectors are kept as numbers of 4 bits and compared as such (`packed_matrix`), query and tool
alike.

Beyond `WHOLE` vectors they are kept in clusters around leaders (cluster pruning: Manning, Raghavan & Schütze,
"Introduction to Information Retrieval", 7.1.6) and only the nearest clusters are looked into.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from heapq import nlargest
from math import isqrt

from mcpzip.search import packed_matrix
from mcpzip.search.packed_matrix import COARSE, PackedMatrix, rounded

WHOLE = 16_384  # vectors that are compared one and all: 3 ms. From there on the nearest clusters
PROBED = 0.08  # of the clusters

LOW = bytes(number & 15 for number in range(256))
HIGH = bytes(number >> 4 for number in range(256))
"""What `bytes.translate` makes of two numbers in a byte: the even one, the odd one."""

Packed = bytes
"""A vector in 4 bits a number: two a byte, the even one below."""


def packed(vector: Sequence[float]) -> Packed:
    """``vector`` in 4 bits a number, its direction kept. One without a direction is all zeros."""
    numbers = levels(vector)
    return bytes([low | high << 4 for low, high in zip(numbers[::2], numbers[1::2], strict=True)])


def levels(vector: Sequence[float]) -> bytes:
    """The numbers of ``vector`` that `packed` keeps, one a byte."""
    return rounded(vector, COARSE) if any(vector) else bytes([COARSE.zero]) * len(vector)


def unpacked(vector: Packed) -> bytes:
    """The numbers of ``vector``, one a byte."""
    numbers = bytearray(2 * len(vector))
    numbers[::2] = vector.translate(LOW)
    numbers[1::2] = vector.translate(HIGH)
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
        if dimension % 2 or dimension > COARSE.most:
            raise ValueError(f"vectors have an even number of dimensions, at most {COARSE.most}")
        self.leaders: list[Packed] = []
        self.followers: list[int] = []
        self._clusters: list[tuple[list[int], PackedMatrix]] = []
        self._leaders: PackedMatrix | None = None
        if len(vectors) <= WHOLE:
            self._clusters.append((list(range(len(vectors))), _lanes(vectors, dimension)))
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
        self._leaders = _lanes(self.leaders, dimension)
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
            (those, _lanes([vectors[number] for number in those], dimension)) for those in members
        ]


def leaders_of(vectors: Iterable[Packed]) -> list[Packed]:
    """As many of ``vectors`` as the root of their number, drawn by a hash: the same whatever their order."""
    distinct = sorted(set(vectors), key=hash_of)
    return distinct[: isqrt(len(distinct))]


def cosine(one: Packed, other: Packed) -> float:
    """The cosine of two packed vectors, −1…1: the very number that `Vectors.cosines` gives."""
    return packed_matrix.cosine(unpacked(one), unpacked(other), COARSE)


def hash_of(vector: Packed) -> bytes:
    """A sort key that scatters vectors, the same on every machine."""
    return blake2b(vector, digest_size=8).digest()


def _lanes(vectors: Sequence[Packed], dimension: int) -> PackedMatrix:
    return PackedMatrix([unpacked(vector) for vector in vectors], dimension, COARSE)
