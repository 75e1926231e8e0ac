"""The HTTP headers in which a client repeats parts of a request's body."""

import json
from collections.abc import Awaitable, Mapping

from mcpzip.model import limits
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import Dialect
from mcpzip.wire import PROTOCOL_VERSION_KEY, Era, NotAnObject, split_object, with_members
from mcpzip.wire.envelope import text_of
from mcpzip.wire.json_iter import elements_of
from mcpzip.wire.param_headers import (
    ANNOTATION,
    NAMED_BY,
    header_value,
    invalid_annotation,
    param_headers,
)

_ANNOTATION = ANNOTATION.encode()

Headers = list[tuple[bytes, bytes]]


def request_headers(
    method: str, params: bytes | None, dialect: Dialect | None, definition: bytes | None
) -> Headers | Awaitable[Headers]:
    """The HTTP headers that repeat parts of a request's body (2026-07-28, basic/transports/streamable-http);
    an awaitable when the tool's schema has to be read for them. [] for a server of the legacy era.

    dialect: the protocol version and era agreed with the server, None before the handshake; before it the
    version in ``params`` is sent as a header too. definition: the called tool as its server listed it, as
    JSON text; None for other methods.
    """
    if dialect is not None and dialect.era is Era.LEGACY:
        return []
    fields = _members(params)
    headers: Headers = []
    if dialect is None:
        version = text_of(_members(fields.get("_meta")).get(PROTOCOL_VERSION_KEY, b""))
        if version is None:
            return []
        headers.append((b"Mcp-Protocol-Version", header_value(version).encode()))
    headers.append((b"Mcp-Method", header_value(method).encode()))
    named_by = NAMED_BY.get(method)
    name = text_of(fields.get(named_by, b"")) if named_by else None
    if name is not None:
        headers.append((b"Mcp-Name", header_value(name).encode()))
    if definition is None or dialect is None or _ANNOTATION not in definition:
        return headers
    return _with_params(headers, definition, fields.get("arguments", b"{}"))


async def _with_params(headers: Headers, definition: bytes, arguments: bytes) -> Headers:
    if len(definition) + len(arguments) <= limits.READ_AT_ONCE:
        return headers + _repeated(definition, arguments)
    return headers + await in_thread(lambda: _repeated(definition, arguments), "param-headers")


def _repeated(definition: bytes, arguments: bytes) -> Headers:
    """The headers for those ``arguments`` that the tool's schema wants repeated."""
    schema = json.loads(definition, parse_int=_integer).get("inputSchema")
    repeated = param_headers(schema, json.loads(arguments, parse_int=_integer))
    return [(name.encode(), value.encode()) for name, value in repeated.items()]


def _integer(digits: str) -> int | None:
    """None for an integer with more digits than Python parses; no header is sent for it."""
    try:
        return int(digits)
    except ValueError:
        return None


async def without_invalid_tools(text: bytes) -> bytes:
    """The result of `tools/list` without the tools whose schema asks for invalid headers: a client over HTTP
    must leave them out (spec 2026-07-28: basic/transports/streamable-http, "Custom Headers from Tool
    Parameters").
    """
    if _ANNOTATION not in text:
        return text
    return await in_thread(lambda: _without_invalid(text), "param-headers")


def _without_invalid(text: bytes) -> bytes:
    try:
        tools = elements_of(_members(text).get("tools", b""), limits.LIST_ITEMS)
    except ValueError:
        return text  # the reader of the list reports the error
    valid = list(filter(_is_valid, tools))
    if len(valid) == len(tools):
        return text
    return with_members(text, {"tools": b"[%b]" % b",".join(valid)})


def _is_valid(tool: bytes) -> bool:
    """Whether the headers that ``tool`` asks for are valid. Too large tools are left out elsewhere."""
    if _ANNOTATION not in tool or len(tool) > limits.ITEM:
        return True
    try:
        definition = json.loads(tool)
    except (ValueError, RecursionError):
        return True
    return not isinstance(definition, dict) or invalid_annotation(definition.get("inputSchema")) is None


def _members(text: bytes | None) -> Mapping[str, bytes]:
    try:
        return split_object(text) if text else {}
    except NotAnObject:
        return {}
