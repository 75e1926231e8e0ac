"""A layer between the sum of a query's rows and the query's vector, with the standard library alone.

The rule: the sum x, of length 1, becomes x + relu(x A + b) B. This is a deep averaging network (M. Iyyer et
al., "Deep unordered composition rivals syntactic methods for text classification", ACL 2015) with one
residual layer: in it, words can mean something else together than each alone. The vectors of tools don't pass
through it, so indexing costs nothing more. Both products are those of `packed_matrix`, with 4 bits a number.

    float32, little-endian: a scale for each hidden unit · b · a scale for each dimension
    · A: for each dimension its weights to the hidden units · B: for each hidden unit those to the dimensions;
      two weights a byte, the even one in the lower bits, 8 stands for 0; a weight times the scale of the unit
      or dimension to which it leads is the number
"""

import struct
from collections.abc import Iterator, Sequence
from math import hypot

from mcpzip.search.packed_matrix import INT4, PackedMatrix
from mcpzip.search.semantic.vectors import HIGH, LOW, quantize_int4

MAX_HIDDEN = INT4.max_dimension - INT4.max_dimension % 2


def size_of(dimension: int, hidden: int) -> int:
    """The bytes of a layer. Raises ValueError for a dimension or a number of hidden units that none has."""
    if hidden % 2 or hidden > MAX_HIDDEN:
        raise ValueError(f"a layer has an even number of hidden units, at most {MAX_HIDDEN}")
    if hidden and (dimension % 2 or dimension > INT4.max_dimension):
        raise ValueError(f"a layer has an even number of dimensions, at most {INT4.max_dimension}")
    return 4 * (2 * hidden + dimension) + dimension * hidden if hidden else 0


class QueryLayer:
    """The layer in ``data``. Immutable; safe between threads."""

    def __init__(self, data: bytes, dimension: int, hidden: int) -> None:
        """Raises ValueError if ``data`` has another size than `size_of`, or numbers that are not finite."""
        if len(data) != size_of(dimension, hidden) or not hidden:
            raise ValueError("the layer for queries has another size than it says")
        numbers = struct.unpack_from(f"<{2 * hidden + dimension}f", data)
        if not hypot(*numbers) < float("inf"):
            raise ValueError("the layer for queries has numbers that are not finite")
        self._bias = numbers[hidden : 2 * hidden]
        start = 4 * len(numbers)
        middle = start + dimension * hidden // 2
        self._into = PackedMatrix.of_columns(
            _columns(data[start:middle], hidden // 2), numbers[:hidden], INT4
        )
        self._out = PackedMatrix.of_columns(
            _columns(data[middle:], dimension // 2), numbers[2 * hidden :], INT4
        )

    def __call__(self, total: Sequence[float]) -> list[float]:
        """The query's vector, not normalized. total: the sum of its rows."""
        length = hypot(*total)
        if not length:
            return list(total)
        products, scale = self._into.scaled_cosines(quantize_int4(total))
        sums = [product * scale + bias for product, bias in zip(products, self._bias, strict=True)]
        inner = [each if each > 0.0 else 0.0 for each in sums]
        outputs, inverse_norm = self._out.scaled_cosines(quantize_int4(inner))
        factor = max(inner) / INT4.levels if inverse_norm else 0.0  # else no unit is active
        return [each / length + output * factor for each, output in zip(total, outputs, strict=True)]


def _columns(data: bytes, size: int) -> Iterator[bytes]:
    """The numbers of each column, a byte each. size: of a packed column, in bytes."""
    for start in range(0, len(data), size):
        packed = data[start : start + size]
        numbers = bytearray(2 * size)
        numbers[::2], numbers[1::2] = packed.translate(LOW), packed.translate(HIGH)
        yield bytes(numbers)
