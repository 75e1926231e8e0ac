"""The layer that queries pass: as good as arithmetic without shortcuts, and refused where it is damaged."""

import struct
from math import hypot
from pathlib import Path
from random import Random

import pytest
from helpers.search_tools import DIMENSION, concepts, layer_bytes, searcher, table_bytes, table_of, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search.packed_matrix import INT4
from mcpzip.search.semantic import local_table
from mcpzip.search.semantic.query_layer import MAX_HIDDEN, QueryLayer, size_of
from mcpzip.search.semantic.table import Table
from mcpzip.search.semantic.vectors import quantize_int4

HIDDEN = 6
totals = st.lists(st.integers(-100, 100), min_size=DIMENSION, max_size=DIMENSION)


def steps(vector: list[float]) -> list[int]:
    """What the product sees of a vector: −7…7."""
    return [number - INT4.zero_point for number in quantize_int4(vector)]


def drawn(seed: int) -> tuple[list[list[int]], list[float], list[list[int]], list[float], list[float]]:
    """Weights into the hidden units, b, weights out of them, and both scales."""
    random = Random(seed)
    into = [[random.randint(-7, 7) for _ in range(HIDDEN)] for _ in range(DIMENSION)]
    out = [[random.randint(-7, 7) for _ in range(DIMENSION)] for _ in range(HIDDEN)]
    bias = [random.choice((-1.0, 0.0, 0.25, 1.0)) for _ in range(HIDDEN)]
    return into, bias, out, [0.125] * HIDDEN, [0.0625] * DIMENSION


@given(totals, st.integers(0, 2**32))
def test_it_is_the_sum_and_what_active_units_add(total: list[int], seed: int) -> None:
    into, bias, out, scales, out_scales = drawn(seed)
    layer = QueryLayer(layer_bytes(into, bias, out, scales, out_scales), DIMENSION, HIDDEN)
    found = layer(total)
    if not any(total):
        assert found == total
        return
    seen = steps(list(map(float, total)))
    products = [sum(seen[d] * into[d][unit] for d in range(DIMENSION)) for unit in range(HIDDEN)]
    inner = [max(scales[u] * products[u] / hypot(*seen) + bias[u], 0.0) for u in range(HIDDEN)]
    active = [step * max(inner) / 7 for step in steps(inner)] if any(inner) else inner
    expected = [
        total[d] / hypot(*total) + out_scales[d] * sum(active[unit] * out[unit][d] for unit in range(HIDDEN))
        for d in range(DIMENSION)
    ]
    assert found == pytest.approx(expected, abs=1e-5)  # scales are stored in 32 bits


def test_where_no_unit_is_active_the_sum_stays_as_it_is() -> None:
    into, _, out, scales, out_scales = drawn(1)
    layer = QueryLayer(layer_bytes(into, [-100.0] * HIDDEN, out, scales, out_scales), DIMENSION, HIDDEN)
    assert layer([3.0, 4.0] + [0.0] * (DIMENSION - 2)) == pytest.approx([0.6, 0.8] + [0.0] * (DIMENSION - 2))


def test_queries_pass_it_and_tools_do_not(tmp_path: Path) -> None:
    """Here "cat" in a query means "dog" as well."""
    into = [[7 * (dimension == 0), 0] for dimension in range(DIMENSION)]
    out = [[7 * (dimension == 1) for dimension in range(DIMENSION)], [0] * DIMENSION]
    layer = layer_bytes(into, [0.0, 0.0], out, [1 / 7, 1 / 7], [4 / 7] * DIMENSION)
    rows = concepts("cat", "dog", "time")
    path = tmp_path / "words.bin"
    path.write_bytes(table_bytes(rows, hidden=2, layer=layer))
    table = Table(path)
    assert table.embed_words(["cat"]) == [7, *[0] * (DIMENSION - 1)]
    assert table.query_vector(["cat"]) == pytest.approx([1.0, 4.0, *[0.0] * (DIMENSION - 2)], abs=1e-4)
    assert table.query_vector(["time"]) == pytest.approx([0.0, 0.0, 1.0, *[0.0] * (DIMENSION - 3)])
    assert table.query_vector(["zebra"]) is None
    pets = searcher(tool("a", "walk", "dog"), tool("b", "tell", "time"), table=table)
    assert [hit.entry.name for hit in pets.search("cat", 1).hits] == ["a__walk"]


def test_a_table_without_a_layer_has_the_sums_as_vectors(tmp_path: Path) -> None:
    table = table_of(tmp_path, concepts("cat", "dog"))
    assert table.query_vector(["cat", "dog"]) == table.embed_words(["cat", "dog"])


def test_the_table_that_ships_has_one() -> None:
    table, words = local_table(), ["ping", "my", "coworkers"]
    total, vector = table.embed_words(words), table.query_vector(words)
    assert total is not None
    assert vector is not None
    change = [one - other / hypot(*total) for one, other in zip(vector, total, strict=True)]
    assert 0.1 < hypot(*change) < 10


@pytest.mark.parametrize("hidden", [3, MAX_HIDDEN + 2])
def test_a_number_of_units_that_no_layer_has_is_refused(hidden: int) -> None:
    with pytest.raises(ValueError, match="even number of hidden units, at most 290"):
        size_of(DIMENSION, hidden)


@pytest.mark.parametrize("dimension", [DIMENSION + 1, INT4.max_dimension + 1])
def test_a_dimension_that_no_layer_has_is_refused(dimension: int) -> None:
    with pytest.raises(ValueError, match="even number of dimensions, at most 291"):
        size_of(dimension, HIDDEN)
    assert size_of(dimension, 0) == 0


def test_damaged_ones_are_refused(tmp_path: Path) -> None:
    into, bias, out, scales, out_scales = drawn(2)
    whole = layer_bytes(into, bias, out, scales, out_scales)
    assert len(whole) == size_of(DIMENSION, HIDDEN)
    for data in (whole[:-1], whole + b"\0", b""):
        with pytest.raises(ValueError, match="another size"):
            QueryLayer(data, DIMENSION, HIDDEN)
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not finite"):
            QueryLayer(struct.pack("<f", number) + whole[4:], DIMENSION, HIDDEN)
    path = tmp_path / "words.bin"
    for hidden, layer in ((HIDDEN, struct.pack("<f", float("nan")) + whole[4:]), (3, b"")):
        path.write_bytes(table_bytes(concepts("cat"), hidden=hidden, layer=layer))
        with pytest.raises(ValueError, match=r"words\.bin is damaged"):
            Table(path)
