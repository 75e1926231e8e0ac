"""A map of the transformer's vectors, in which requests lie near the tools that they are for (an embedding
adapter).

The file holds numbers of float16, little-endian: A (d, d), U (d, h), b (h) and W (h, d). A vector x of length
1 becomes the unit vector of ``x A + relu(x U + b) W``. `tools/semantic/transformer.py` makes it, and says
from what.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy

    Array = numpy.typing.NDArray[numpy.float32]

FILE = Path(__file__).with_name("minilm_adapter.bin")
VERSION = 1
"""Of the file: vectors of two versions can't be compared."""


class Adapter:
    """The map in a file. dimension: of the vectors."""

    def __init__(self, dimension: int, file: Path = FILE) -> None:
        """Raises OSError, and ValueError if the file is not one for this dimension."""
        import numpy  # comes with the extra

        numbers = numpy.fromfile(file, "<f2").astype(numpy.float32)
        hidden, rest = divmod(numbers.size - dimension**2, 2 * dimension + 1)
        if rest or hidden < 0 or not numpy.isfinite(numbers).all():
            raise ValueError(f"{file.name} is no adapter for {dimension} dimensions")
        sizes = (dimension**2, dimension * hidden, hidden)
        direct, into, self._bias, out = numpy.split(numbers, numpy.cumsum(sizes))
        self._direct = direct.reshape(dimension, dimension)
        self._into, self._out = into.reshape(dimension, hidden), out.reshape(hidden, dimension)

    def __call__(self, vectors: "Array") -> "Array":
        """(n, d): the unit vectors of what ``vectors`` become. One that is zero stays so."""
        import numpy

        unit = _unit(vectors)
        inner = numpy.maximum(unit @ self._into + self._bias, 0)
        mapped = _unit(unit @ self._direct + inner @ self._out)
        return numpy.where(unit.any(axis=1, keepdims=True), mapped, 0).astype(numpy.float32)


def _unit(vectors: "Array") -> "Array":
    import numpy

    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Array = vectors / numpy.maximum(lengths, 1e-12)
    return unit
