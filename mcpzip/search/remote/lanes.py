"""Many vectors, and their cosines with one, with the standard library alone (pure).

The rule: a vector is kept as whole numbers of 8 bits, which costs .002 of a cosine at most. One dimension of
all vectors is one big integer with a 32-bit lane for each of them, so that a thousand products are summed by
one multiplication and one addition (SWAR; L. Lamport, "Multiple byte processing with full-word instructions",
CACM 18, 1975). Equal numbers of the query are gathered first.
"""

from collections.abc import Sequence
from operator import mul

LEVELS, ZERO = 127, 128
"""A number is −127 … 127, kept as 1 … 255."""

_LANE = 4  # bytes: 255 · 255 · 16,384 fits
MOST_DIMENSIONS = 16_384

Packed = bytes
"""A vector, a number a byte. Only its direction is kept."""


def packed(vector: Sequence[float]) -> Packed:
    """``vector`` in 8 bits a number. Raises ValueError for one that has no direction, or no finite one."""
    highest = max(max(vector), -min(vector), 0.0)
    scale = LEVELS / highest if highest else 0.0
    if not 0.0 < scale < float("inf"):
        raise ValueError("a vector without a direction")
    return bytes([int(number * scale + (ZERO + 0.5)) for number in vector])


class Lanes:
    """Vectors of one dimension. Never changes; any number of threads may read it."""

    def __init__(self, vectors: Sequence[Packed], dimension: int) -> None:
        """Raises ValueError for a dimension that lanes have no room for, or a vector of another."""
        if not 0 < dimension <= MOST_DIMENSIONS or any(len(vector) != dimension for vector in vectors):
            raise ValueError(f"vectors have one dimension, at most {MOST_DIMENSIONS:,}")
        self.dimension = dimension
        self._size = len(vectors)
        flat = b"".join(vectors)
        self._columns: list[int] = []
        for place in range(dimension):
            lanes = bytearray(_LANE * self._size)
            lanes[::_LANE] = flat[place::dimension]
            self._columns.append(int.from_bytes(lanes, "little"))
        self._sums = [sum(vector) for vector in vectors]
        self._inverses = [_inverse(vector) for vector in vectors]

    def __len__(self) -> int:
        return self._size

    def cosines(self, query: Packed) -> list[float]:
        """The cosines of ``query`` with the vectors, −1…1, in their order."""
        if not self._size:
            return []
        gathered = [0] * 256
        for number, column in zip(query, self._columns, strict=True):
            gathered[number] += column
        lanes = sum(map(mul, range(256), gathered))
        # Σ (a − z)(b − z) = Σ ab − z Σ a − z Σ b + z² d
        shift = ZERO * ZERO * self.dimension - ZERO * sum(query)
        inverse = _inverse(query)
        products = _unsigned(lanes.to_bytes(_LANE * self._size, "little"))
        return [
            (product - ZERO * total + shift) * each * inverse
            for product, total, each in zip(products, self._sums, self._inverses, strict=True)
        ]


def _unsigned(data: bytes) -> Sequence[int]:
    """The 32-bit numbers in ``data``, the lowest byte first on any machine."""
    from struct import unpack

    return unpack(f"<{len(data) // _LANE}I", data)


def _inverse(vector: Packed) -> float:
    squares: int = sum(map(mul, vector, vector))
    length = squares - 2 * ZERO * sum(vector) + ZERO * ZERO * len(vector)
    return float(length**-0.5) if length > 0 else 0.0
