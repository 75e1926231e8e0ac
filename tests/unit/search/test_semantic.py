"""Word vectors and the tools nearest to a query: as good as arithmetic without shortcuts."""

import struct
from collections.abc import Callable, Sequence
from math import sqrt
from operator import mul
from pathlib import Path
from random import Random

import pytest
from helpers.search_tools import DIMENSION, concepts, found, searcher, table_bytes, table_of, tool
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.search import Searcher
from mcpzip.search.fields import Fields
from mcpzip.search.packed_matrix import INT4
from mcpzip.search.semantic import local_table, vectors
from mcpzip.search.semantic.lanes import Sum, weighted
from mcpzip.search.semantic.table import Table
from mcpzip.search.semantic.tool_vectors import ServerVectors, ToolEmbedder, spaced
from mcpzip.search.semantic.vectors import Vectors, packed, quantize_int4, unpacked


def cosine(left: list[float], right: list[float]) -> float:
    return sum(map(mul, left, right)) / sqrt(sum(map(mul, left, left)) * sum(map(mul, right, right)) or 1.0)


def drawn(seed: int, dimension: int = 256) -> list[float]:
    random = Random(seed)
    return [random.gauss(0, 1) for _ in range(dimension)]


seeds = st.integers(0, 2**32)
small = st.lists(st.integers(-100, 100), min_size=DIMENSION, max_size=DIMENSION)


@given(st.lists(seeds, min_size=1, max_size=8), seeds)
def test_cosines_are_those_of_floats(tools: list[int], query: int) -> None:
    made = [drawn(seed) for seed in tools]
    # Half of the tools have something in common with the query, as real ones have.
    asked = drawn(query)
    made[::2] = [[a + b for a, b in zip(one, asked, strict=True)] for one in made[::2]]
    got = Vectors([packed(one) for one in made], 256).cosines(quantize_int4(asked), range(len(made)))
    assert got == pytest.approx({number: cosine(one, asked) for number, one in enumerate(made)}, abs=0.06)


def test_four_bits_cost_a_hundredth_of_a_cosine() -> None:
    made, asked = [drawn(seed) for seed in range(200)], drawn(1000)
    got = Vectors([packed(one) for one in made], 256).cosines(quantize_int4(asked), range(200))
    wrong = [abs(got[number] - cosine(one, asked)) for number, one in enumerate(made)]
    assert sum(wrong) / len(wrong) < 0.015


@given(st.lists(small, max_size=6), small)
def test_they_are_exactly_those_of_the_packed_numbers(made: list[list[int]], query: list[int]) -> None:
    def quantized(vector: list[int]) -> list[float]:
        return [float(number - INT4.zero_point) for number in unpacked(packed(vector))]

    got = Vectors([packed(one) for one in made], DIMENSION).cosines(quantize_int4(query), range(len(made)))
    assert got == pytest.approx(
        {number: cosine(quantized(one), quantized(query)) for number, one in enumerate(made)}, abs=1e-9
    )


@pytest.mark.parametrize("extreme", [[15.0] * 256, [-15.0] * 256, [15.0, -15.0] * 128])
def test_no_lane_overflows(extreme: list[float]) -> None:
    opposite = [-number for number in extreme]
    got = Vectors([packed(extreme), packed(opposite)] * 3, 256).cosines(quantize_int4(extreme), range(6))
    assert list(got.values()) == pytest.approx([1.0, -1.0] * 3)


@given(small)
def test_packing_keeps_the_direction(vector: list[int]) -> None:
    numbers = [number - INT4.zero_point for number in unpacked(packed(vector))]
    assert len(packed(vector)) == DIMENSION // 2
    assert all(abs(number) <= INT4.levels for number in numbers)
    highest = max(map(abs, vector))
    if highest:
        assert all(
            abs(n / INT4.levels - v / highest) <= 0.5 / INT4.levels + 1e-9
            for n, v in zip(numbers, vector, strict=True)
        )
    else:
        assert not any(numbers)


def test_what_has_no_direction_is_like_nothing() -> None:
    nothing = [0.0] * DIMENSION
    made = Vectors([packed(nothing), packed([1.0] * DIMENSION)], DIMENSION)
    assert list(made.cosines(quantize_int4([1.0] * DIMENSION), (0, 1)).values()) == pytest.approx([0.0, 1.0])
    assert made.cosines(quantize_int4(nothing), (0, 1)) == {0: 0.0, 1: 0.0}
    assert Vectors([], DIMENSION).cosines(quantize_int4(nothing), ()) == {}


@pytest.mark.parametrize("dimension", [15, 292, 1024])
def test_a_dimension_that_lanes_cannot_hold_is_refused(dimension: int) -> None:
    with pytest.raises(ValueError, match="even number of dimensions"):
        Vectors([], dimension)


@pytest.fixture
def clustered(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Vectors of forty themes, more than are compared one and all."""
    monkeypatch.setattr(vectors, "MAX_EXHAUSTIVE", 100)
    themes = [drawn(number, 32) for number in range(40)]
    return [
        packed([3 * a + b for a, b in zip(themes[number % 40], drawn(1000 + number, 32), strict=True)])
        for number in range(800)
    ]


def test_clusters_find_what_is_nearly_the_same(clustered: list[bytes]) -> None:
    made = Vectors(clustered, 32)
    for number in range(0, 800, 7):
        asked = [level - INT4.zero_point for level in unpacked(clustered[number])]
        got = made.cosines(quantize_int4(asked), range(800))
        assert len(got) < 400
        best = max(got.values())
        assert best == pytest.approx(1.0)
        assert clustered[max(got, key=got.__getitem__)] == clustered[number]


def test_clusters_give_true_cosines_whatever_the_order(
    clustered: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffled = list(enumerate(clustered))
    Random(1).shuffle(shuffled)
    one, other = Vectors(clustered, 32), Vectors([vector for _, vector in shuffled], 32)
    monkeypatch.setattr(vectors, "MAX_EXHAUSTIVE", 10_000)
    whole = Vectors(clustered, 32)
    for seed in range(20):
        asked = drawn(seed, 32)
        got = one.cosines(quantize_int4(asked), range(800))
        assert got == other.cosines(quantize_int4(asked), [number for number, _ in shuffled])
        every = whole.cosines(quantize_int4(asked), range(800))
        assert got.items() <= every.items()


def test_many_alike_are_one_cluster_and_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "MAX_EXHAUSTIVE", 3)
    same = Vectors([packed([1.0] * DIMENSION)] * 50, DIMENSION)
    assert list(same.cosines(quantize_int4([1.0] * DIMENSION), range(50)).values()) == pytest.approx(
        [1.0] * 50
    )


# The table.

ROWS = concepts("deploy release ship", "production live", "cat", "dog", "##s", "run", "time", "pair")
ROWS["run time"] = ROWS.pop("pair")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return table_of(tmp_path_factory.mktemp("table"), ROWS)


def direction(table: Table, text: str) -> list[int] | None:
    """What ``text`` means, in numbers of 4 bits."""
    vector = table.embed(text)
    return None if vector is None else [number // INT4.levels for number in vector][:8]


def test_a_text_is_the_sum_of_its_words_pieces_and_pairs(table: Table) -> None:
    assert direction(table, "cat") == [0, 0, 1, 0, 0, 0, 0, 0]
    assert direction(table, "Cat, dog & cat!") == [0, 0, 2, 1, 0, 0, 0, 0]
    assert direction(table, "cats") == [0, 0, 1, 0, 1, 0, 0, 0]
    assert direction(table, "run time") == [0, 0, 0, 0, 0, 1, 1, 1]
    assert direction(table, "time run") == [0, 0, 0, 0, 0, 1, 1, 0]
    assert direction(table, "cat zebra") == direction(table, "cat")
    assert direction(table, "càt") == direction(table, "cat")
    assert direction(table, "zebra, 天气!") is None
    assert direction(table, "") is None


def test_it_knows_which_words_have_a_row(table: Table) -> None:
    assert "cat" in table
    assert "cats" not in table
    assert "zebra" not in table


@given(st.text() | st.text("catsdog ", max_size=30))
def test_embedding_never_raises_and_forgets_nothing(table: Table, text: str) -> None:
    vector = table.embed(text)
    assert vector is None or len(vector) == DIMENSION
    assert table.embed(text) == vector == table.embed(text.upper().lower())


def test_a_text_of_any_length_fits_the_lanes(table: Table) -> None:
    vector = table.embed("cat " * 20_000)
    assert vector is not None
    assert vector[2] > 0
    assert not any(vector[:2] + vector[3:])
    assert table.embed("dogs" * 5_000) == table.embed("dogs" * 5_000)


Damage = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"PK\x03\x04" + data[4:],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:30],
        lambda data: data[:4],
        lambda data: data[:14] + b"\0" * 20 + data[34:],
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "words.bin"
    path.write_bytes(damage(table_bytes(ROWS)))
    with pytest.raises(ValueError, match=r"words\.bin"):
        Table(path)


def test_an_empty_file_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "words.bin"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"\w"):
        Table(path)


def test_a_table_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"words\.bin"):
        Table(tmp_path / "words.bin")


# Tools and queries by what they mean.


def test_a_tool_means_its_name_before_all(table: Table) -> None:
    describe = ToolEmbedder(table).vector
    vector = describe(Fields.of(tool("live", "deployRelease", "A dog. A cat and another cat.")))
    assert vector is not None
    numbers = [number - INT4.zero_point for number in unpacked(vector)]
    assert max(numbers) == numbers[0] > numbers[3] > 0
    assert numbers[1] > 0
    assert describe(Fields.of(tool("x", "y", "zebra 天气"))) is None
    assert spaced("getHTTPServer_2") == "get http server 2"


def rows_sum(*rows: Sequence[int]) -> Sum:
    """The sum of ``rows``, which have numbers of 4 bits."""
    numbers = [sum(column) + len(rows) * INT4.zero_point for column in zip(*rows, strict=True)]
    return Sum(int.from_bytes(struct.pack(f"<{len(numbers)}H", *numbers), "little"), len(rows))


def test_mixing_goes_by_direction() -> None:
    zeros = [0] * 4
    mixed = weighted(
        [
            (1.0, rows_sum([7, 0, 0, 0], [5, 0, 0, 0])),
            (0.5, rows_sum([0, -3, 0, 0])),
            (3.0, None),
            (1.0, rows_sum(zeros)),
        ],
        4,
    )
    assert mixed is not None
    assert [number - INT4.zero_point for number in unpacked(mixed)] == [7, -3, 0, 0]
    assert weighted([(1.0, rows_sum(zeros)), (1.0, None)], 4) is None
    assert weighted([], 4) is None


@given(
    st.lists(
        st.tuples(
            st.floats(0.05, 1.0),
            st.lists(
                st.lists(st.integers(-7, 7), min_size=DIMENSION, max_size=DIMENSION), min_size=1, max_size=9
            ),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_mixing_is_that_of_plain_numbers(parts: list[tuple[float, list[list[int]]]]) -> None:
    whole = [0.0] * DIMENSION
    for weight, rows in parts:
        vector = [sum(column) for column in zip(*rows, strict=True)]
        length = sum(number * number for number in vector) ** 0.5
        if length:
            whole = [one + weight / length * number for one, number in zip(whole, vector, strict=True)]
    mixed = weighted([(weight, rows_sum(*rows)) for weight, rows in parts], DIMENSION)
    assume(max(map(abs, whole)) > 1e-6)
    assert mixed is not None
    exact = [7 * number / max(map(abs, whole)) for number in whole]
    for number, level in zip(exact, unpacked(mixed), strict=True):
        assert abs(number - (level - INT4.zero_point)) <= 0.5 + 1e-6


def test_sums_of_first_words_are_those_of_shorter_texts(table: Table) -> None:
    words = ["cat", "dog", "run", "time", "zebra"]
    lengths = (0, 1, 3, 4, 5)
    assert table.sums(words, lengths) == [table.sums(words[:n], (n,))[0] for n in lengths]


def test_a_paraphrase_finds_what_no_word_of_it_stands_in(table: Table) -> None:
    made = searcher(tool("ops", "deploy", "To production"), tool("pets", "feed", "A dog"), table=table)
    results = made.search("ship it live", 5)
    assert results.hits[0].entry.name == "ops__deploy"
    assert (results.hits[0].tier, results.hits[0].matched) == ("semantic", ())
    assert results.hits[0].similarity is not None
    assert results.hits[0].similarity > 0.5
    assert results.tiers == ("keyword", "semantic")


def test_names_of_servers_are_as_near_to_a_query_as_their_vectors(table: Table) -> None:
    embedder = ToolEmbedder(table)
    servers = ServerVectors(lambda: ["cat-dog", "timer", "zebra", "time"], embedder)
    query = table.query_vector(["dog", "time"])
    assert query is not None
    near = servers.similarities(quantize_int4(query))
    assert near.keys() == {"cat-dog", "time"}  # the others have no word of the table
    for server, similarity in near.items():
        vector = embedder.server_vector(server)
        assert vector is not None
        assert similarity == vectors.cosine(vector, packed(query))
    again = ServerVectors(lambda: ["time", "cat-dog"], embedder)  # after a change of tools
    assert again.similarities(quantize_int4(query)) == near
    assert embedder.server_vector.cache_info().misses == 4
    assert ServerVectors(list, embedder).similarities(b"") == {}


def test_of_equal_tools_that_of_the_server_the_query_is_about_comes_first(table: Table) -> None:
    made = searcher(tool("dogs-dog", "show", "it"), tool("time", "show", "that"), table=table)
    assert found(made, "show cat") == ["dogs-dog__show", "time__show"]
    assert found(made, "show the time") == ["time__show", "dogs-dog__show"]


def test_a_word_with_a_meaning_is_not_taken_for_a_misspelling_of_another_meaning(table: Table) -> None:
    made = searcher(tool("a", "dog"), tool("b", "dogs_home"), tool("c", "shop"), table=table)
    results = made.search("ship", 3)
    assert results.hits[0].words < 1


def test_without_vectors_words_alone_count(table: Table) -> None:
    made = searcher(tool("x", "zebra", "Stripes"), table=table)
    assert found(made, "zebra cat") == ["x__zebra"]
    assert Searcher(table).search("cat", 5).hits == ()


@pytest.fixture(scope="module")
def shipped() -> Table:
    return local_table()


def test_the_table_that_ships_is_read_once_and_small(shipped: Table) -> None:
    assert local_table() is shipped
    assert shipped.dimension % 2 == 0
    assert vectors.Vectors([], shipped.dimension).cosines(quantize_int4([0.0] * shipped.dimension), ()) == {}
    for word in ("file", "message", "delete", "calendar", "the"):
        assert word in shipped


@pytest.mark.parametrize(
    ("near", "asked", "far"),
    [
        ("email", "mail", "database"),
        ("delete a file", "remove a document", "play music"),
        ("list upcoming events", "what is on my calendar", "compress an image"),
        ("deploy an application", "ship the new version to production", "translate a sentence"),
        ("weather forecast", "will it rain tomorrow", "create a pull request"),
    ],
)
def test_it_knows_what_is_near(shipped: Table, near: str, asked: str, far: str) -> None:
    said, one, other = (shipped.embed(text) for text in (asked, near, far))
    assert said is not None
    assert one is not None
    assert other is not None
    assert (
        cosine([*map(float, said)], [*map(float, one)])
        > cosine([*map(float, said)], [*map(float, other)]) + 0.1
    )
