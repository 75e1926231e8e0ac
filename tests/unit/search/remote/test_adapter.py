"""The adapter of the transformer's vectors."""

import math
import struct
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search.remote.adapter import Adapter

NUMBERS = st.integers(-64, 64).map(lambda number: number / 16)  # as float16 has them


def write(file: Path, numbers: list[float]) -> Path:
    file.write_bytes(struct.pack(f"<{len(numbers)}e", *numbers))
    return file


@st.composite
def adapters(draw: st.DrawFn) -> tuple[int, int, list[float], list[list[float]]]:
    """A dimension, a number of hidden ones, the numbers of a file, and vectors."""
    dimension, hidden = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    count = dimension**2 + hidden * (2 * dimension + 1)
    numbers = draw(st.lists(NUMBERS, min_size=count, max_size=count))
    vector = st.lists(NUMBERS, min_size=dimension, max_size=dimension)
    return dimension, hidden, numbers, draw(st.lists(vector, min_size=1, max_size=4))


def unit(vector: list[float]) -> list[float]:
    length = math.hypot(*vector)
    return [each / length for each in vector] if length > 1e-9 else [0.0] * len(vector)


def mapped(dimension: int, hidden: int, numbers: list[float], vector: list[float]) -> list[float]:
    """The formula, number by number."""
    d, h, x = dimension, hidden, unit(vector)
    direct, rest = numbers[: d * d], numbers[d * d :]
    into, bias, out = rest[: d * h], rest[d * h : d * h + h], rest[d * h + h :]
    inner = [max(0.0, sum(x[i] * into[i * h + j] for i in range(d)) + bias[j]) for j in range(h)]
    return unit(
        [
            sum(x[i] * direct[i * d + k] for i in range(d)) + sum(inner[j] * out[j * d + k] for j in range(h))
            for k in range(d)
        ]
    )


@given(drawn=adapters())
def test_it_is_what_its_file_says(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[int, int, list[float], list[list[float]]]
) -> None:
    dimension, hidden, numbers, vectors = drawn
    file = write(tmp_path_factory.mktemp("adapter") / "a.bin", numbers)
    made = Adapter(dimension, file)(numpy.array(vectors, numpy.float32)).tolist()
    for vector, result in zip(vectors, made, strict=True):
        expected = mapped(dimension, hidden, numbers, vector)
        if not any(vector):
            assert result == [0.0] * dimension
        elif math.hypot(*expected):
            assert result == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("numbers", [[], [1.0] * 3, [1.0] * 8, [math.nan] * 4, [math.inf, 0, 0, 1]])
def test_another_file_is_refused(tmp_path: Path, numbers: list[float]) -> None:
    with pytest.raises(ValueError, match=r"a\.bin is no adapter for 2 dimensions"):
        Adapter(2, write(tmp_path / "a.bin", numbers))


def test_the_one_that_ships_maps_near_vectors_to_near_ones() -> None:
    adapt = Adapter(384)
    generator = numpy.random.default_rng(1)
    vectors = generator.normal(size=(50, 384)).astype(numpy.float32)
    made = adapt(vectors)
    assert made.shape == vectors.shape
    assert numpy.linalg.norm(made, axis=1) == pytest.approx(numpy.ones(50), abs=1e-4)
    moved = adapt(vectors + 0.01 * generator.normal(size=vectors.shape).astype(numpy.float32))
    assert ((made * moved).sum(axis=1) > 0.99).all()
