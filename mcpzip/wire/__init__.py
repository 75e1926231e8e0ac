"""JSON-RPC and MCP without I/O: bytes in, events out; commands in, bytes out.

    client, server = Peer(role=Role.CLIENT), Peer(role=Role.SERVER)
    number, line = client.request("tools/call", b'{"name":"add"}')      # bytes for whoever does the I/O
    for event in server.receive(line):                                  # any split gives the same events
        match event:
            case Request(id, "tools/call", params):
                line = server.result(id, b'{"content":[]}')             # b"" had it been cancelled meanwhile
            case Invalid(id, code, message):
                line = server.error(id, code, message)
    assert client.receive(line) == [Result(number, b'{"content":[]}')]  # the same bytes
    assert client.eof() == [Closed(())]                                 # no request is without an outcome

`params` and `result` are JSON text and pass byte for byte; only the envelope is looked at. `shallow` reads
and edits such texts one level deep, `eras` knows what legacy and modern MCP put in them.
"""

from mcpzip.wire.codes import (
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
from mcpzip.wire.eras import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LATEST_LEGACY_VERSION,
    LEGACY_VERSIONS,
    LOG_LEVEL_KEY,
    MODERN_VERSION,
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
from mcpzip.wire.events import (
    Cancelled,
    Closed,
    Error,
    Event,
    Invalid,
    Junk,
    Notification,
    Progress,
    Request,
    Result,
    RpcError,
    Stray,
)
from mcpzip.wire.framing import MAX_FRAME, FrameTooLong, LineFramer
from mcpzip.wire.peer import Peer, PeerClosedError, Role
from mcpzip.wire.shallow import (
    NotAnObject,
    is_json,
    join_object,
    quote,
    split_object,
    unquote,
    with_members,
    without_members,
)

__all__ = [
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
    "Cancelled",
    "Closed",
    "Era",
    "Error",
    "Event",
    "FrameTooLong",
    "Invalid",
    "Junk",
    "LineFramer",
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
    "Stray",
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
