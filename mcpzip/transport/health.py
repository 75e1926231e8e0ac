"""The types in which the pool reports a server's health and lists."""

from typing import Literal, NamedTuple

import msgspec

from mcpzip.config import ServerConfig
from mcpzip.model.errors import McpzipError, UpstreamError

State = Literal["connected", "connecting", "idle", "failing", "needs login", "disabled"]

FAILING: tuple[State, ...] = ("failing", "needs login")
"""The states in which a server can't be used and a person should know."""


class Health(msgspec.Struct, frozen=True):
    """A server's state, for people. reason: "" while nothing is wrong. retry_in: seconds."""

    state: State
    reason: str = ""
    retry_in: float = 0.0


def at_start(server: ServerConfig) -> Health:
    """The state of ``server`` before anything is sent to it."""
    if server.disabled:
        return Health("disabled", "it is disabled in the config")
    return Health("failing", server.problem) if server.problem else Health("idle")


class Listing(msgspec.Struct, frozen=True):
    """All tools of one upstream, as raw JSON texts in the upstream's order, and its handshake's contents.

    protocol: the negotiated version. ttl: seconds the list stays valid, None when the server gives no limit.
    """

    tools: tuple[bytes, ...]
    protocol: str
    instructions: str
    capabilities: bytes = b"{}"
    info: bytes = b""
    ttl: float | None = None


class Rest(NamedTuple):
    """The prompts, resources and resource templates of an upstream, as raw JSON texts; None for a list that
    could not be read. over: the lists that exceeded a limit, as sentences.
    """

    prompts: tuple[bytes, ...] | None = ()
    resources: tuple[bytes, ...] | None = ()
    templates: tuple[bytes, ...] | None = ()
    over: tuple[str, ...] = ()


def problem(error: McpzipError) -> str:
    """What is wrong and what to do, without a full stop."""
    if isinstance(error, UpstreamError):
        return f"{error.reason}. {error.remedy}".rstrip(" .")
    return str(error).rstrip(".")
