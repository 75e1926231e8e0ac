"""What a config says, once it has been read. Data only; `mcpzip.config.reading` says how a file becomes one.

The rule: nothing that may hold a secret (arguments, environment, URL, headers, keys) shows in a repr.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DEFAULT_LIMIT = 5
IDLE_TIMEOUT, CALL_TIMEOUT = 300.0, 120.0
"""Seconds."""

LONGEST = 365 * 86_400.0
"""Seconds any timeout may last."""

Transport = Literal["stdio", "http", "sse"]
Expose = Literal["meta", "direct", "transparent"]


class Secret:
    """A text that is shown only to who asks for it by name."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One upstream: how to reach it, and what of it may be used.

    name: a legal server name. transport: which of the fields below hold (the others are empty).
    command, args, env, cwd: stdio. ``env`` is what the config adds; ``cwd`` None is the folder we run in.
    url, headers: http and sse.
    disabled: kept in the config, not to be used. timeout: seconds a call may take, None for the config's.
    tools_allow: globs over the upstream's own tool names; None allows every tool. tools_deny: wins over them.
    pin: globs over the upstream's own tool names; these tools are also shown directly.
    problem: why it can't be used, as a sentence that says what to do; None when it can.
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled: bool = False
    timeout: float | None = None
    tools_allow: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def fingerprint(self) -> str:
        """Eight hex digits over how to connect: when they change, what is remembered of it is doubtful.

        32 bits tell a change well enough, and are too few to find a token from.
        """
        parts = (
            self.transport,
            self.command,
            *self.args,
            "env",
            *(text for pair in sorted(self.env.items()) for text in pair),
            self.cwd or "",
            self.url,
            "headers",
            *(text for pair in sorted(self.headers.items()) for text in pair),
        )
        framed = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """How tools are searched. ``threshold`` is a cosine similarity (0 to 1), None for the tier's own."""

    default_limit: int = DEFAULT_LIMIT
    model: str | None = None
    semantic: str = "local"
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """A config file. ``path`` is absolute; the timeouts are in seconds; ``warnings`` are sentences."""

    path: str
    servers: Mapping[str, ServerConfig]
    search: SearchConfig = SearchConfig()
    idle_timeout: float = IDLE_TIMEOUT
    call_timeout: float = CALL_TIMEOUT
    gemini_api_key: Secret | None = None
    expose: Expose = "meta"
    warnings: tuple[str, ...] = ()
