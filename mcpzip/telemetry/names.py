"""The names of spans, attributes and metrics (pure).

Those of MCP are OpenTelemetry's conventions for generative AI (open-telemetry/semantic-conventions-genai,
docs/gen-ai/mcp.md, status "Development", as of May 2026). There are none for tools that call tools: names
that begin with ``mcpzip.`` are ours.
"""

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

SCHEMA = "https://opentelemetry.io/schemas/gen-ai/mcp/2026-05"
"""Which version of the conventions, for whoever reads the instrumentation scope."""

METHOD = "mcp.method.name"
TOOL = "gen_ai.tool.name"
PROMPT = "gen_ai.prompt.name"
OPERATION = "gen_ai.operation.name"
EXECUTE_TOOL = "execute_tool"
RESOURCE = "mcp.resource.uri"
REQUEST_ID = "jsonrpc.request.id"
VERSION = "mcp.protocol.version"
ERROR = "error.type"
STATUS_CODE = "rpc.response.status_code"
NETWORK = "network.transport"
ADDRESS, PORT = "server.address", "server.port"

SERVER = "mcpzip.server"
"""The name that the config gives an upstream server."""
TARGET_SERVER, TARGET_TOOL = "mcpzip.target.server", "mcpzip.target.tool"
"""On the span of a meta-tool: what it called last."""

SERVER_DURATION = "mcp.server.operation.duration"
CLIENT_DURATION = "mcp.client.operation.duration"
SERVER_SESSION = "mcp.server.session.duration"
CLIENT_SESSION = "mcp.client.session.duration"
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds, as the conventions have them."""
SESSION_BUCKETS = (1, 10, 60, 300, 900, 3_600, 14_400, 43_200, 86_400)
"""Seconds. The buckets of the conventions end at five minutes; agents stay for hours."""

OTHER = "_OTHER"
"""For what has too many values to be an attribute of a metric (attribute ``error.type`` of the conventions
has the same word).
"""
TOOL_ERROR = "tool_error"
"""`error.type` of a result with ``isError``."""
LOST = "connection_lost"
"""`error.type` of a session with a server that has ended although nobody closed it."""
PIPE, TCP = "pipe", "tcp"
"""`network.transport` on stdio and over HTTP."""

METHODS = frozenset(
    {
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
        "logging/setLevel",
        "subscriptions/listen",
    }
)
"""The methods that are told apart; any other is `OTHER`."""

CLIENT_MISTAKES = frozenset({-32700, -32600, -32601, -32602, -32002})
"""Codes of errors that are no error of the server's span: the client asked wrongly."""
KNOWN_CODES = frozenset(
    {
        PARSE_ERROR,
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
        INVALID_PARAMS,
        INTERNAL_ERROR,
        HEADER_MISMATCH,
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        UNSUPPORTED_PROTOCOL_VERSION,
        RESOURCE_NOT_FOUND,
        URL_ELICITATION_REQUIRED,
        REQUEST_CANCELLED,
        -32000,
        -32001,
    }
)
"""The codes of errors that metrics tell apart, because a server may send any number as one: those of JSON-RPC
and of MCP, and the first two of those that JSON-RPC leaves to servers. Spans have each code.
"""
LONGEST = 200
"""Characters of a value that a client or a server chooses."""


def method_name(method: str) -> str:
    """``method``, or `OTHER` for one that nobody knows."""
    return method if method in METHODS else OTHER


def measured_code(code: int) -> str:
    """The code of an error as `error.type` of a metric."""
    return str(code) if code in KNOWN_CODES else OTHER
