"""What the SDK is shown of messages, and that they come out as they went in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.server import verbatim
from mcpzip.server.verbatim import Received, Seal
from mcpzip.wire import RpcError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=4)


def text(value: object) -> bytes:
    return json.dumps(value).encode()


def event(value: object) -> bytes:
    """As the SDK writes one."""
    return b"event: message\r\ndata: " + json.dumps(value, separators=(",", ":")).encode() + b"\r\n\r\n"


@given(OBJECTS)
def test_what_is_told_comes_out_of_the_event_it_was_sealed_in(params: dict[str, object]) -> None:
    seal = Seal()
    message = verbatim.request(None, "notifications/message", text(params))
    standing_in = {"jsonrpc": "2.0", "method": "notifications/message", "params": seal.closed(message)}
    assert seal.events(event(standing_in), None) == b"event: message\r\ndata: " + message + b"\r\n\r\n"


@given(JSON)
def test_the_answer_comes_out_of_body_and_event(result: object) -> None:
    seal = Seal()
    received = Received(b'"i\\u0064"', "tools/call", None)
    received.answer = verbatim.result(received.id, text(result))
    standing_in = {"jsonrpc": "2.0", "id": "id", "result": seal.answer}
    assert seal.body(json.dumps(standing_in, separators=(",", ":")).encode(), received) == received.answer
    assert seal.events(event(standing_in), received).split(b"data: ")[1].rstrip() == received.answer


def test_two_events_at_once() -> None:
    seal = Seal()
    one, two = (verbatim.request(None, name, None) for name in ("a", "b"))
    both = event({"params": seal.closed(one)}) + b": ping\r\n\r\n" + event({"params": seal.closed(two)})
    assert [line[6:] for line in seal.events(both, None).split(b"\r\n") if line.startswith(b"data: ")] == [
        one,
        two,
    ]


@given(OBJECTS)
def test_nothing_else_is_touched(value: dict[str, object]) -> None:
    seal, other = Seal(), Seal()
    for standing_in in (value, other.closed(b"{}"), other.answer):
        assert seal.events(event(standing_in), None) == event(standing_in)
        assert seal.body(text(standing_in), Received(b"1", "ping", None)) == text(standing_in)
        assert seal.opened(standing_in) is None


@given(st.integers() | st.text(max_size=5), OBJECTS)
def test_a_legacy_request_shows_only_what_it_is_routed_by(id: int | str, params: dict[str, object]) -> None:
    body = text({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params, "more": 1})
    given_to_sdk, received = Seal().received(body, legacy=True)
    assert json.loads(given_to_sdk) == {"jsonrpc": "2.0", "id": id, "method": "tools/call"}
    assert received == Received(text(id), "tools/call", text(params))


def test_a_modern_request_is_judged_whole() -> None:
    body = b'{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name" : "x"}}'
    assert Seal().received(body, legacy=False) == (body, Received(b"1", "tools/call", b'{"name" : "x"}'))


@pytest.mark.parametrize(
    ("method", "params", "shown"),
    [
        ("initialize", {"protocolVersion": "1", "capabilities": {"x": None}}, {"protocolVersion": "1"}),
        ("initialize", {}, {}),
        ("notifications/cancelled", {"requestId": 7, "reason": "\ud800"}, {"requestId": 7}),
        ("notifications/cancelled", {"reason": "x"}, {}),
        ("notifications/progress", {"progressToken": 1}, None),
    ],
)
def test_what_the_sdk_needs_of_some(
    method: str, params: dict[str, object], shown: dict[str, object] | None
) -> None:
    told, received = Seal().received(
        text({"jsonrpc": "2.0", "method": method, "params": params}), legacy=True
    )
    of_initialize = {"capabilities": {}, "clientInfo": {"name": "-", "version": "-"}}
    if method == "initialize" and shown is not None:
        shown = {**shown, **of_initialize}
    assert json.loads(told).get("params") == shown
    assert received
    assert received.params == text(params)


@given(JSON)
def test_a_clients_answer_is_opened_as_it_came(result: object) -> None:
    seal = Seal()
    told, received = seal.received(text({"jsonrpc": "2.0", "id": 1, "result": result}), legacy=True)
    assert received is None
    assert seal.opened(json.loads(told)["result"]) == text(result)


@given(st.integers(-(10**9), 10**9), st.text(), JSON)
def test_a_clients_error_too(code: int, words: str, data: object) -> None:
    seal = Seal()
    error = {"code": code, "message": words, "data": data}
    told, _ = seal.received(text({"jsonrpc": "2.0", "id": 1, "error": error}), legacy=True)
    assert seal.error(json.loads(told)["error"]["data"]) == RpcError(code, words, text(data))
    assert seal.error(data) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff",
        b'{"jsonrpc":"2.0"}',
        b'{"method":1}',
        b'{"method":"x","result":{}}',
        b'{"result":{},"error":{}}',
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("legacy", [True, False])
def test_what_is_no_message_is_the_sdks_to_refuse(body: bytes, legacy: bool) -> None:
    assert Seal().received(body, legacy=legacy) == (body, None)


@given(st.binary(max_size=200))
def test_no_body_raises(body: bytes) -> None:
    for legacy in (True, False):
        Seal().received(body, legacy=legacy)


def test_a_message_is_one_line() -> None:
    for message in (
        verbatim.result(b"1", b'{\r\n"a":\n1}'),
        verbatim.request(1, "x\ny", b"{\n}"),
        verbatim.error(b"1", RpcError(1, "a\nb", b"[\r1]")),
    ):
        assert b"\n" not in message
        assert b"\r" not in message
        assert json.loads(message)["jsonrpc"] == "2.0"
