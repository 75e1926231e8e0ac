"""JSON that has been through the SDK is text again."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.transport.sdk import encode_json


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 1.0}, '{"b":1,"a":1.0}'),
        ([10**30, -0.0, 1e23, 5e-324], "[1000000000000000000000000000000,-0.0,1e+23,5e-324]"),
        ([math.inf, {"a": -math.inf}], '[1e999,{"a":-1e999}]'),
        (math.nan, "null"),
        (["Infinity", '"NaN', math.inf, "\\"], '["Infinity","\\"NaN",1e999,"\\\\"]'),
        ({"Infinity": math.nan}, '{"Infinity":null}'),
        ("\ud800é😀", '"\\ud800é😀"'),
        ([math.inf, "\udfff\\"], '[1e999,"\\udfff\\\\"]'),
    ],
)
def test_a_value_is_spelt_as_json(value: object, text: str) -> None:
    assert encode_json(value) == text.encode()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
)


@given(anything)
def test_what_is_read_back_is_the_same(value: object) -> None:
    text = encode_json(value).decode()
    assert repr(json.loads(text, parse_constant=pytest.fail)) == repr(json.loads(json.dumps(value)))
