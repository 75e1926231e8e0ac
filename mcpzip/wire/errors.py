"""The exceptions for JSON-RPC errors (JSON-RPC 2.0, 5.1)."""

from mcpzip.model.errors import McpzipError, UpstreamError
from mcpzip.model.quoting import quoted
from mcpzip.wire.events import RpcError


class JsonRpcError(McpzipError):
    """A request has this error as its response: one of ours, from the peer; or one of the peer's, from us."""

    def __init__(self, error: RpcError) -> None:
        self.error = error
        super().__init__(error.message)


class UpstreamRpcError(UpstreamError):
    """A server's response to a request is this error."""

    def __init__(self, server: str, error: RpcError) -> None:
        self.error = error
        super().__init__(server, f"{quoted(error.message)} ({error.code})")
