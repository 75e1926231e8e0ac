"""Compares the headers of a modern request with its body, parts of which they repeat (2026-07-28
`basic/transports/streamable-http`, "Request Metadata Headers" and "Custom Headers from Tool Parameters").

A proxy may have routed the request by its headers, while we act on the body. So a header that differs, occurs
twice or is missing is an error.
"""

import json
from collections.abc import Callable, Mapping

from mcpzip.model.errors import OverloadedError
from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.workers import run_in_worker
from mcpzip.server.http.request import HttpRequest
from mcpzip.wire import (
    CLIENT_CAPABILITIES_KEY,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    RpcError,
    unquote,
    unsupported_version_error,
)
from mcpzip.wire.param_headers import NAMED_BY, PREFIX, header_text, param_mismatch

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"

Schema = Mapping[str, object]
SchemaOf = Callable[[str], Callable[[], Schema] | None]
"""What reads the input schema of a tool that is shown under a name; None where it asks for no headers."""

_NO_META = RpcError(
    INVALID_PARAMS, f"_meta lacks {PROTOCOL_VERSION_KEY} or …/{CLIENT_CAPABILITIES_KEY.partition('/')[2]}."
)
_UNREADABLE = RpcError(INVALID_PARAMS, "The arguments can't be compared with the headers that repeat them.")


def unsupported_version(request: HttpRequest) -> RpcError | None:
    """The reason why the version in ``MCP-Protocol-Version`` is refused; None if it is supported."""
    version = request.header("mcp-protocol-version") or ""
    return None if version in MODERN_VERSIONS else unsupported_version_error(version)


def header_mismatch(request: HttpRequest, method: str, exchange: Exchange) -> RpcError | None:
    """Why this request isn't what its headers say, or isn't of the modern era; None when all is well."""
    for header in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER):
        if len(request.headers.get(header.lower(), ())) > 1:
            return _mismatch(f"{header} is there more than once.")
    meta = exchange.meta_fields
    if PROTOCOL_VERSION_KEY not in meta or not meta.get(CLIENT_CAPABILITIES_KEY, b"").startswith(b"{"):
        return unsupported_version(request) or _NO_META
    if request.header("mcp-protocol-version") != _text(meta[PROTOCOL_VERSION_KEY]):
        return _mismatch(f"{VERSION_HEADER} is not the version in _meta.")
    if request.header("mcp-method") != method:
        return _mismatch(f"{METHOD_HEADER} is not the method of the request.")
    param = NAMED_BY.get(method)
    name = exchange.fields.get(param, b"null") if param else b"null"
    if name != b"null" and (_text(name) is None or header_text(request.header("mcp-name")) != _text(name)):
        return _mismatch(f"{NAME_HEADER} is not the {param} in params.")
    return unsupported_version(request)


async def argument_mismatch(request: HttpRequest, exchange: Exchange, schema_of: SchemaOf) -> RpcError | None:
    """Why the Mcp-Param headers of this `tools/call` aren't its arguments; None when all is well."""
    name = _text(exchange.fields.get("name", b""))
    schema = None if name is None else schema_of(name)
    if schema is None:
        return None
    headers = request.headers_starting_with(PREFIX)
    if len(dict(headers)) < len(headers):
        return _mismatch("An Mcp-Param header is there more than once.")
    arguments = exchange.fields.get("arguments", b"{}")
    try:
        return await run_in_worker(lambda: _compared(schema(), arguments, dict(headers)), "mirrors")
    except OverloadedError as error:
        return RpcError(INTERNAL_ERROR, str(error))


def _compared(schema: Schema, text: bytes, headers: Mapping[str, str]) -> RpcError | None:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return _UNREADABLE
    if not isinstance(arguments, dict | None):
        return None  # which is refused for that
    reason = param_mismatch(schema, arguments or {}, headers)
    return None if reason is None else _mismatch(reason)


def _mismatch(reason: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, reason)


def _text(raw: bytes) -> str | None:
    try:
        return unquote(raw)
    except ValueError:
        return None
