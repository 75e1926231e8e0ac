"""Paths select what the server wrote, or say what is there instead."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.results import paths
from mcpzip.results.paths import PathError, Slice, Step, parse_path, select, written

KEYS = st.text(min_size=1, max_size=6) | st.sampled_from(["a", "b.c", "0", "items", "ü", " x", '"', "']"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
BOUNDS = st.none() | st.integers(-5, 5)
STEPS = st.lists(st.one_of(KEYS, st.integers(-5, 5), st.builds(Slice, BOUNDS, BOUNDS)), max_size=4).map(tuple)


class Nothing(Exception):
    """The path leads nowhere."""


def one(value: Any, step: Step) -> list[Any]:
    if isinstance(step, Slice):
        if not isinstance(value, list):
            raise Nothing
        return value[step.start : step.stop]
    if isinstance(value, dict) and str(step) in value:
        return [value[str(step)]]
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        return [value[step]]
    raise Nothing


def expected(value: Any, steps: tuple[Step, ...]) -> Any:
    """The same, of Python values."""
    values, is_many = [value], False
    for step in steps:
        found: list[Any] = []
        for each in values:
            try:
                found += one(each, step)
            except Nothing:
                if not is_many:
                    raise
        if is_many and values and not found and not isinstance(step, Slice):
            raise Nothing
        values, is_many = found, is_many or isinstance(step, Slice)
    return values if is_many else values[0]


@given(VALUES, STEPS)
def test_a_path_selects_what_the_same_steps_select_in_python(value: Any, steps: tuple[Step, ...]) -> None:
    raw = json.dumps(value).encode()
    try:
        wanted = expected(value, steps)
    except Nothing:
        with pytest.raises(PathError):
            select(raw, steps)
    else:
        assert json.loads(select(raw, steps).value) == wanted


@given(STEPS)
def test_steps_that_are_written_are_read_again(steps: tuple[Step, ...]) -> None:
    assert parse_path(written(steps)) == steps


@given(st.text())
def test_any_text_is_a_path_or_an_error(text: str) -> None:
    try:
        steps = parse_path(text)
    except PathError:
        return
    assert parse_path(written(steps)) == steps


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", ()),
        ("$", ()),
        (".", ()),
        ("a", ("a",)),
        ("$.a.b", ("a", "b")),
        ("a[0].b", ("a", 0, "b")),
        ("a.[0]", ("a", 0)),
        ("[-1]", (-1,)),
        ("a[]", ("a", Slice())),
        ("[:]", (Slice(),)),
        ("[2:]", (Slice(2),)),
        ("[:5].x", (Slice(None, 5), "x")),
        ('["a.b"][\'c"d\']', ("a.b", 'c"d')),
        ("/a/0/b~1c~0d", ("a", 0, "b/c~d")),
        ("content-type", ("content-type",)),
    ],
)
def test_the_ways_to_write_a_path(text: str, steps: tuple[Step, ...]) -> None:
    assert parse_path(text) == steps


@pytest.mark.parametrize("text", ["a..b", "[1:2:3]", "[a]", "[5 6]", "a]", "x" * 1_001])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(PathError):
        parse_path(text)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("titel", "The result has no 'titel'. It has: 'items', 'n'."),
        ("items[9]", "items has no element 9: it has 2."),
        ("items.a", "items is an array: write [].a for the 'a' of each element, or [0].a."),
        ("n.a", "n is of type number, and has no 'a'."),
        ("n[]", "n is of type number, not an array."),
        ("items[].zzz", "None of the 2 elements of items[] has zzz."),
        ("items[0].zzz", "items[0] has no 'zzz'. It has: 'a'."),
    ],
)
def test_an_error_says_what_is_there(path: str, message: str) -> None:
    with pytest.raises(PathError) as caught:
        select(b'{"items":[{"a":1},{"a":2,"b":3}],"n":5}', parse_path(path))
    assert str(caught.value) == message


def test_the_bytes_are_the_servers() -> None:
    raw = b'{"a": [ 1.0e5 , {"x" : 12345678901234567890.10, "y":"\\u00e9\\ud800"} ]}'
    assert select(raw, parse_path("a[0]")).value == b"1.0e5"
    assert select(raw, parse_path("a[1]")).value == b'{"x" : 12345678901234567890.10, "y":"\\u00e9\\ud800"}'
    assert select(raw, parse_path("a[1].x")).value == b"12345678901234567890.10"


def test_elements_that_lack_a_member_are_left_out_and_counted() -> None:
    found = select(b'[{"a":1},{"b":2},{"a":null}]', parse_path("[].a"))
    assert (found.value, found.missing) == (b"[1,null]", 1)


def test_a_path_selects_a_limited_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "SELECTED", 3)
    assert select(b"[1,2,3]", parse_path("[]")).value == b"[1,2,3]"
    with pytest.raises(PathError, match="more than 3 values"):
        select(b"[1,2,3,4]", parse_path("[]"))
    assert select(b"[1,2,3,4]", parse_path("[1:3]")).value == b"[2,3]"


@pytest.mark.parametrize("path", ["[-1]", "[5]", "[-2:]", "[][0]"])
def test_a_path_looks_at_a_limited_number_of_values(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An element was counted from the end of an array of 25 million in 100 s."""
    value = b"[[1],[2],[3],[4],[5],[6]]"
    assert select(value, parse_path(path))
    monkeypatch.setattr(paths, "LOOKED_AT", 5)
    with pytest.raises(PathError, match="past more than 5 values"):
        select(value, parse_path(path))
