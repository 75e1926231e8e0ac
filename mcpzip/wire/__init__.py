"""JSON-RPC and MCP without I/O: bytes in, events out; commands in, bytes out.

    client, server = Peer(role=Role.CLIENT), Peer(role=Role.SERVER)
    number, line = client.request("tools/call", b'{"name":"add"}')      # the caller sends these bytes
    for event in server.receive(line):                                  # chunks of any size: the same events
        match event:
            case Request(id, "tools/call", params):
                line = server.result(id, b'{"content":[]}')             # b"" if the request was cancelled
            case Invalid(id, code, message):
                line = server.error(id, code, message)
    assert client.receive(line) == [Result(number, b'{"content":[]}')]  # the same bytes
    assert client.eof() == [Closed(())]                                 # every request has an outcome

`params` and `result` are JSON text that passes unchanged; only the JSON-RPC envelope is decoded.
`json_object` reads and edits such texts one level deep, `eras` adds and removes what legacy and modern MCP
put in them.
"""

from mcpzip.model.protocol_versions import LEGACY_VERSIONS, MODERN_VERSION
from mcpzip.wire.eras import (
    BATCHED_VERSION,
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LATEST_LEGACY_VERSION,
    LOG_LEVEL_KEY,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    REQUEST_KEYS,
    SERVER_INFO_KEY,
    SUBSCRIPTION_ID_KEY,
    Era,
    Opening,
    initialize_params,
    modern_meta,
    negotiate,
    opening_of,
    progress_token,
    progress_token_of,
    read_opening,
    stamp_request,
    stamp_result,
    unstamp_request,
    unsupported_version_error,
    versions_in,
    with_progress_token,
    without_progress_token,
)
from mcpzip.wire.error_codes import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
)
from mcpzip.wire.errors import JsonRpcError, UpstreamRpcError
from mcpzip.wire.events import (
    Batch,
    Cancelled,
    Closed,
    Error,
    Event,
    Invalid,
    NotAMessage,
    Notification,
    Progress,
    Request,
    Result,
    RpcError,
    ScopeError,
    Unmatched,
)
from mcpzip.wire.framing import MAX_FRAME, FrameTooLong, LineFramer
from mcpzip.wire.json_object import (
    NotAnObject,
    is_json,
    join_object,
    quote,
    split_object,
    unquote,
    with_members,
    without_members,
)
from mcpzip.wire.peer import Peer, PeerClosedError, Role

__all__ = [
    "BATCHED_VERSION",
    "CLIENT_CAPABILITIES_KEY",
    "CLIENT_INFO_KEY",
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "LATEST_LEGACY_VERSION",
    "LEGACY_VERSIONS",
    "LOG_LEVEL_KEY",
    "MAX_FRAME",
    "METHOD_NOT_FOUND",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "MODERN_VERSION",
    "MODERN_VERSIONS",
    "PARSE_ERROR",
    "PROTOCOL_VERSION_KEY",
    "REQUEST_CANCELLED",
    "REQUEST_KEYS",
    "RESOURCE_NOT_FOUND",
    "SERVER_INFO_KEY",
    "SUBSCRIPTION_ID_KEY",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "URL_ELICITATION_REQUIRED",
    "Batch",
    "Cancelled",
    "Closed",
    "Era",
    "Error",
    "Event",
    "FrameTooLong",
    "Invalid",
    "JsonRpcError",
    "LineFramer",
    "NotAMessage",
    "NotAnObject",
    "Notification",
    "Opening",
    "Peer",
    "PeerClosedError",
    "Progress",
    "Request",
    "Result",
    "Role",
    "RpcError",
    "ScopeError",
    "Unmatched",
    "UpstreamRpcError",
    "initialize_params",
    "is_json",
    "join_object",
    "modern_meta",
    "negotiate",
    "opening_of",
    "progress_token",
    "progress_token_of",
    "quote",
    "read_opening",
    "split_object",
    "stamp_request",
    "stamp_result",
    "unquote",
    "unstamp_request",
    "unsupported_version_error",
    "versions_in",
    "with_members",
    "with_progress_token",
    "without_members",
    "without_progress_token",
]
