"""What a table of texts in a file finds is what a dictionary of the same texts does."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search import text_table
from mcpzip.search.text_table import NumberByText, NumbersByText, TextTable, ends_of, table_of

encodable = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SAME_CRC = ("plumless", "buckeroo")  # two words with the same CRC-32


@given(st.dictionaries(encodable, st.integers(0, 2**32 - 1), max_size=30), st.text(max_size=12))
def test_it_is_the_dictionary_that_it_was_made_of(known: dict[str, int], asked: str) -> None:
    made = NumberByText(TextTable(memoryview(table_of(known))), array("I", known.values()))
    assert made.copy() == dict(made) == known
    assert list(made) == list(known)
    assert len(made) == len(known)
    for text in (*known, asked):
        assert made.get(text) == known.get(text)
        assert (text in made) == (text in known)
    assert made.get(asked, 7) == known.get(asked, 7)


@given(st.dictionaries(encodable, st.lists(st.integers(0, 99), min_size=1, max_size=4).map(tuple)))
def test_nor_do_several_numbers_differ(known: dict[str, tuple[int, ...]]) -> None:
    ends = array("I", ends_of(map(len, known.values())))
    numbers = array("I", [number for those in known.values() for number in those])
    made = NumbersByText(TextTable(memoryview(table_of(known))), ends, numbers)
    assert made.copy() == known
    assert all(made[text] == known[text] for text in known)


def test_texts_with_the_same_hash_are_told_apart() -> None:
    made = TextTable(memoryview(table_of(SAME_CRC[:1])))
    assert (made.find(SAME_CRC[0]), made.find(SAME_CRC[1])) == (0, -1)
    made = TextTable(memoryview(table_of(SAME_CRC)))
    assert list(map(made.find, SAME_CRC)) == [0, 1]


def test_a_text_that_no_file_can_have_is_not_found() -> None:
    made = NumberByText(TextTable(memoryview(table_of(["?"]))), [1])
    assert made.get("\ud800") is None
    with pytest.raises(KeyError):
        made["\ud800"]


def test_the_cache_of_what_was_asked_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_table, "_CACHED", 3)
    made = NumberByText(TextTable(memoryview(table_of(["one", "two"]))), [1, 2])
    for number in range(20):
        assert made.get(f"unknown {number}") is None
        assert len(made._found) <= 3
    assert (made["one"], made["two"]) == (1, 2)


WHOLE = table_of(["one", "two", "three"])


@pytest.mark.parametrize(
    "data", [b"", WHOLE[:3], WHOLE[:-1], WHOLE + b"x", b"\xff" * 4, b"\xff" * 40, WHOLE[:20]]
)
def test_data_of_another_length_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="shorter"):
        TextTable(memoryview(data))


@pytest.mark.parametrize(("ends", "numbers"), [([1], [1]), ([1, 2], [1]), ([1, 2], [1, 2, 3])])
def test_other_numbers_than_of_its_texts_are_refused(ends: list[int], numbers: list[int]) -> None:
    table = TextTable(memoryview(table_of(["one", "two"])))
    with pytest.raises(ValueError, match="another number"):
        NumbersByText(table, ends, numbers)
    with pytest.raises(ValueError, match="another number"):
        NumberByText(table, [1])
