"""The headers of a request, of arguments that Python's own JSON doesn't read."""

import inspect

import pytest

from mcpzip.transport.base import Dialect
from mcpzip.transport.request_headers import Headers, request_headers
from mcpzip.wire import Era

MODERN = Dialect(Era.MODERN, "2026-07-28")
PAY = (
    b'{"name":"pay","inputSchema":{"type":"object","properties":'
    b'{"region":{"type":"string","x-mcp-header":"Region"}}}}'
)


async def headers_of(arguments: bytes) -> Headers:
    made = request_headers("tools/call", b'{"name":"pay","arguments":%b}' % arguments, MODERN, PAY)
    return await made if inspect.isawaitable(made) else made


async def test_arguments_that_a_tool_wants_repeated_are() -> None:
    assert await headers_of(b'{"region":"eu","n":1}') == [
        (b"Mcp-Method", b"tools/call"),
        (b"Mcp-Name", b"pay"),
        (b"Mcp-Param-Region", b"eu"),
    ]


@pytest.mark.parametrize(
    "other",
    [b"9" * 5000, b"[" * 380 + b"]" * 380, b"1e999", b'"\\ud800"', b"-0"],
    ids=[
        "a number of 5,000 digits",
        "much in one another",
        "beyond floats",
        "a lone surrogate",
        "minus zero",
    ],
)
async def test_other_arguments_keep_none_from_being_repeated(other: bytes) -> None:
    """Python reads no integer of more than 4,300 digits; a call with one failed with a ValueError."""
    assert (b"Mcp-Param-Region", b"eu") in await headers_of(b'{"region":"eu","n":%b}' % other)
