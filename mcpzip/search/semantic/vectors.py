"""Nearest-neighbour search over the vectors of tools, with the standard library alone.

The rule: the vectors of tools and of queries are quantized to 4 bits, and cosines are computed from these
(`packed_matrix`). Above `MAX_EXHAUSTIVE` vectors the search is approximate: vectors are clustered around
leaders, and only the nearest clusters are searched (cluster pruning: Manning, Raghavan & Schütze,
"Introduction to Information Retrieval", 7.1.6).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


class Cluster:
    """Vectors that are searched together.

    members: the position of each among all vectors, ascending.
    """

    __slots__ = ("_columns", "_inverse_norms", "_matrix", "members")

    def __init__(
        self, members: Sequence[int], columns: bytes | memoryview, inverse_norms: Sequence[float]
    ) -> None:
        """columns: the `columns` of these vectors. inverse_norms: of `PackedMatrix`. The matrix is made of
        them when it is first searched. Raises ValueError where the lengths don't fit.
        """
        if len(inverse_norms) != len(members) or (len(columns) % len(members) if members else len(columns)):
            raise ValueError("a cluster with another number of vectors than of members")
        self.members = members
        self._columns, self._inverse_norms = columns, inverse_norms
        self._matrix: PackedMatrix | None = None

    @classmethod
    def of(cls, members: Sequence[int], vectors: Sequence[Packed], dimension: int) -> "Cluster":
        """The cluster of ``vectors``, those of the ``members``, which have this dimension."""
        cluster = cls((), b"", ())
        cluster.members, cluster._matrix = members, _matrix(vectors, dimension)
        return cluster

    def __len__(self) -> int:
        return len(self.members)

    def vector(self, row: int) -> Packed:
        """The vector of the member at ``row``."""
        return bytes((self._columns or self.columns)[row :: len(self)])

    @property
    def matrix(self) -> PackedMatrix:
        """The vectors as a matrix."""
        if self._matrix is None:
            self._matrix = PackedMatrix.of_columns(self._unpacked_columns(), self._inverse_norms, INT4)
        return self._matrix

    @property
    def columns(self) -> bytes:
        """The first bytes of all members, then their second bytes, and so on."""
        numbers = self.matrix.columns
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        return b"".join([(low | high << 4).to_bytes(len(self), "little") for low, high in pairs])

    def _unpacked_columns(self) -> Iterator[bytes]:
        size = len(self)
        for start in range(0, len(self._columns), size or 1):
            column = bytes(self._columns[start : start + size])
            yield column.translate(LOW)
            yield column.translate(HIGH)


class Vectors:
    """Vectors of one dimension. Immutable; safe between threads.

    clusters: one of all vectors where `exhaustive`. leaders: of the clusters; none where there is one.
    followers: the number of each vector's leader; none where there are no leaders.
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
        self.followers: Sequence[int] = ()
        self.clusters: list[Cluster] = []
        self._leader_matrix: PackedMatrix | None = None
        if len(vectors) <= MAX_EXHAUSTIVE:
            self.clusters.append(Cluster.of(range(len(vectors)), vectors, dimension))
        else:
            self._cluster(vectors, dimension, known or {})

    @classmethod
    def of_clusters(
        cls, clusters: list[Cluster], leaders: list[Packed], followers: Sequence[int], dimension: int
    ) -> "Vectors":
        """The vectors with these clusters, leaders and followers. Raises ValueError as the constructor."""
        vectors = cls((), dimension)
        vectors.clusters, vectors.leaders, vectors.followers = clusters, leaders, followers
        if leaders:
            vectors._leader_matrix = _matrix(leaders, dimension)
        return vectors

    def __len__(self) -> int:
        return sum(map(len, self.clusters))

    def vector(self, position: int) -> Packed:
        """The vector at ``position``."""
        if self.exhaustive:
            return self.clusters[0].vector(position)
        cluster = self.clusters[self.followers[position]]
        return cluster.vector(bisect_left(cluster.members, position))

    def packed(self) -> list[Packed]:
        """All vectors, in their order."""
        found: list[Packed] = [b""] * len(self)
        for cluster in self.clusters:
            columns = cluster.columns
            for row, position in enumerate(cluster.members):
                found[position] = columns[row :: len(cluster)]
        return found

    def cosines(self, query: bytes, documents: Sequence[int]) -> Similarities:
        """The cosines of ``query`` with all vectors, or those of the nearest clusters (see `exhaustive`).

        query: of `quantize_int4`. documents: of the vectors, in their order; the keys of the result.
        """
        if self._leader_matrix is None:
            return Similarities(documents, *self.clusters[0].matrix.scaled_cosines(query))
        near = self._leader_matrix.cosines(query)
        probed = nlargest(max(1, int(PROBED * len(near))), range(len(near)), key=near.__getitem__)
        found: list[int] = []
        values: list[float] = []
        scale = 0.0
        for number in probed:
            cluster = self.clusters[number]
            members = cluster.members
            found += members if documents == range(len(documents)) else [documents[i] for i in members]
            some, scale = cluster.matrix.scaled_cosines(query)
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
        followers: list[int] = []
        for i, vector in enumerate(vectors):
            leader = leader_numbers.get(known.get(vector, b""))
            if leader is None:
                near = self._leader_matrix.cosines(unpacked(vector))
                leader = near.index(max(near))
            followers.append(leader)
            members[leader].append(i)
        self.followers = followers
        self.clusters = [Cluster.of(those, [vectors[i] for i in those], dimension) for those in members]


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
