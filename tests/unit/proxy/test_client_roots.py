"""When the roots of two clients are equal."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model import limits
from mcpzip.proxy.client_roots import read_roots

TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)
RESULTS = st.builds(
    lambda roots, more: {**more, "roots": roots},
    st.lists(st.dictionaries(st.sampled_from(["uri", "name", "_meta"]), VALUES), max_size=3),
    st.dictionaries(st.sampled_from(["_meta", "x"]), VALUES),
)


def written(result: Any, **style: Any) -> bytes:
    return json.dumps(result, **style).encode()


@given(RESULTS, RESULTS)
def test_they_are_if_all_that_is_said_of_them_is(one: Any, other: Any) -> None:
    first, second = read_roots(written(one)), read_roots(written(other))
    assert first is not None
    assert second is not None
    assert (first.key == second.key) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


@given(RESULTS)
def test_spacing_and_the_order_of_keys_mean_nothing(result: Any) -> None:
    plain, spaced = (read_roots(written(result, **style)) for style in ({}, {"indent": 2, "sort_keys": True}))
    assert plain is not None
    assert spaced is not None
    assert plain.key == spaced.key
    assert spaced.result == written(result, indent=2, sort_keys=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}', b'{"roots":[{"uri":"file:///b"},{"uri":"file:///a"}]}'),
        (b'{"roots":[{"uri":"file:///a"}]}', b'{"roots":[{"uri":"file:///a","name":"a"}]}'),
        (b'{"roots":[{"uri":"file:///a"}]}', b'{"roots":[{"uri":"file:///A"}]}'),
        (b'{"roots":[]}', b'{"roots":[],"_meta":{}}'),
    ],
)  # fmt: skip
def test_these_differ(one: bytes, other: bytes) -> None:
    first, second = read_roots(one), read_roots(other)
    assert first is not None
    assert second is not None
    assert first.key != second.key


@pytest.mark.parametrize(
    "result",
    [
        b"[]",
        b"{}",
        b'{"roots":{}}',
        b'{"roots":["file:///a"]}',
        b'{"roots":[{"uri":"file:///a","uri":"file:///b"}]}',
        b'{"roots":[],"roots":[{"uri":"file:///b"}]}',
        b'{"roots":[],"x":1.0}',
        b'{"roots":[],"x":NaN}',
        b'{"roots":[',
        b"\xff",
        b'{"roots":[{"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}]}",
        b'{"roots":[],"x":' + b"9" * 5_000 + b"}",
        b'{"roots":[{"uri":"%b"}]}' % (b"a" * limits.ROOTS),
    ],
)
def test_what_can_be_misread_is_equal_to_nothing(result: bytes) -> None:
    assert read_roots(result) is None
