"""Error codes of JSON-RPC 2.0 (§5.1), MCP 2026-07-28 (`basic/index`) and legacy MCP."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

HEADER_MISMATCH = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

RESOURCE_NOT_FOUND = -32002
"""Legacy only; a modern server answers INVALID_PARAMS with ``data.uri``."""
URL_ELICITATION_REQUIRED = -32042
"""Legacy only; a modern server answers ``input_required``."""
REQUEST_CANCELLED = -32800
"""Not in a specification: the code that implementations use for a cancelled request."""
