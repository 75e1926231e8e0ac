"""The contents of a config as data. `mcpzip.config.reading` reads them from a file.

The rule: values that may hold a secret (arguments, environment, URL, headers, keys) are left out of reprs.
Creating a `Secret` registers its text for redaction (`mcpzip.model.redaction`).
"""

import hashlib
from collections.abc import Mapping
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from mcpzip.config.paths import state_path
from mcpzip.model.redaction import register

DEFAULT_LIMIT, MAX_LIMIT = 5, 50
MAX_TOKENS = 1_500
GEMINI_MODEL = "gemini-flash-lite-latest"
LLM_DEADLINE, EMBEDDING_DEADLINE = 3.0, 1.5
"""Seconds."""

IDLE_TIMEOUT, CALL_TIMEOUT, DAEMON_IDLE = 300.0, 120.0, 300.0
RESULT_TOKENS = 10_000
"""Seconds."""

LONGEST = 365 * 86_400.0
"""The maximum of every timeout, in seconds."""

Transport = Literal["stdio", "http", "sse"]
Share = Literal["auto", "always", "never", "per-cwd"]
Trust = Literal["pin", "strict", "open"]
Expose = Literal["meta", "direct", "transparent"]
Provider = Literal["local", "onnx", "ollama", "openai", "off"]
EMBEDDERS: tuple[Provider, ...] = ("onnx", "ollama", "openai")
"""Those that are not part of mcpzip itself."""
AuthGrant = Literal["authorization_code", "client_credentials"]
AuthStore = Literal["file", "keyring"]
LogLevel = Literal["debug", "info", "warning", "error", "off"]
Decision = Literal["allow", "ask", "deny"]
"""What happens to a call: it runs, a person is asked before, or it is refused."""
StoreFailure = Literal["local", "deny"]
"""What happens while the store can't count calls: each process counts by itself, or calls are refused."""
DECISIONS: tuple[Decision, ...] = get_args(Decision)
"""The mildest first."""


class Secret:
    """A text that only `reveal` returns; mcpzip redacts it in its own messages."""

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


class AuthConfig(msgspec.Struct, frozen=True):
    """The OAuth settings of one server over HTTP.

    client_id, client_secret: of a client registered by hand; if "" and None, mcpzip registers itself.
    issuer: the only authorization server that may be used; "" for any that the server names.
    client_metadata_url: the URL of a client ID metadata document, which is the client ID if the authorization
    server supports that. scope: the scope to request; None for the one that the server names. grant: how the
    token is obtained: a person's consent, or client credentials (RFC 6749, 4.4). private_key: path of the PEM
    file that signs client assertions (RFC 7523) with ``algorithm``; "" to use the client secret.
    callback_port: port of the redirect URI; 0 for any. mcp_remote: whether a sign-in of mcp-remote for this
    server may be used. per_user: whether each person of ``http`` signs in, on the page, and uses nothing of
    another one.
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
    per_user: bool = False


class FlowConfig(msgspec.Struct, frozen=True):
    """A flow between servers. source, target: globs of servers, or of tools with their server. decision:
    about calls of ``target`` in a session that has seen something of ``source``.
    """

    source: str
    target: str
    decision: Decision


class PolicyConfig(msgspec.Struct, frozen=True):
    """What is decided about calls, by one ``policy`` of the config.

    default: for tools of whose class nothing is said; None if that isn't said either. classes: the decision
    by class. tools: the decision by a glob over names of tools, in the order of the file; in the policy of a
    server without its name. flows: only in the policy of all servers.
    """

    default: Decision | None = None
    classes: tuple[tuple[str, Decision], ...] = ()
    tools: tuple[tuple[str, Decision], ...] = ()
    flows: tuple[FlowConfig, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return self.default is None and not (self.classes or self.tools or self.flows)


NO_POLICY = PolicyConfig()
AUDIT_STDOUT = "stdout"


class AuditConfig(msgspec.Struct, frozen=True):
    """The audit log. path: of its file; "" for the usual one. values: whether arguments are in it. to: "" for
    the file, `AUDIT_STDOUT`, or the URL of a database of PostgreSQL.
    """

    path: str = ""
    values: bool = False
    to: str = ""


class IntrospectionConfig(msgspec.Struct, frozen=True):
    """How an issuer is asked about opaque tokens (RFC 7662): its endpoint, and our credentials there."""

    endpoint: str
    client_id: str
    client_secret: Secret


class IssuerConfig(msgspec.Struct, frozen=True):
    """An authorization server whose access tokens are accepted over HTTP.

    issuer: its identifier. scopes: that every token has to have. groups_claim, name_claim: the claims with
    the groups and the name of a person; ``a.b`` is a member of a claim; "" for the usual ones. token_type:
    the ``typ`` of its tokens; "" for any of an access token. algorithms: that its keys may be used with; ()
    for all that they are for. jwks_uri: of its keys; "" to discover it. introspection: None for an issuer of
    JWTs.
    """

    issuer: str
    scopes: tuple[str, ...] = ()
    groups_claim: str = "groups"
    name_claim: str = ""
    token_type: str = ""
    algorithms: tuple[str, ...] = ()
    jwks_uri: str = ""
    introspection: IntrospectionConfig | None = None


class PageConfig(msgspec.Struct, frozen=True):
    """The page for those who may call over HTTP. listen: the address, as ``[HOST:]PORT``. public_url: the
    origin by which browsers reach it; "" for the address itself. client_id, client_secret: the client that
    the page is at ``issuer``, where people sign in to it; "" for a page without that, None for a client
    without a secret. scopes: to ask for there.
    """

    listen: str
    public_url: str = ""
    issuer: str = ""
    client_id: str = ""
    client_secret: Secret | None = None
    scopes: tuple[str, ...] = ()


class HttpConfig(msgspec.Struct, frozen=True):
    """Who may call over HTTP. public_url: by which clients reach mcpzip, and which tokens have to be for;
    without a slash at its end. issuers: whose tokens are accepted. api_keys: the path of the file of API
    keys; "" for none. page: None for none.
    """

    public_url: str = ""
    issuers: tuple[IssuerConfig, ...] = ()
    api_keys: str = ""
    page: PageConfig | None = None

    @property
    def has_people(self) -> bool:
        """Whether every request has to say who makes it."""
        return bool(self.issuers or self.api_keys)


class ReplicasConfig(msgspec.Struct, frozen=True):
    """What several processes share that serve this config over HTTP. keys: base64 of the keys of their ring.
    listen: the private address, ``[HOST:]PORT``, at which the others reach this one; "" for none. address:
    HOST or HOST:PORT by which they do; "" for that of ``listen``. drain: seconds that calls under way are
    given when it ends.
    """

    keys: tuple[Secret, ...]
    listen: str = ""
    address: str = ""
    drain: float = 20.0


class AccessRule(msgspec.Struct, frozen=True):
    """What some people may use, or not. allows: which of the two. targets: globs of servers, or with ``__``
    of tools. groups: in one of which they have to be; None for everybody. scopes: all of which their tokens
    need. risk: the classes of the tools that are meant; None for all.
    """

    allows: bool
    targets: tuple[str, ...]
    groups: frozenset[str] | None = None
    scopes: tuple[str, ...] = ()
    risk: frozenset[str] | None = None


class TelemetryConfig(msgspec.Struct, frozen=True):
    """Where traces and metrics go. otlp: the URL of a collector that takes OTLP over HTTP; "" for that of the
    environment, None for none. listen: the address, as ``[HOST:]PORT``, of `/metrics`, `/healthz` and
    `/readyz`; "" for none. baggage: whether the baggage of clients is passed on to servers.
    """

    otlp: str | None = None
    listen: str = ""
    baggage: bool = False


class RateLimit(msgspec.Struct, frozen=True):
    """How many calls or requests each person may make. of: globs of servers, or with ``__`` of tools, which
    are counted together. calls, seconds: so many at once, and as many again in this time; 0 calls for no such
    limit. concurrent: so many at a time; None for any number. groups: whom it is for; None for everybody.
    if_store_fails: while the store can't count calls, each process does ("local"), or they are refused.
    requests: as calls, but of HTTP requests of any kind; 0 for a limit of calls.
    """

    of: tuple[str, ...] = ("*",)
    calls: int = 0
    seconds: float = 60.0
    concurrent: int | None = None
    groups: frozenset[str] | None = None
    if_store_fails: StoreFailure = "local"
    requests: int = 0


class ResultsConfig(msgspec.Struct, frozen=True):
    """Which results of tools are kept. keep: tokens of a result up to which it is sent whole; None if none is
    kept. tools: the same by a glob over names of tools with their server.
    """

    keep: int | None = RESULT_TOKENS
    tools: tuple[tuple[str, int | None], ...] = ()


class CodeConfig(msgspec.Struct, frozen=True):
    """Whether agents may run programs (`run_code`). effects: what happens to calls of a program that may do
    more than read and that no policy allows. allow: globs over names of tools with their server, of calls
    that run all the same.
    """

    enabled: bool = False
    effects: Decision = "ask"
    allow: tuple[str, ...] = ()


class ServerConfig(msgspec.Struct, frozen=True):
    """One upstream: how to connect to it, and which of its tools may be used.

    name: a valid server name. transport: decides which of the following fields are used.
    command, args, env, cwd: stdio. ``env`` is added to what the server inherits; ``cwd`` None is mcpzip's
    working folder. url, headers: http and sse. headers_command: a program, with its arguments, that prints
    more headers; () for none. auth: None for a server that doesn't use OAuth.
    disabled: whether the server is ignored. timeout: seconds that a call may take; None for the config's.
    tools_allow: globs over the upstream's own tool names; None allows every tool. tools_deny: globs that
    override it. pin: globs over the upstream's own tool names; these tools are also shown directly.
    policy: what is decided about calls of its tools. risk: their classes by glob, instead of their own hints.
    boost: how much search prefers the server's tools, 0.1 to 10. share: whether several clients use one
    connection to it: see `proxy.sharing`. trust: which changes of what it offers wait for a person: see
    `pins.decision`.
    inherit_env: globs over the variables of mcpzip's environment that the server inherits besides
    `system.environment.PASSED_ON`. withheld_env: variables to which only other servers refer; no glob matches
    them. problem: why the server can't be used and what to do, as a sentence without its name; None if it can
    be used.
    unset: the variables to which it refers and which are not set. written: the settings of the connection as
    they are in the file, as JSON text, if they refer to variables; else "".
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    headers_command: tuple[str, ...] = ()
    auth: AuthConfig | None = None
    disabled: bool = False
    timeout: float | None = None
    tools_allow: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    boost: float = 1.0
    share: Share = "auto"
    trust: Trust = "pin"
    policy: PolicyConfig = NO_POLICY
    risk: tuple[tuple[str, tuple[str, ...]], ...] = ()
    inherit_env: tuple[str, ...] = ()
    withheld_env: frozenset[str] = frozenset()
    problem: str | None = None
    unset: tuple[str, ...] = ()
    written: str = ""

    def __repr__(self) -> str:
        """Without what may be secret."""
        return f"ServerConfig({self.name!r})"

    @property
    def per_user(self) -> bool:
        """Whether each person of ``http`` signs in to it, and has connections of their own."""
        return self.auth is not None and self.auth.per_user

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that change with the settings of the connection, because what is cached of the
        server may then be wrong. 32 bits are enough to detect a change, and too few to recover a token from.

        Variables count by their names, because processes with different environments share the cache.
        """
        parts = ("written", self.written, *self.inherit_env) if self.written else self.settings
        framed = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings of the connection, with the values of variables. They may be secret."""
        return (
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

    @property
    def _sign_in(self) -> tuple[str, ...]:
        """The sign-in settings; () if there are none, so that older configs keep their fingerprints."""
        command = ("headersCommand", *self.headers_command) if self.headers_command else ()
        if self.auth is None:
            own = self.transport == "stdio" or any(name.lower() == "authorization" for name in self.headers)
            return command if own else (*command, "auth", "false")
        auth = replace(self.auth, callback_port=0, mcp_remote=True, per_user=False)
        if auth == AuthConfig():
            return command
        secret = auth.client_secret.reveal() if auth.client_secret else ""
        return (
            *command,
            "auth",
            *(auth.client_id, secret, auth.client_metadata_url, auth.scope or "", auth.grant),
            *(auth.private_key, auth.algorithm, auth.issuer),
        )


class SemanticConfig(msgspec.Struct, frozen=True):
    """The semantic search tier.

    provider: "local" is the table of word vectors that ships with mcpzip, "onnx" a local transformer;
    "ollama" and "openai" are servers with these APIs; "off" is no semantic search.
    url: the server's address; "" for the provider's default. model: None for the provider's default.
    dimensions: length of the vectors to request; None for the model's own. deadline: seconds that a query may
    take. query_prefix, document_prefix: text put before each text; None for the model's usual prefix.
    """

    provider: Provider = "local"
    url: str = ""
    model: str | None = None
    api_key: Secret | None = None
    dimensions: int | None = None
    deadline: float = EMBEDDING_DEADLINE
    query_prefix: str | None = None
    document_prefix: str | None = None

    def __repr__(self) -> str:
        """Without what may be secret."""
        return f"SemanticConfig({self.provider!r})"


Learn = Literal[True, False, "calls"]


class SearchConfig(msgspec.Struct, frozen=True):
    """The search settings.

    default_limit: maximum number of tools in a reply, unless the request has a limit. max_tokens: maximum of
    tokens in a reply. learn: whether tools that were called before rank higher; "calls": only by that, not by
    the words of the searches before. model: of Gemini; None for no
    model, even with a key. llm_deadline: seconds that the model may take. threshold: the cosine similarity (0
    to 1) below which tools that only the semantic tier found are left out; None for the tier's own. details:
    whether results have scores in their `_meta`.
    """

    default_limit: int = DEFAULT_LIMIT
    max_tokens: int = MAX_TOKENS
    learn: Learn = True
    model: str | None = GEMINI_MODEL
    llm_deadline: float = LLM_DEADLINE
    semantic: SemanticConfig = SemanticConfig()
    threshold: float | None = None
    details: bool = False


class StoreConfig(msgspec.Struct, frozen=True):
    """A store that processes share. url: of its kind and place, with a password. keys: they seal what lies in
    it, in the form of `mcpzip.system.sealing.read_key`. namespace: the first part of all names in it.
    """

    url: str
    keys: tuple[Secret, ...]
    namespace: str = "mcpzip"

    def __repr__(self) -> str:
        """Without what may be secret."""
        return f"StoreConfig({self.namespace!r})"


class Config(msgspec.Struct, frozen=True):
    """A config file. ``path`` is absolute; the timeouts are in seconds; ``warnings`` are sentences.

    expose: how clients are shown the tools. split: whether `execute_read_tool` is among the meta-tools; only
    with "meta". shared: whether `mcpzip serve` over stdio is served by the daemon; else each serves its agent
    itself. daemon_idle: seconds that the daemon stays after its last client has left; 0 ends it at once.
    daemon_http: the address at which it serves clients over HTTP too, as ``[HOST:]PORT``; "" for none.
    policy: what is decided about calls of tools of any server. audit: None for no audit log. results: which
    results of tools are kept. code: whether `run_code` is among the meta-tools; only with "meta". telemetry:
    None for none. http: who may call over HTTP. access: what they may use; None for everything. rate_limits:
    how many calls they may make. replicas: None for one process. store: None for none. auth_store: where
    sign-ins are stored. log_level: the lowest level of what the log has. project: the path of the project's
    file that is used too, or "". project_servers: the names of the servers in it. variables: of the
    environment, to which the files refer, or that override a setting. notes: those warnings that
    `proxy_status` gives too.
    """

    path: str
    servers: Mapping[str, ServerConfig]
    search: SearchConfig = SearchConfig()
    idle_timeout: float = IDLE_TIMEOUT
    call_timeout: float = CALL_TIMEOUT
    gemini_api_key: Secret | None = None
    expose: Expose = "meta"
    split: bool = False
    shared: bool = True
    daemon_idle: float = DAEMON_IDLE
    daemon_http: str = ""
    policy: PolicyConfig = NO_POLICY
    audit: AuditConfig | None = None
    results: ResultsConfig = ResultsConfig()
    code: CodeConfig = CodeConfig()
    http: HttpConfig = HttpConfig()
    access: tuple[AccessRule, ...] | None = None
    rate_limits: tuple[RateLimit, ...] = ()
    replicas: ReplicasConfig | None = None
    telemetry: TelemetryConfig | None = None
    store: StoreConfig | None = None
    auth_store: AuthStore = "file"
    log_level: LogLevel = "info"
    warnings: tuple[str, ...] = ()
    project: str = ""
    project_servers: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def has_remote_tiers(self) -> bool:
        """Whether a search asks a service, or a model that an extra brings."""
        return self.search.semantic.provider in EMBEDDERS or bool(self.gemini_api_key and self.search.model)

    @property
    def has_policy(self) -> bool:
        """Whether anything is decided about calls."""
        return not (self.policy.is_empty and all(each.policy.is_empty for each in self.servers.values()))

    @property
    def state_path(self) -> str:
        """The path from which the names of the cache files derive (`paths.state_path`)."""
        return state_path(self.path, self.project)
