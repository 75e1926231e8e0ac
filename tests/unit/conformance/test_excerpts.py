"""What is left of a large result: whether a part of it says that it is one."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_conformance.excerpts import differs, is_part, silently_cut

LOG = "".join(f"line {number} of many\n" for number in range(1_000))
ROWS = [{"n": number, "title": f"title {number}", "of": None} for number in range(100)]
JSON = msgspec.json.encode(ROWS).decode()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "original", "silent"),
    [
        (LOG, LOG, False),
        (f"A note.\n{LOG}", LOG, False),
        (LOG[:500], LOG, True),
        ("", LOG, True),
        (LOG[:500] + LOG[-500:], LOG, True),
        (LOG[-500:], LOG, True),
        (LOG[:500] + "\n", LOG, True),
        (LOG[:500] + "…", LOG, False),
        (LOG[:500] + "..." + LOG[-500:], LOG, False),
        (LOG[:500] + "\n[9,500 more characters]", LOG, False),
        (f"Kept as r1. It begins: {LOG[:500]}", LOG, False),
        (JSON[:500], JSON, True),
        (msgspec.json.encode(ROWS[:3]).decode(), JSON, True),
        (msgspec.json.encode([{"n": 0}]).decode(), JSON, True),
        (msgspec.json.format(JSON), JSON, False),
        (msgspec.json.encode([*ROWS[:3], "97 more"]).decode(), JSON, False),
    ],
)
def test_a_part_without_a_word_is_a_silent_cut(text: str, original: str, silent: bool) -> None:
    assert silently_cut(text, original) is silent


@given(VALUES)
def test_a_value_is_a_part_of_itself(value: object) -> None:
    assert is_part(value, value)


@given(st.lists(VALUES, max_size=6), st.sets(st.integers(0, 5)))
def test_a_list_without_some_elements_is_a_part(values: list[object], without: set[int]) -> None:
    assert is_part([value for index, value in enumerate(values) if index not in without], values)


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        ({"note": "too long"}, {"rows": []}),
        ([2, 1], [1, 2]),
        (1, True),
        ("b", "abc"),
        ({"a": 1}, [1]),
        (1, 2),
    ],
)
def test_what_was_not_there_is_no_part(value: object, whole: object) -> None:
    assert not is_part(value, whole)


@given(st.text(), st.text())
def test_a_difference_names_the_first_character_that_differs(one: str, other: str) -> None:
    told = differs("it", one, other)
    assert (told is None) == (one == other)
    if told is not None:
        where = int(told.partition("from character ")[2].partition(" ")[0].replace(",", ""))
        assert one[:where] == other[:where]
        assert one[where : where + 1] != other[where : where + 1]
        assert told.isprintable()


def test_a_difference_shows_spellings_and_lengths() -> None:
    told = differs("it", "abcé", "abc")
    assert told == r"it: 3 instead of 4 characters, from character 3 on '' instead of '\xe9'"
    assert differs("it", "ab", None) == "it: none, instead of 2 characters"
