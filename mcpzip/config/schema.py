"""What a config says, once it has been read. Data only; `mcpzip.config.reading` says how a file becomes one.

The rule: nothing that may hold a secret (arguments, environment, URL, headers, keys) shows in a repr.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DEFAULT_LIMIT, MAX_LIMIT = 5, 50
MAX_TOKENS = 1_500
GEMINI_MODEL = "gemini-flash-lite-latest"
LLM_DEADLINE, EMBEDDING_DEADLINE = 3.0, 1.5
"""Seconds."""

IDLE_TIMEOUT, CALL_TIMEOUT = 300.0, 120.0
"""Seconds."""

LONGEST = 365 * 86_400.0
"""Seconds any timeout may last."""

Transport = Literal["stdio", "http", "sse"]
Expose = Literal["meta", "direct", "transparent"]
Provider = Literal["local", "onnx", "ollama", "openai", "off"]


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
    boost: how much search prefers its tools, 0.1 to 10.
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
    boost: float = 1.0
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
class SemanticConfig:
    """What finds tools by what they mean.

    provider: "local" is the table that ships with mcpzip, "onnx" a transformer that runs here, "ollama" and
    "openai" are servers, of the second's API if not the second's own, "off" is none.
    url: where the server is; "" for the provider's own address. model: None for the provider's default.
    dimensions: to ask the server for, None for as many as the model has. deadline: seconds a query may take.
    query_prefix, document_prefix: what the model wants before a text; None for what it is known to want.
    """

    provider: Provider = "local"
    url: str = field(default="", repr=False)
    model: str | None = None
    api_key: Secret | None = None
    dimensions: int | None = None
    deadline: float = EMBEDDING_DEADLINE
    query_prefix: str | None = None
    document_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """How tools are searched.

    default_limit: tools an answer has, if nobody says otherwise. max_tokens: tokens it may take. learn:
    whether tools that were used before rise. model: of Gemini; None asks no model, key or not.
    llm_deadline: seconds it may take. threshold: the cosine similarity (0 to 1) below which a tool that was
    found by its meaning alone is left out; None leaves that to the tier.
    """

    default_limit: int = DEFAULT_LIMIT
    max_tokens: int = MAX_TOKENS
    learn: bool = True
    model: str | None = GEMINI_MODEL
    llm_deadline: float = LLM_DEADLINE
    semantic: SemanticConfig = SemanticConfig()
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
