"""What a config says, once it has been read. Data only; `mcpzip.config.reading` says how a file becomes one.

The rule: nothing that may hold a secret (arguments, environment, URL, headers, keys) shows in a repr.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from mcpzip.model.redaction import register

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
AuthGrant = Literal["authorization_code", "client_credentials"]
AuthStore = Literal["file", "keyring"]


class Secret:
    """A text that is shown only to who asks for it by name, and left out of whatever mcpzip says."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text
        register(text)

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
class AuthConfig:
    """How to sign in to one server over HTTP, once it asks for it.

    client_id, client_secret: of a client that was registered by hand; "" and None leave that to us.
    issuer: of the only authorization server that may be signed in to; "" for whichever the server names.
    client_metadata_url: of a client ID metadata document, which is then our client ID where the server takes
    such. scope: to ask for; None for what the server says. grant: how a token is had: by a person, or by this
    machine's own credentials (RFC 6749, 4.4). private_key: path of a PEM file with which the machine signs
    (RFC 7523), in ``algorithm``; "" for the client secret. callback_port: on which the person's browser comes
    back; 0 for any. mcp_remote: whether what mcp-remote keeps for this very server is taken over.
    """

    client_id: str = ""
    client_secret: Secret | None = None
    issuer: str = ""
    client_metadata_url: str = ""
    scope: str | None = None
    grant: AuthGrant = "authorization_code"
    private_key: str = ""
    algorithm: str = "ES256"
    callback_port: int = 0
    mcp_remote: bool = True


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One upstream: how to reach it, and what of it may be used.

    name: a legal server name. transport: which of the fields below hold (the others are empty).
    command, args, env, cwd: stdio. ``env`` is what the config adds; ``cwd`` None is the folder we run in.
    url, headers: http and sse. headers_command: a program, with its arguments, that prints more headers; ()
    for none. auth: how to sign in; None for a server that is not signed in to with OAuth.
    disabled: kept in the config, not to be used. timeout: seconds a call may take, None for the config's.
    tools_allow: globs over the upstream's own tool names; None allows every tool. tools_deny: wins over them.
    pin: globs over the upstream's own tool names; these tools are also shown directly.
    boost: how much search prefers its tools, 0.1 to 10.
    inherit_env: globs over the variables of mcpzip's environment that it gets besides `PASSED_ON`.
    withheld_env: variables that the entries of other servers refer to; a glob doesn't pass them on.
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
    headers_command: tuple[str, ...] = field(default=(), repr=False)
    auth: AuthConfig | None = None
    disabled: bool = False
    timeout: float | None = None
    tools_allow: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    boost: float = 1.0
    inherit_env: tuple[str, ...] = ()
    withheld_env: frozenset[str] = frozenset()
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
            *(("inheritEnv", *self.inherit_env) if self.inherit_env else ()),
            self.cwd or "",
            self.url,
            "headers",
            *(text for pair in sorted(self.headers.items()) for text in pair),
            *self._sign_in,
        )
        framed = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    @property
    def _sign_in(self) -> tuple[str, ...]:
        """What of how to sign in was configured; () when nothing was, as in every older config."""
        command = ("headersCommand", *self.headers_command) if self.headers_command else ()
        if self.auth is None:
            own = self.transport == "stdio" or any(name.lower() == "authorization" for name in self.headers)
            return command if own else (*command, "auth", "false")
        auth = replace(self.auth, callback_port=0, mcp_remote=True)
        if auth == AuthConfig():
            return command
        secret = auth.client_secret.reveal() if auth.client_secret else ""
        return (
            *command,
            "auth",
            *(auth.client_id, secret, auth.client_metadata_url, auth.scope or "", auth.grant),
            *(auth.private_key, auth.algorithm, auth.issuer),
        )


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
    """A config file. ``path`` is absolute; the timeouts are in seconds; ``warnings`` are sentences.

    auth_store: where sign-ins are kept.
    """

    path: str
    servers: Mapping[str, ServerConfig]
    search: SearchConfig = SearchConfig()
    idle_timeout: float = IDLE_TIMEOUT
    call_timeout: float = CALL_TIMEOUT
    gemini_api_key: Secret | None = None
    expose: Expose = "meta"
    auth_store: AuthStore = "file"
    warnings: tuple[str, ...] = ()
