"""What the pool says of a server: how it does, and what it offers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mcpzip.model.errors import McpzipError, UpstreamError
from mcpzip.transport.handshake import ServerInfo

State = Literal["connected", "connecting", "idle", "failing", "needs login", "disabled"]

FAILING: tuple[State, ...] = ("failing", "needs login")
"""The states in which a server can't be used, and a person should know."""


@dataclass(frozen=True, slots=True)
class Health:
    """How an upstream is doing, for people. ``reason`` is empty while nothing is wrong."""

    state: State
    reason: str = ""
    retry_in: float = 0.0


@dataclass(frozen=True, slots=True)
class Listing:
    """All tools of one upstream, as raw JSON texts in the upstream's order, and what it says of itself.

    protocol: the version it speaks. ttl: seconds its list is good for, None when it didn't say.
    """

    tools: tuple[bytes, ...]
    protocol: str
    instructions: str
    capabilities: bytes = b"{}"
    info: bytes = b""
    ttl: float | None = None

    @classmethod
    def of(cls, tools: Iterable[bytes], ttl: float | None, greeting: ServerInfo) -> "Listing":
        """What was listed by a server that greeted so."""
        version = greeting.dialect.version
        return cls(tuple(tools), version, greeting.instructions, greeting.capabilities, greeting.info, ttl)


class Rest(NamedTuple):
    """What else an upstream offers: prompts, resources and resource templates, as raw JSON texts. None for
    what it did not tell. over: which of its lists were over a limit, as sentences.
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
