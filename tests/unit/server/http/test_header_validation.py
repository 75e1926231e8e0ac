"""What the headers of a modern request repeat of its body (2026-07-28 `basic/transports/streamable-http`)."""

import base64
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.server.http import header_validation
from mcpzip.server.http.request import HttpRequest
from mcpzip.wire import MODERN_VERSION, Era, RpcError

STAMP = {
    "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MISMATCH, INVALID, UNSUPPORTED = -32020, -32602, -32022
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "plain": {"type": "string"},
    },
}
Pairs = Sequence[tuple[str, str]]


def request(headers: Pairs) -> HttpRequest:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    return HttpRequest("POST", "/mcp", raw)


def exchange(params: dict[str, object], stamp: dict[str, object] | None = None) -> Exchange:
    sent = json.dumps({**params, "_meta": STAMP if stamp is None else stamp}).encode()
    return Exchange(Client(Era.MODERN), b"1", sent)


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def judged(headers: Pairs, method: str, params: dict[str, object]) -> RpcError | None:
    own = [("MCP-Protocol-Version", MODERN_VERSION), ("Mcp-Method", method)]
    return header_validation.header_mismatch(request([*own, *headers]), method, exchange(params))


@given(st.text(max_size=20), st.sampled_from(sorted(header_validation.NAMED_BY.items())))
def test_a_name_in_any_letters(name: str, named: tuple[str, str]) -> None:
    method, param = named
    assert judged([("Mcp-Name", encoded(name))], method, {param: name}) is None
    other = judged([("Mcp-Name", encoded(name + "x"))], method, {param: name})
    assert other
    assert other.code == MISMATCH


def test_a_lone_surrogate_too() -> None:
    assert judged([("Mcp-Name", encoded("a\ud800"))], "tools/call", {"name": "a\ud800"}) is None


@pytest.mark.parametrize(
    ("headers", "method", "params", "code"),
    [
        ([("Mcp-Name", "a")], "tools/call", {"name": "a"}, None),
        ([], "tools/list", {}, None),
        ([("Mcp-Name", "a")], "tools/list", {"name": "b"}, None),  # a name of nothing
        ([], "tools/call", {}, None),  # which is refused for that
        ([], "tools/call", {"name": "a"}, MISMATCH),
        ([("Mcp-Name", "A")], "tools/call", {"name": "a"}, MISMATCH),
        ([("Mcp-Name", "7")], "tools/call", {"name": 7}, MISMATCH),
        ([("Mcp-Name", "b")], "resources/read", {"uri": "a"}, MISMATCH),
        ([("Mcp-Name", "a"), ("Mcp-Name", "a")], "tools/call", {"name": "a"}, MISMATCH),
        ([("Mcp-Method", "tools/list")], "tools/list", {}, MISMATCH),  # twice
        ([("Mcp-Name", "=?base64?YQ==?=")], "tools/call", {"name": "a"}, None),
        ([("Mcp-Name", "=?base64?YR==?=")], "tools/call", {"name": "a"}, MISMATCH),  # not its one form
        ([("Mcp-Name", "=?base64?YQ?=")], "tools/call", {"name": "a"}, MISMATCH),
        ([("Mcp-Name", "=?base64?\xe9?=")], "tools/call", {"name": "a"}, MISMATCH),
        ([("Mcp-Name", "=?base64?/w==?=")], "tools/call", {"name": "\xff"}, MISMATCH),
    ],
)
def test_method_and_name(headers: Pairs, method: str, params: dict[str, object], code: int | None) -> None:
    found = judged(headers, method, params)
    assert (found and found.code) == code


@pytest.mark.parametrize(
    ("version", "stamp", "code"),
    [
        (MODERN_VERSION, STAMP, None),
        (MODERN_VERSION, {}, INVALID),
        (MODERN_VERSION, {"io.modelcontextprotocol/protocolVersion": MODERN_VERSION}, INVALID),
        ("2027-01-01", STAMP, MISMATCH),
        ("2027-01-01", {**STAMP, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}, UNSUPPORTED),
        (MODERN_VERSION, {**STAMP, "io.modelcontextprotocol/protocolVersion": None}, MISMATCH),
    ],
)
def test_the_version(version: str, stamp: dict[str, object], code: int | None) -> None:
    headers = request([("MCP-Protocol-Version", version), ("Mcp-Method", "tools/list")])
    found = header_validation.header_mismatch(headers, "tools/list", exchange({}, stamp))
    assert (found and found.code) == code


@pytest.mark.parametrize(
    ("headers", "arguments", "refused"),
    [
        ([("Mcp-Param-Region", "eu"), ("Mcp-Param-Count", "3")], {"region": "eu", "count": 3}, False),
        ([], {"plain": "x"}, False),
        ([("Mcp-Param-Other", "x")], {}, False),  # of no property
        ([("Mcp-Param-Region", encoded("zürich"))], {"region": "zürich"}, False),
        ([("mcp-param-region", "us")], {"region": "eu"}, True),
        ([], {"region": "eu"}, True),
        ([("Mcp-Param-Region", "eu")], {}, True),
        ([("Mcp-Param-Count", "4")], {"count": 3}, True),
        ([("Mcp-Param-Region", "eu"), ("Mcp-Param-Region", "eu")], {"region": "eu"}, True),
    ],
)
async def test_arguments(headers: Pairs, arguments: dict[str, object], refused: bool) -> None:
    asked: list[str] = []

    def schema_of(name: str) -> header_validation.Callable[[], header_validation.Schema]:
        asked.append(name)
        return lambda: SCHEMA

    call = exchange({"name": "t", "arguments": arguments})
    found = await header_validation.argument_mismatch(request(headers), call, schema_of)
    assert (found is not None and found.code == MISMATCH) == refused
    assert asked == ["t"]


async def test_arguments_that_no_header_repeats_are_not_looked_at() -> None:
    call = exchange({"name": "t", "arguments": {"region": "eu"}})
    assert (
        await header_validation.argument_mismatch(
            request([("Mcp-Param-Region", "us")]), call, lambda name: None
        )
        is None
    )
    for arguments in (None, [], "text"):
        call = exchange({"name": "t", "arguments": arguments})
        assert (
            await header_validation.argument_mismatch(request([]), call, lambda name: lambda: SCHEMA) is None
        )
    long = b'{"name":"t","arguments":{"count":%b}}' % (b"7" * 5000)  # more digits than Python reads
    found = await header_validation.argument_mismatch(
        request([]), Exchange(Client(Era.MODERN), b"1", long), lambda name: lambda: SCHEMA
    )
    assert found
    assert found.code == INVALID


@pytest.mark.parametrize(
    ("accept", "json", "events"),
    [
        ("application/json, text/event-stream", True, True),
        ("Application/JSON;q=0.9,TEXT/event-stream", True, True),
        ("*/*", True, True),
        ("application/*", True, False),
        ("text/*, image/png", False, True),
        ("application/json-seq", False, False),
        ("", False, False),
    ],
)
def test_what_is_accepted(accept: str, json: bool, events: bool) -> None:
    asked = request([("Accept", accept)])
    assert (asked.accepts("application/json"), asked.accepts("text/event-stream")) == (json, events)
    assert asked.accepts("application/json", "text/event-stream") == (json and events)
