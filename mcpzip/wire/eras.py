"""The differences between the messages of the two eras of MCP.

Legacy (up to 2025-11-25): a session begins with `initialize`. Modern (2026-07-28): every request carries its
version and capabilities in ``_meta``. The ``_meta`` keys of MCP are defined here only. A function adds or
removes exactly what an era requires; the rest of the JSON text stays unchanged.

Sources: specification 2026-07-28 `basic/index` (per-request fields), `basic/versioning`,
`server/utilities/caching`; 2025-11-25 `basic/lifecycle`.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from mcpzip.model import limits
from mcpzip.model.protocol_versions import LEGACY_VERSIONS, MODERN_VERSION
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
    """Which kind of protocol version a connection uses."""

    LEGACY = "legacy"
    MODERN = "modern"

    # That of Enum is written in Python, and every call looks connections up by era.
    __hash__ = object.__hash__


BATCHED_VERSION = "2025-03-26"
"""The only version with JSON-RPC batches."""
LATEST_LEGACY_VERSION = LEGACY_VERSIONS[-1]
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
"""The ``_meta`` keys of a modern request; they are removed from requests to a legacy server."""


class Opening(msgspec.Struct, frozen=True):
    """What a request states about its client.

    version: the protocol version (legacy: the requested one), None if missing or no string. client_info,
    capabilities: JSON text, None if missing. log_level: the minimum level of log messages, modern only.
    """

    era: Era
    version: str | None
    client_info: bytes | None
    capabilities: bytes | None
    log_level: str | None = None


def negotiate(requested: str) -> str:
    """The version to answer `initialize` with: the requested one if it is legacy, else the latest legacy."""
    return requested if requested in LEGACY_VERSIONS else LATEST_LEGACY_VERSION


def read_opening(method: str, params: bytes | None) -> Opening | None:
    """As `opening_of`, for ``params`` as JSON text."""
    fields = _object(params)
    return opening_of(method, fields, _object(fields.get(META)))


def opening_of(method: str, fields: Mapping[str, bytes], meta: Mapping[str, bytes]) -> Opening | None:
    """What a request states about its client; None if it does not show the era (`ping` before `initialize`).

    fields, meta: the members of its params and of their ``_meta``. `initialize` is always legacy.
    `server/discover`, and any request with one of REQUEST_KEYS in ``_meta``, is modern.
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
    """The error for a modern request with an unsupported version (2026-07-28 `basic/versioning`)."""
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
    """``params`` for a modern request: sets REQUEST_KEYS in ``_meta`` and keeps everything else.

    If log_level is None, an existing one is kept. Raises NotAnObject if ``params`` is an array.
    """
    return _with_meta(params, _request_fields(version, client_info, capabilities, log_level))


def versions_in(raw: bytes) -> list[str]:
    """The protocol versions in a JSON array of strings. Raises ValueError for anything else, or for more than
    `limits.VERSIONS`.
    """
    return [unquote(version) for version in elements_of(raw, limits.VERSIONS)]


def unstamp_request(params: bytes) -> bytes:
    """``params`` for a legacy request: without the keys in ``_meta`` that only modern requests have
    (REQUEST_KEYS: version, client info, capabilities, log level), and without a ``_meta`` left empty.
    """
    return _without_meta(params, REQUEST_KEYS)


def stamp_result(
    result: bytes, *, server_info: bytes, ttl_ms: int | None = None, cache_scope: str | None = None
) -> bytes:
    """``result`` for a modern client: adds ``resultType``, caching hints and, in ``_meta``, ``server_info``.

    ttl_ms: how long it may be cached, in ms. cache_scope: ``public`` or ``private``. Existing members are
    kept, except the server info. A result that is no object is returned unchanged.
    """
    try:
        fields = split_object(result)
    except NotAnObject:
        return result
    defaults = {"resultType": b'"complete"'}
    if ttl_ms is not None:
        defaults["ttlMs"] = b"%d" % ttl_ms
    if cache_scope is not None:
        defaults["cacheScope"] = quote(cache_scope)
    new = {key: value for key, value in defaults.items() if key not in fields}
    new[META] = _merged(fields.get(META), {SERVER_INFO_KEY: server_info})
    return with_members(result, new, existing=fields.keys())


def progress_token(params: bytes | None) -> bytes | None:
    """The ``progressToken`` of a request, as JSON text; None unless it is a string or number."""
    return progress_token_of(_object(_object(params).get(META)))


def progress_token_of(meta: Mapping[str, bytes]) -> bytes | None:
    """As `progress_token`, for the members of ``_meta``."""
    token = meta.get(PROGRESS_TOKEN)
    return token if token is not None and token[:1] in b'"-0123456789' else None


def with_progress_token(params: bytes | None, token: bytes) -> bytes:
    """``params`` with this ``progressToken`` (JSON text). Raises NotAnObject if ``params`` is an array."""
    return _with_meta(params, {PROGRESS_TOKEN: token})


def without_progress_token(params: bytes) -> bytes:
    """``params`` without its ``progressToken``, and without a ``_meta`` that is empty after that."""
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
    existing = split_object(params)
    return with_members(params, {META: _merged(existing.get(META), fields)}, existing=existing.keys())


def _without_meta(params: bytes, keys: tuple[str, ...]) -> bytes:
    meta = _object(params).get(META)
    if meta is None or not any(key in keys for key in _object(meta)):
        return params
    kept = without_members(meta, keys)
    return with_members(params, {META: kept}) if split_object(kept) else without_members(params, (META,))


def _merged(meta: bytes | None, fields: dict[str, bytes]) -> bytes:
    """``meta`` with these members; a new object if ``meta`` is missing or no object."""
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
