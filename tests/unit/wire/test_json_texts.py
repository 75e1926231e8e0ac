"""The generated JSON texts of the other tests are legal."""

import json

from helpers.json_texts import objects, patient, spread_objects, values
from hypothesis import given


@patient
@given(values | objects | spread_objects)
def test_texts_are_json(text: bytes) -> None:
    json.loads(text, parse_int=str, parse_float=str)
