"""`mcpzip call NAME …`: the arguments meant by a command line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.cli.call import read_arguments
from mcpzip.model.errors import InvalidArgumentsError

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "tags": {"type": "array"},
        "filter": {"type": "object"},
        "either": {"type": ["integer", "string"]},
        "maybe": {"type": ["integer", "null"]},
        "any_of": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "one_of": {"oneOf": [{"type": "array"}, {"type": "string"}]},
        "untyped": {},
        "odd": True,
    },
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=hello", '"hello"'),
        ("text=", '""'),
        ("text=5", '"5"'),
        ("text=a=b=c", '"a=b=c"'),
        ("text= spaced ", '" spaced "'),
        ('text={"a":1}', r'"{\"a\":1}"'),
        ("count=5", "5"),
        ("count=-0", "-0"),
        ("count=12345678901234567890123", "12345678901234567890123"),
        ("ratio=1.50", "1.50"),
        ("ratio=1e400", "1e400"),
        ("on=true", "true"),
        ('tags=["a", "b"]', '["a", "b"]'),
        ('filter={"a": 1.0}', '{"a": 1.0}'),
        ("either=5", '"5"'),
        ("maybe=null", "null"),
        ("any_of=7", "7"),
        ("one_of=[1]", '"[1]"'),
        ("untyped=5", '"5"'),
        ("odd=5", '"5"'),
        ("unknown=5", '"5"'),
    ],
)
def test_a_value_is_read_by_the_tools_schema(pair: str, value: str) -> None:
    key = pair.partition("=")[0]
    assert read_arguments((pair,), SCHEMA).decode() == f'{{"{key}":{value}}}'


def test_several_pairs_keep_their_order_and_the_last_of_a_key_counts() -> None:
    assert read_arguments(("text=a", "count=1", "text=b"), SCHEMA) == b'{"text":"b","count":1}'


def test_nothing_is_an_empty_object() -> None:
    assert read_arguments((), SCHEMA) == b"{}"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("{}", "{}"),
        (' {"a": 1.0, "b": 1e400} ', '{"a":1.0,"b":1e400}'),
        ('{"b":1,"a":12345678901234567890}', '{"b":1,"a":12345678901234567890}'),
        ('{"a":"\\ud800"}', '{"a":"\\ud800"}'),
        ('{"text":\n{"x" : 1}}', '{"text":{"x" : 1}}'),
    ],
)
def test_an_object_goes_as_it_was_written(given: str, sent: str) -> None:
    """Numbers were read and written again: 1e400 went as Infinity."""
    assert read_arguments((given,), SCHEMA).decode() == sent


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("{",), "quote them for your shell"),
        (('{"a":NaN}',), "not a JSON object"),
        (('{"a":1} {}',), "not a JSON object"),
        (("hello",), "neither key=value nor a JSON object"),
        (("=5",), "neither key=value"),
        (("[1]",), "neither key=value"),
        (("text=a", "{}"), "neither key=value"),
        (("count=many",), "count='many' is not integer, which the tool asks for"),
        (("count=",), "is not integer"),
        (("ratio=NaN",), "is not number"),
        (("ratio=Infinity",), "is not number"),
        (("filter={",), "is not object"),
        (("count=\udcff",), "is not integer"),
        (('{"a":"\udcff"}',), "not a JSON object"),
    ],
)
def test_what_fits_nothing_is_told_in_a_sentence(given: tuple[str, ...], said: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=said):
        read_arguments(given, SCHEMA)


@given(st.text(alphabet=st.characters(exclude_characters="\0")))
def test_any_text_arrives_as_it_was_typed(text: str) -> None:
    """Bytes that are no UTF-8, as a shell may pass them, ended in a traceback."""
    assert json.loads(read_arguments((f"text={text}",), SCHEMA)) == {"text": text}


@given(st.lists(st.text(max_size=10), max_size=3))
def test_no_command_line_brings_it_down(given: list[str]) -> None:
    try:
        read = json.loads(read_arguments(tuple(given), SCHEMA))
    except InvalidArgumentsError as error:
        read = {"error": str(error)}
    assert isinstance(read, dict)


@pytest.mark.parametrize(
    "schema",
    [{}, {"properties": []}, {"properties": {"a": {"type": 5}}}, {"properties": {"a": {"anyOf": 5}}}],
)
def test_a_schema_that_says_nothing_asks_for_text(schema: dict[str, object]) -> None:
    assert read_arguments(("a=5",), schema) == b'{"a":"5"}'
