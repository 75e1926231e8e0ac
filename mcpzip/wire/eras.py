"""The two eras of MCP, as tables and as text.

The rule: what differs between legacy (≤ 2025-11-25, opened by `initialize`) and modern (2026-07-28, every
request carries its version and capabilities in ``_meta``) and concerns the message itself is said here;
nothing else knows a ``_meta`` key. A function adds or removes exactly what an era requires; the rest of the
text stays byte for byte.

Sources: specification 2026-07-28 `basic/index` (per-request fields), `basic/versioning`,
`server/utilities/caching`; 2025-11-25 `basic/lifecycle`.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from mcpzip.model import limits
from mcpzip.wire.error_codes import UNSUPPORTED_PROTOCOL_VERSION
from mcpzip.wire.events import RpcError
from mcpzip.wire.json_iter import elements_of
from mcpzip.wire.json_object import (
    NotAnObject,
    join_object,
    quote,
    split_object,
    unquote,
    with_members,
    without_members,
)


class Era(Enum):
    """How a connection is spoken."""

    LEGACY = "legacy"
    MODERN = "modern"


LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions reached through `initialize`, oldest first."""
BATCHED_VERSION = "2025-03-26"
"""The only version whose peers take several messages at once, as JSON-RPC batches."""
LATEST_LEGACY_VERSION = LEGACY_VERSIONS[-1]
MODERN_VERSION = "2026-07-28"
MODERN_VERSIONS = (MODERN_VERSION,)

META = "_meta"
PROTOCOL_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID_KEY = "io.modelcontextprotocol/subscriptionId"
PROGRESS_TOKEN = "progressToken"

REQUEST_KEYS = (PROTOCOL_VERSION_KEY, CLIENT_INFO_KEY, CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY)
"""The ``_meta`` keys of a modern request; a legacy peer is never shown them."""


class Opening(msgspec.Struct, frozen=True):
    """What a request says of the client that sent it.

    version: the one it asks for or speaks, None when missing or no string. client_info, capabilities: JSON
    text, None when missing. log_level: modern only, the level from which on it wants log messages.
    """

    era: Era
    version: str | None
    client_info: bytes | None
    capabilities: bytes | None
    log_level: str | None = None


def negotiate(requested: str) -> str:
    """What to answer `initialize` with: the version asked for if it is legacy, else the newest legacy one."""
    return requested if requested in LEGACY_VERSIONS else LATEST_LEGACY_VERSION


def read_opening(method: str, params: bytes | None) -> Opening | None:
    """What a request opens; see `opening_of`."""
    fields = _object(params)
    return opening_of(method, fields, _object(fields.get(META)))


def opening_of(method: str, fields: Mapping[str, bytes], meta: Mapping[str, bytes]) -> Opening | None:
    """What a request opens; None when it decides nothing (a `ping` before `initialize`).

    fields, meta: the members of its params and of their ``_meta``. `initialize` is legacy whatever its
    ``_meta`` holds; any other request is modern when its ``_meta`` has one of REQUEST_KEYS; `server/discover`
    exists in the modern era only.
    """
    if method == "initialize":
        return Opening(
            Era.LEGACY,
            _text(fields.get("protocolVersion")),
            fields.get("clientInfo"),
            fields.get("capabilities"),
        )
    if method == "server/discover" or not meta.keys().isdisjoint(REQUEST_KEYS):
        return Opening(
            Era.MODERN,
            _text(meta.get(PROTOCOL_VERSION_KEY)),
            meta.get(CLIENT_INFO_KEY),
            meta.get(CLIENT_CAPABILITIES_KEY),
            _text(meta.get(LOG_LEVEL_KEY)),
        )
    return None


def unsupported_version_error(requested: str) -> RpcError:
    """What a modern request for a version we don't speak is answered with (2026-07-28 `basic/versioning`)."""
    supported = b",".join(quote(version) for version in MODERN_VERSIONS)
    return RpcError(
        UNSUPPORTED_PROTOCOL_VERSION,
        "Unsupported protocol version",
        join_object({"supported": b"[%b]" % supported, "requested": quote(requested)}),
    )


def initialize_params(version: str, client_info: bytes, capabilities: bytes) -> bytes:
    """The params of `initialize`."""
    return join_object(
        {"protocolVersion": quote(version), "capabilities": capabilities, "clientInfo": client_info}
    )


def modern_meta(version: str, client_info: bytes, capabilities: bytes, log_level: str | None = None) -> bytes:
    """The ``_meta`` object of a modern request."""
    return join_object(_request_fields(version, client_info, capabilities, log_level))


def stamp_request(
    params: bytes | None,
    version: str,
    client_info: bytes,
    capabilities: bytes,
    log_level: str | None = None,
) -> bytes:
    """``params`` as a modern request carries them: REQUEST_KEYS set in ``_meta``, everything else in it kept.

    A log level that stands there stays when none is given. Raises NotAnObject when ``params`` is an array.
    """
    return _with_meta(params, _request_fields(version, client_info, capabilities, log_level))


def versions_in(raw: bytes) -> list[str]:
    """The protocol versions in a JSON array. Raises ValueError for what is none, or has too many."""
    return [unquote(version) for version in elements_of(raw, limits.VERSIONS)]


def unstamp_request(params: bytes) -> bytes:
    """``params`` as a legacy request carries them: no REQUEST_KEYS, nor a ``_meta`` left empty by that."""
    return _without_meta(params, REQUEST_KEYS)


def stamp_result(
    result: bytes, *, server_info: bytes, ttl_ms: int | None = None, cache_scope: str | None = None
) -> bytes:
    """``result`` as a modern server sends it: ``resultType``, caching hints and, in ``_meta``, who we are.

    ttl_ms: how long it may be cached, ms. cache_scope: ``public`` or ``private``. All but who we are gives
    way to what stands there already. A result that isn't an object can hold none of it and is returned as it
    is.
    """
    try:
        fields = split_object(result)
    except NotAnObject:
        return result
    wanted = {"resultType": b'"complete"'}
    if ttl_ms is not None:
        wanted["ttlMs"] = b"%d" % ttl_ms
    if cache_scope is not None:
        wanted["cacheScope"] = quote(cache_scope)
    new = {key: value for key, value in wanted.items() if key not in fields}
    new[META] = _merged(fields.get(META), {SERVER_INFO_KEY: server_info})
    return with_members(result, new, standing=fields.keys())


def progress_token(params: bytes | None) -> bytes | None:
    """The ``progressToken`` of a request, as JSON text; None when it has none that is a string or number."""
    return progress_token_of(_object(_object(params).get(META)))


def progress_token_of(meta: Mapping[str, bytes]) -> bytes | None:
    """The same, of the members of its ``_meta``."""
    token = meta.get(PROGRESS_TOKEN)
    return token if token is not None and token[:1] in b'"-0123456789' else None


def with_progress_token(params: bytes | None, token: bytes) -> bytes:
    """``params`` with this ``progressToken`` (JSON text). Raises NotAnObject when ``params`` is an array."""
    return _with_meta(params, {PROGRESS_TOKEN: token})


def without_progress_token(params: bytes) -> bytes:
    """``params`` without its ``progressToken``, nor a ``_meta`` left empty by that."""
    return _without_meta(params, (PROGRESS_TOKEN,))


def _request_fields(
    version: str, client_info: bytes, capabilities: bytes, log_level: str | None
) -> dict[str, bytes]:
    fields = {
        PROTOCOL_VERSION_KEY: quote(version),
        CLIENT_INFO_KEY: client_info,
        CLIENT_CAPABILITIES_KEY: capabilities,
    }
    if log_level is not None:
        fields[LOG_LEVEL_KEY] = quote(log_level)
    return fields


def _with_meta(params: bytes | None, fields: dict[str, bytes]) -> bytes:
    if params is None:
        return join_object({META: join_object(fields)})
    standing = split_object(params)
    return with_members(params, {META: _merged(standing.get(META), fields)}, standing=standing.keys())


def _without_meta(params: bytes, keys: tuple[str, ...]) -> bytes:
    meta = _object(params).get(META)
    if meta is None or not any(key in keys for key in _object(meta)):
        return params
    kept = without_members(meta, keys)
    return with_members(params, {META: kept}) if split_object(kept) else without_members(params, (META,))


def _merged(meta: bytes | None, fields: dict[str, bytes]) -> bytes:
    """``meta`` with these members; one that is missing, or no object and so means nothing, is made anew."""
    if meta is None:
        return join_object(fields)
    try:
        return with_members(meta, fields)
    except NotAnObject:
        return join_object(fields)


def _object(raw: bytes | None) -> dict[str, bytes]:
    try:
        return split_object(raw or b"{}")
    except NotAnObject:
        return {}


def _text(raw: bytes | None) -> str | None:
    return unquote(raw) if raw is not None and raw[:1] == b'"' else None
