"""The tables and keys of a subject file, as types.

The rule: these are the file's tables, key by key. What follows from several keys, such as the default of
``config.upstream``, is in `subject`; errors are in `validation`.
"""

import re
from collections.abc import Mapping

from msgspec import UNSET, Struct

FEATURES: Mapping[str, str] = {
    "modern": "speaks protocol version 2026-07-28",
    "stdio": "is reached over stdio",
    "shared": "serves several clients at the same time",
    "http": "is reached over Streamable HTTP",
    "several-servers": "connects to more than one server at a time",
    "owns-servers": "starts the servers itself and controls their environment",
    "describe": "shows a tool's definition as its server wrote it",
    "search": "finds tools by a query",
    "search-limit": "takes a limit with a query",
    "meta-tools": "runs tools through a tool of its own",
    "rest": "gives the whole of a large result of which it first gave a part",
    "programs": "runs programs that call the tools of its servers",
    "resources": "offers the resources of its servers",
    "prompts": "offers the prompts of its servers",
    "completion": "passes on requests for completions",
    "progress": "passes on progress",
    "cancellation": "passes on that a request was cancelled",
    "logging": "passes on log messages",
    "sampling": "passes on a server's requests for sampling",
    "elicitation": "passes on a server's questions to the user",
    "roots": "passes on a server's request for roots",
    "list-changed": "notices that a server's lists have changed",
    "subscriptions": "passes on subscriptions to resources",
    "people": "tells people apart by their tokens",
    "issuer": "requires tokens of an authorization server, which the runner plays",
    "replicas": "serves from several processes, to any of which each request may go",
    "key-rotation": "has a key that is replaced while it serves",
    "versions": "serves from processes of two versions at the same time",
    "store": "has a store that all of its processes share",
}
"""The features that a check can need and a subject can lack."""

TRANSPORTS = ("stdio", "http", "sse")
SERVED = ("http", "sse")
"""The transports of a subject that serves over HTTP."""
LANGUAGES = ("python", "javascript")
"""The languages in which the checks can write a program (`program`)."""
PROCESSES = ("one", "per-client", "per-capabilities")


_NPM_PIN = re.compile(
    r"(?P<name>(?:@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*)@"
    r"(?P<version>\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?|file:[^\x00-\x1f]+)",
    re.IGNORECASE,
)


def npm_parts(pin: str) -> tuple[str, str]:
    """The name and the version of ``NAME@VERSION``. A version is exact, as in ``1.2.3``, or the ``file:`` of
    a package on this machine. Raises ValueError."""
    found = _NPM_PIN.fullmatch(pin)
    if found is None:
        raise ValueError(f"{pin!r} is not NAME@VERSION with one version, such as mcp-remote@0.15.1")
    return found["name"], found["version"]


class Install(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Its packages, of one registry. pip: pinned requirements, from PyPI. npm: ``NAME@VERSION``, one version
    each. lock: their ``package-lock.json``; "" to have npm choose the versions of what they need."""

    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    lock: str = ""

    @property
    def pins(self) -> tuple[str, ...]:
        """The packages of either."""
        return self.pip or self.npm


class Start(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Its command. env: added to a minimal environment.

    url: its URL if it serves over HTTP; "" for stdio. transport: ``http`` for Streamable HTTP, or ``sse`` for
    HTTP+SSE, the transport of 2024-11-05. up: a regular expression for the line that it prints when it
    accepts connections, "" to try its port; group 1, if there is one, is the URL.
    """

    command: tuple[str, ...]
    env: dict[str, str] = {}
    url: str = ""
    transport: str = "http"
    up: str = ""

    def __post_init__(self) -> None:
        if self.transport not in SERVED:
            raise ValueError(f"transport is {self.transport!r}; write {' or '.join(SERVED)}")


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Its config. template: the whole file, with ``{servers}`` for the servers.

    servers: ``object`` (name -> entry) or ``list``; stdio, http, sse: the entry of one server by its
    transport; a missing one can't be configured. upstream: the transport of the servers; "" for the
    default (`subject.Subject.upstream`).
    """

    file: str = "config.json"
    template: object
    servers: str = "object"
    stdio: object = UNSET
    http: object = UNSET
    sse: object = UNSET
    upstream: str = ""

    def __post_init__(self) -> None:
        if self.servers not in ("object", "list"):
            raise ValueError(f"servers is {self.servers!r}; write object or list")
        if self.upstream not in ("", *TRANSPORTS):
            raise ValueError(f"upstream is {self.upstream!r}; write {', '.join(TRANSPORTS)}")

    def entries(self) -> tuple[str, ...]:
        """The transports that have an entry."""
        return tuple(transport for transport in TRANSPORTS if getattr(self, transport) is not UNSET)


class Meta(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A meta-tool: its name; alone: its name with one server only, if different; and a template of its
    arguments."""

    tool: str
    alone: str = ""
    arguments: object


class Run(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that runs a tool. result: the dotted path of the server's result in its result; text: the
    path if only the server's text is there; both "" if it is the result itself."""

    result: str = ""
    text: str = ""


class Search(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that finds tools. names: a regular expression; group 1 of each match in the reply's text
    is a tool's name, best first. ``^`` and ``$`` match at lines."""

    names: str


class Describe(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that shows one tool. definition: a regular expression; its group 1 is the definition as
    JSON, or a list of several, in the reply's text; "" if the tool is shown in a form of its own."""

    definition: str = ""


class Rest(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that gives the whole of a large result of which a call gave only a part. handle: a
    regular expression; its group 1, in the text of the call's result, is the handle."""

    handle: str


class Resume(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool by which a client approves the call for which a program waits, so that the program goes
    on; its answer is the program's. handle: a regular expression; its group 1, in the text of the waiting
    program's answer, is the handle of that."""

    handle: str


class Program(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that runs a program, and how a program calls a tool: code in its language.

    call: the expression of a call; value: the data in its value: ``structuredContent``, else the text;
    failed: true of the value of a failed call, "" if that raises an exception; together: the expression of
    the values of several calls that are made at the same time, "" for none, and each: one of those calls, ""
    if as ``call``; returns: the statement with which a program ends and has a value; resume: None if a
    program never waits for an approval, or asks for it by elicitation.
    """

    language: str
    call: str
    value: str = "{value}"
    failed: str = ""
    together: str = ""
    each: str = ""
    returns: str = "return {value}"
    resume: Resume | None = None

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ValueError(f"language is {self.language!r}; write {' or '.join(LANGUAGES)}")


class Tools(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a tool is called. names: its name for clients; alone: with one server only; shared: if another
    server has a tool of that name; if these differ. With ``call`` through that meta-tool, else directly.
    hidden: `tools/list` doesn't show them, and they can be called by their names nevertheless.
    rest: how large results are asked for that a call gives only a part of. program: how programs are run that
    call tools. refresh: a tool of the subject's
    own by which a client has it list its servers again. own_meta: the prefix of ``_meta`` keys that the
    subject adds to results."""

    names: str = "{server}__{tool}"
    alone: str = ""
    shared: str = ""
    hidden: bool = False
    call: Run | None = None
    search: Search | None = None
    describe: Describe | None = None
    rest: Rest | None = None
    program: Program | None = None
    refresh: Meta | None = None
    own_meta: tuple[str, ...] = ()


class Prompts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The client's name of a prompt; alone: with one server only, if different."""

    names: str
    alone: str = ""


class Resources(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The client's URI of a resource; alone: with one server only, if different."""

    uris: str
    alone: str = ""


class Shared(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """That it serves several clients at the same time: over HTTP by one process, over stdio if its command is
    started several times with the same config and home.

    processes: which processes of a server the calls of several clients go to: ``one`` for all, one
    ``per-client``, or one for all clients with the same capabilities (``per-capabilities``); "" isn't
    checked.
    """

    processes: str = ""

    def __post_init__(self) -> None:
        if self.processes not in ("", *PROCESSES):
            raise ValueError(f"processes is {self.processes!r}; write {', '.join(PROCESSES)}")


class Authorization(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """That it is an OAuth resource server, whose authorization server the runner plays.

    resource: the URL for which tokens have to be, "" for its own (``start.url``); scope: a scope that a token
    needs, "" for none; claims: what its tokens have besides ``iss``, ``sub``, ``aud``, ``exp``, ``iat``,
    ``jti``, ``client_id`` and ``scope``; typ: of the header of a token.
    """

    resource: str = ""
    scope: str = ""
    claims: dict[str, object] = {}
    typ: str = "at+jwt"


class Change(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is different of a process that is started again. config: laid over ``config.template``: tables key
    by key, anything else replaced; env: more variables; command: instead of ``start.command``, () for the
    same."""

    config: dict[str, object] = {}
    env: dict[str, str] = {}
    command: tuple[str, ...] = ()


class Store(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The store that all of its processes share. command: starts one for each check, which takes connections
    on ``{store_port}``, and may keep files in ``{store_folder}``; or address: ``HOST:PORT`` of one that
    runs."""

    command: tuple[str, ...] = ()
    address: str = ""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.address):
            raise ValueError("it has both" if self.address else "it has no command")
        host, colon, port = self.address.rpartition(":")
        if self.address and not (host and colon and port.isdecimal() and 0 < int(port) < 65_536):
            raise ValueError(f"{self.address!r} is no address; write HOST:PORT")


class Replicas(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """That its command can be started several times, and each request may go to any of these processes.

    count: how many the checks start; key_rotation: how the key is replaced: the changes, in order, with each
    of which all processes are started again one after another, the last without the former key;
    other_version: the change that makes a process one of another version; store: that all of them share,
    None for none.
    """

    count: int = 2
    key_rotation: tuple[Change, ...] = ()
    other_version: Change | None = None
    store: Store | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.count <= 4:
            raise ValueError(f"count is {self.count}; write 2, 3 or 4")


class Declared(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file, or one variant of it. id: the file's name without its ending, with ``:VARIANT`` if it has
    variants; version, homepage: for reports; not_run: why it was never run, "" otherwise; lacks: feature ->
    why, as a sentence."""

    id: str
    title: str
    about: str = ""
    version: str = ""
    homepage: str = ""
    not_run: str = ""
    install: Install | None = None
    start: Start
    config: Config | None = None
    tools: Tools
    prompts: Prompts | None = None
    resources: Resources | None = None
    shared: Shared | None = None
    authorization: Authorization | None = None
    replicas: Replicas | None = None
    lacks: dict[str, str] = {}
