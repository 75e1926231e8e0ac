"""Where two JSON values differ."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.drift.differences import Difference, differences, fits_mask, ignored_by, shape_differences
from msgspec import UNSET

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
ALL = ignored_by([])


def found(before: object, after: object, *ignored: str, shape: bool = False) -> list[tuple[str, str]]:
    compare = shape_differences if shape else differences
    return [(".".join(each.path), each.kind) for each in compare(before, after, ignored_by(ignored))]


@given(JSON)
def test_a_value_does_not_differ_from_itself(value: object) -> None:
    assert list(differences(value, value, ALL)) == []
    assert list(shape_differences(value, value, ALL)) == []


@given(JSON, JSON)
def test_values_that_differ_have_a_difference(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (list(differences(one, other, ALL)) == []) == same


@given(JSON, JSON)
def test_as_json_in_a_text_they_differ_in_the_same_places(one: object, other: object) -> None:
    texts = {"text": json.dumps([one])}, {"text": json.dumps([other])}
    assert list(differences(*texts, ALL)) == list(differences({"text": [one]}, {"text": [other]}, ALL))


@given(JSON, JSON)
def test_what_is_ignored_does_not_differ(one: object, other: object) -> None:
    assert found({"a": [{"b": one}]}, {"a": [{"b": other}]}, "a.*.b") == []


def test_each_kind_of_difference() -> None:
    before = {"gone": 1, "type": 1, "value": "a", "list": [1, 2], "bool": 1}
    after = {"new": 1, "type": "1", "value": "b", "list": [1], "bool": True}
    assert found(before, after) == [
        ("gone", "removed"),
        ("type", "type"),
        ("value", "value"),
        ("list.1", "removed"),
        ("bool", "type"),
        ("new", "added"),
    ]
    assert list(differences(before, after, ignored_by(["gone", "type", "value", "list", "bool"]))) == [
        Difference(("new",), "added", UNSET, 1)
    ]


@pytest.mark.parametrize(
    ("recorded", "present", "fits"),
    [
        ("[masked 1]", "anything", True),
        ("[masked 1]", 7, True),
        ("[masked 1]", UNSET, False),
        ("key [masked 1], [masked 2].", "key a, b.", True),
        ("key [masked 1], [masked 2].", "key a, b", False),
        ("key [masked 1]", "other a", False),
        ("[masked 1]aa[masked 2]aa", "xaa", False),
        ("[masked 1]aa[masked 2]aa", "xaayaa", True),
        ("[masked x]", "anything", False),
        ("key [masked 1]", 7, False),
        ("plain", "plain", False),
    ],
)
def test_masks_stand_for_any_text(recorded: str, present: object, fits: bool) -> None:
    assert fits_mask(recorded, present) is fits


def test_by_shape_only_types_and_keys_count() -> None:
    before = {"rows": [{"id": 1, "note": "x"}, {"id": 2}], "next": None, "empty": []}
    assert found(before, {"rows": [{"id": 9}], "next": "p2", "empty": [1]}, shape=True) == []
    assert found(before, {"rows": [{"note": "x"}], "next": 1, "empty": []}, shape=True) == [
        ("rows.*.id", "removed")
    ]
    assert found(before, {"rows": [{"id": "1", "more": 1}], "next": 1, "empty": []}, shape=True) == [
        ("rows.*.more", "added"),
        ("rows.*.id", "type"),
    ]
    assert found({"a": 1}, {"a": None}, shape=True) == [("a", "type")]
    assert found({"a": "[masked 1]"}, {"a": 1}, shape=True) == []
    assert found({"a": {"b": 1}, "c": 1}, {"a": {}, "c": 1}, "a.b", shape=True) == []
    assert found('{"a":1}', '{"a":2}', shape=True) == []
    assert found('{"a":1}', '{"a":"2"}', shape=True) == [("a", "type")]


def test_what_is_nested_very_deeply_is_compared_as_a_whole() -> None:
    def deep(leaf: str) -> object:
        value: object = leaf
        for _ in range(600):
            value = [value]
        return value

    assert list(differences(deep("a"), deep("a"), ALL)) == []
    (only,) = differences(deep("a"), deep("b"), ALL)
    assert 150 < len(only.path) < 300
    assert list(shape_differences(deep("a"), deep("b"), ALL)) == []
