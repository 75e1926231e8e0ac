"""Nearest-neighbour search over the vectors of tools, with the standard library alone.

The rule: the vectors of tools and of queries are quantized to 4 bits, and cosines are computed from these
(`packed_matrix`). Above `MAX_EXHAUSTIVE` vectors the search is approximate: vectors are clustered around
leaders, and only the nearest clusters are searched (cluster pruning: Manning, Raghavan & Schütze,
"Introduction to Information Retrieval", 7.1.6).
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from heapq import nlargest
from math import isqrt

from mcpzip.search import packed_matrix
from mcpzip.search.packed_matrix import INT4, PackedMatrix, quantize
from mcpzip.search.similarities import Similarities

MAX_EXHAUSTIVE = 16_384  # vectors that are all compared with a query, which takes 3 ms
PROBED = 0.08  # share of the clusters that are searched

LOW = bytes(number & 15 for number in range(256))
HIGH = bytes(number >> 4 for number in range(256))
"""Tables for `bytes.translate`: the lower and the upper number of a byte."""

Packed = bytes
"""A vector in 4 bits per number: two in a byte, the one with the even position in the lower bits."""


def packed(vector: Sequence[float]) -> Packed:
    """``vector``, quantized and packed. A vector of zeros becomes one of zero points."""
    numbers = quantize_int4(vector)
    return bytes([low | high << 4 for low, high in zip(numbers[::2], numbers[1::2], strict=True)])


def quantize_int4(vector: Sequence[float]) -> bytes:
    """``vector``, quantized: a byte per dimension. A vector of zeros becomes one of zero points."""
    return quantize(vector, INT4) if any(vector) else bytes([INT4.zero_point]) * len(vector)


def unpacked(vector: Packed) -> bytes:
    """``vector`` with a byte per dimension."""
    numbers = bytearray(2 * len(vector))
    numbers[::2] = vector.translate(LOW)
    numbers[1::2] = vector.translate(HIGH)
    return bytes(numbers)


class Vectors:
    """Vectors of one dimension. Immutable; safe between threads.

    leaders: of the clusters; none where there are no clusters. followers: the number of each vector's leader.
    """

    def __init__(
        self, vectors: Sequence[Packed], dimension: int, known: Mapping[Packed, Packed] | None = None
    ) -> None:
        """known: the leaders of vectors that were clustered before, because finding them takes nearly all of
        the time. Raises ValueError for a dimension that is odd or too high.
        """
        if dimension % 2 or dimension > INT4.max_dimension:
            raise ValueError(f"vectors have an even number of dimensions, at most {INT4.max_dimension}")
        self.leaders: list[Packed] = []
        self.followers: list[int] = []
        self._clusters: list[tuple[list[int], PackedMatrix]] = []
        self._leader_matrix: PackedMatrix | None = None
        if len(vectors) <= MAX_EXHAUSTIVE:
            self._clusters.append((list(range(len(vectors))), _matrix(vectors, dimension)))
        else:
            self._cluster(vectors, dimension, known or {})

    def cosines(self, query: Sequence[float], documents: Sequence[int]) -> Similarities:
        """The cosines of ``query`` with all vectors, or those of the nearest clusters (see `exhaustive`).

        documents: of the vectors, in their order; the keys of the result.
        """
        numbers = quantize_int4(query)
        if self._leader_matrix is None:
            return Similarities(documents, *self._clusters[0][1].scaled_cosines(numbers))
        near = self._leader_matrix.cosines(numbers)
        probed = nlargest(max(1, int(PROBED * len(near))), range(len(near)), key=near.__getitem__)
        found: list[int] = []
        values: list[float] = []
        scale = 0.0
        for cluster in probed:
            members, matrix = self._clusters[cluster]
            found += members if documents == range(len(documents)) else [documents[i] for i in members]
            some, scale = matrix.scaled_cosines(numbers)
            values += some
        return Similarities(found, values, scale)

    @property
    def exhaustive(self) -> bool:
        """Whether `cosines` returns those of all vectors."""
        return self._leader_matrix is None

    def _cluster(self, vectors: Sequence[Packed], dimension: int, known: Mapping[Packed, Packed]) -> None:
        """Assign every vector to the nearest leader, or to its ``known`` one where no leader is new."""
        if known.keys() == set(vectors):
            self.leaders = sorted(set(known.values()), key=hash_of)
        else:
            self.leaders = leaders_of(vectors)
        self._leader_matrix = _matrix(self.leaders, dimension)
        leader_numbers = {leader: number for number, leader in enumerate(self.leaders)}
        if not leader_numbers.keys() <= set(known.values()):
            known = {}
        members: list[list[int]] = [[] for _ in self.leaders]
        for i, vector in enumerate(vectors):
            leader = leader_numbers.get(known.get(vector, b""))
            if leader is None:
                near = self._leader_matrix.cosines(unpacked(vector))
                leader = near.index(max(near))
            self.followers.append(leader)
            members[leader].append(i)
        self._clusters = [(those, _matrix([vectors[i] for i in those], dimension)) for those in members]


def leaders_of(vectors: Iterable[Packed]) -> list[Packed]:
    """√n of the n distinct ``vectors``, chosen by their hashes: the same ones whatever the order."""
    distinct = sorted(set(vectors), key=hash_of)
    return distinct[: isqrt(len(distinct))]


def cosine(one: Packed, other: Packed) -> float:
    """The cosine of two packed vectors, −1…1; exactly equal to that of `Vectors.cosines`."""
    return packed_matrix.cosine(unpacked(one), unpacked(other), INT4)


def hash_of(vector: Packed) -> bytes:
    """A hash that is the same in every process and on every machine."""
    return blake2b(vector, digest_size=8).digest()


def _matrix(vectors: Sequence[Packed], dimension: int) -> PackedMatrix:
    return PackedMatrix([unpacked(vector) for vector in vectors], dimension, INT4)
