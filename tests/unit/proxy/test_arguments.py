"""What `execute_tool` makes of the arguments that models really send."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.proxy.arguments import ToolCall, read_call, read_name

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)
OWN = ("name", "arguments", "timeout")

NULL = "arguments: null taken as {}"
ONCE, TWICE = "arguments: JSON string decoded", "arguments: JSON string decoded twice"
FLAT = "arguments: taken from beside 'name'"


def read(members: dict[str, Any]) -> ToolCall:
    return read_call(json.dumps(members).encode())


def given_arguments(call: ToolCall) -> object:
    return json.loads(call.arguments)


@given(OBJECTS)
def test_an_object_passes_byte_for_byte(arguments: dict[str, Any]) -> None:
    raw = json.dumps(arguments, indent=1).encode()
    call = read_call(b'{"name":"a__b","arguments":%b}' % raw)
    assert call == ToolCall("a__b", raw, None)


@given(OBJECTS, st.integers(1, 2))
def test_text_of_an_object_is_read_once_or_twice(arguments: dict[str, Any], times: int) -> None:
    value: Any = arguments
    for _ in range(times):
        value = json.dumps(value)
    call = read({"name": "a__b", "arguments": value})
    assert given_arguments(call) == arguments
    assert call.repairs == ((ONCE, TWICE)[times - 1],)
    assert b"\n" not in call.arguments


@given(st.dictionaries(st.text().filter(lambda key: key not in OWN), JSON, min_size=1, max_size=4))
def test_flat_siblings_are_the_arguments(arguments: dict[str, Any]) -> None:
    call = read({"name": "a__b", **arguments})
    assert given_arguments(call) == arguments
    assert call.repairs == (FLAT,)
    assert {key: json.loads(value) for key, value in call.extra.items()} == arguments
    assert read({"name": "a__b", **arguments, "arguments": {}}).arguments == call.arguments


@pytest.mark.parametrize(
    ("raw", "arguments", "repairs"),
    [
        (b'{"name":"x"}', b"{}", ()),
        (b'{"name":"x","arguments":{}}', b"{}", ()),
        (b'{"name":"x","arguments":null}', b"{}", (NULL,)),
        (b'{"name":"x","arguments":""}', b"{}", (ONCE,)),
        (b'{"name":"x","arguments":"  "}', b"{}", (ONCE,)),
        (b'{"name":"x","arguments":"{}"}', b"{}", (ONCE,)),
        (b'{"name":"x","arguments":" {\\"a\\":1.0}\\n"}', b'{"a":1.0}', (ONCE,)),
        (b'{"name":"x","arguments":{"a":1.0,"b":1e5}}', b'{"a":1.0,"b":1e5}', ()),
        (b'{"name":"x","arguments":{"text":"\\ud800"}}', b'{"text":"\\ud800"}', ()),
        (b'{"name":"x","arguments":"{\\"text\\":\\"\\\\ud800\\"}"}', b'{"text":"\\ud800"}', (ONCE,)),
        (b'{"name":"x","arguments":{"name":"y","timeout":1}}', b'{"name":"y","timeout":1}', ()),
    ],
)
def test_what_can_mean_only_one_thing_is_taken(
    raw: bytes, arguments: bytes, repairs: tuple[str, ...]
) -> None:
    call = read_call(raw)
    assert (call.arguments, call.repairs) == (arguments, repairs)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (None, "'name' is missing"),
        (b"{}", "'name' is missing"),
        (b'{"name":""}', "'name' is missing"),
        (b'{"name":null}', "'name' is missing"),
        (b'{"name":5}', "'name' is missing"),
        (b"[]", "not a JSON object"),
        (b'"x"', "not a JSON object"),
        (b'"{', "not a JSON object"),
        (b'"hello"', "not a JSON object"),
        (b'{"tool":"x","toolName":"y"}', "'tool' and 'toolName' could both be the 'name'"),
        (b'{"name":null,"tool":"x"}', "'name' is missing"),
        (b'{"name":"x","arguments":"{","timeout":0}', "'timeout' is not a number"),
    ],
)
def test_what_would_have_to_be_guessed_is_refused_in_a_sentence(raw: bytes | None, said: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=said):
        read_call(raw)


def test_repairs_name_the_tool_that_was_called() -> None:
    raw = b'"{\\"Name\\":\\"x\\",\\"arguments\\":{\\"a\\":1},\\"Timeout\\":5}"'
    through = "execute_read_tool"
    assert read_call(raw, through).repairs == (
        "execute_read_tool: JSON string decoded",
        "execute_read_tool: Name → name",
        "execute_read_tool: Timeout → timeout",
    )
    assert [repair.replace(through, "execute_tool") for repair in read_call(raw, through).repairs] == [
        *read_call(raw).repairs
    ]


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b'{"name":"x","arguments":[1]}', "not a JSON object"),
        (b'{"name":"x","arguments":5}', "not a JSON object"),
        (b'{"name":"x","arguments":true}', "not a JSON object"),
        (b'{"name":"x","arguments":"hello"}', "not a JSON object"),
        (b'{"name":"x","arguments":"[1]"}', "not a JSON object"),
        (b'{"name":"x","arguments":"\\ud800"}', "not a JSON object"),
        (b'{"name":"x","arguments":"{\\"a\\":1"}', "not a JSON object"),
        (b'{"name":"x","arguments":{"a":1},"b":2}', "'b' stands beside 'arguments'"),
        (b'{"name":"x","arguments":"{\\"a\\":1}","b":2}', "'b' stands beside 'arguments'"),
    ],
)
def test_arguments_that_can_t_be_read_are_told_by_whoever_knows_the_tool(raw: bytes, fault: str) -> None:
    call = read_call(raw)
    assert fault in call.error
    assert (call.name, call.arguments) == ("x", b"{}")


@pytest.mark.parametrize(
    ("raw", "call"),
    [
        (b'{"Name":"x"}', ToolCall("x", b"{}", None, ("execute_tool: Name → name",))),
        (
            b'{"tool_name":"x","arguments":{"a":1}}',
            ToolCall("x", b'{"a":1}', None, ("execute_tool: tool_name → name",)),
        ),
        (b'{"toolName":"x"}', ToolCall("x", b"{}", None, ("execute_tool: toolName → name",))),
        (
            b'{"tool":"x","b":2}',
            ToolCall("x", b'{"b":2}', None, ("execute_tool: tool → name", FLAT), {"b": b"2"}),
        ),
        (
            b'{"name":"x","arguments":{"a":1},"Time_Out":5}',
            ToolCall("x", b'{"a":1}', 5.0, ("execute_tool: Time_Out → timeout",)),
        ),
        (b'"{\\"name\\":\\"x\\"}"', ToolCall("x", b"{}", None, ("execute_tool: JSON string decoded",))),
        # Where the right key stands too, or could be meant otherwise, it is an argument
        (b'{"name":"x","Name":"y"}', ToolCall("x", b'{"Name":"y"}', None, (FLAT,), {"Name": b'"y"'})),
        (b'{"name":"x","tool":"y"}', ToolCall("x", b'{"tool":"y"}', None, (FLAT,), {"tool": b'"y"'})),
        (b'{"name":"x","Timeout":5}', ToolCall("x", b'{"Timeout":5}', None, (FLAT,), {"Timeout": b"5"})),
    ],
)
def test_its_own_keys_may_be_spelt_otherwise(raw: bytes, call: ToolCall) -> None:
    assert read_call(raw) == call


def test_a_second_timeout_is_not_dropped() -> None:
    assert (
        "'Timeout' stands beside"
        in read_call(b'{"name":"x","arguments":{"a":1},"timeout":1,"Timeout":5}').error
    )


def test_a_key_beside_arguments_that_say_nothing_is_not_dropped() -> None:
    call = read({"name": "x", "arguments": None, "b": 2})
    assert given_arguments(call) == {"b": 2}


@pytest.mark.parametrize(
    ("timeout", "seconds"), [("30", 30.0), ("0.5", 0.5), ('"30"', 30.0), ("null", None), ("86400", 86_400.0)]
)
def test_the_timeout_is_read(timeout: str, seconds: float | None) -> None:
    assert read_call(f'{{"name":"x","timeout":{timeout}}}'.encode()).timeout == seconds


@pytest.mark.parametrize(
    "timeout", ["0", "-1", "86401", '"soon"', "true", "{}", "[1]", "1e999", '"nan"', '"inf"']
)
def test_a_timeout_that_is_none_is_refused(timeout: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="'timeout' is not a number of seconds"):
        read_call(f'{{"name":"x","timeout":{timeout}}}'.encode())


@given(st.text(min_size=1))
def test_any_name_is_read_as_it_is(name: str) -> None:
    raw = json.dumps({"name": name}).encode()
    assert read_call(raw).name == read_name(raw) == name


def test_a_name_that_unicode_refuses_is_a_name() -> None:
    """It was called missing."""
    assert read_name(b'{"name":"a__\\ud800"}') == "a__\ud800"


@given(st.binary(max_size=60))
def test_no_bytes_bring_it_down(raw: bytes) -> None:
    try:
        call = read_call(raw)
    except InvalidArgumentsError:
        return
    assert call.name
    assert isinstance(json.loads(call.arguments), dict)
