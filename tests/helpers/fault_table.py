"""The fault table: what a client sees of each fault, over each transport, in each era.

The rule: a row is a fault and what becomes of the one call that meets it; a cell that can't be says why. How
a cell is played, and what holds for every one of them, stands in `fault_player`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from helpers.driver import Json

STDIO, HTTP, SSE = ("stdio legacy", "stdio modern"), ("http legacy", "http modern"), ("sse legacy",)
COLUMNS = STDIO + HTTP + SSE
"""Upstream transport and era. HTTP+SSE is of 2024-11-05: the modern era has no such transport."""


@dataclass(frozen=True)
class Answered:
    """The tool's own answer, as if nothing had been.

    received: how often the server was sent the call; ran: how often the process that answered ran the tool.
    """

    received: int = 1
    ran: int = 1


@dataclass(frozen=True)
class Fails:
    """A result that is an error, of this text. ``{name}`` is the server's, ``{elsewhere}`` where it redirects
    to, ``…`` anything.

    received: how often the server was sent the call.
    """

    text: str
    received: int = 1


@dataclass(frozen=True)
class Refused:
    """The server's own JSON-RPC error."""

    code: int
    message: str
    data: object


@dataclass(frozen=True)
class NoAnswer:
    """Nothing, until the client has had enough: by cancelling, or by its timeout."""


@dataclass(frozen=True)
class Absent:
    """There is no such cell."""

    why: str


Cell = Answered | Fails | Refused | NoAnswer | Absent


@dataclass(frozen=True)
class Row:
    """One fault.

    cells: by column, by transport or under "all"; the narrowest counts. tool: keys of the tool that meets it;
    server: of its scenario; config: of its config. mend: what it takes until the next call works: nothing,
    ``refresh`` (the fault is fixed and the client asks for `proxy_refresh`), ``restart`` (over HTTP somebody
    starts the server again). A server that only ever is starting never gets well.
    """

    name: str
    faults: tuple[Json, ...]
    cells: Mapping[str, Cell]
    tool: Json = field(default_factory=dict)
    server: Json = field(default_factory=dict)
    config: Json = field(default_factory=dict)
    mend: str = ""

    def cell(self, column: str) -> Cell:
        """What stands in ``column``."""
        keys = (column, column.split()[0], "all")
        return next(self.cells[key] for key in keys if key in self.cells)


def fault(kind: str, **options: object) -> Json:
    return {"kind": kind, **options}


def on_call(kind: str, **options: object) -> tuple[Json, ...]:
    """A fault that the first call meets."""
    return (fault(kind, tool="pay", **{"nth": 1, **options}),)


OPEN = "pay may have run: check before calling it again."
"""How a text ends when nobody can know."""
LOST = Fails("{name}: the connection was lost. " + OPEN)
BROKEN = Fails("{name}: the connection was lost. " + OPEN)
CLOSED = Fails("{name}: the server closed the stream. " + OPEN)
UNREADABLE = Fails("{name}: …. " + OPEN)
MORE = " More: mcpzip logs {name} --config …"
EXITED = Fails("{name}: it exited with code 70, saying “panic”. " + OPEN + MORE)
GONE = Fails("{name}: nothing accepts connections at {origin}. Start the server, or fix 'url' in the config.")
STARTING = Fails("{name}: it is still starting.", received=0)

ONLY_STDIO = Absent("it is of pipes and processes: over HTTP nobody of ours starts one")
ONLY_HTTP = Absent("a pipe knows nothing of HTTP")
LEGACY_PROBE = "the modern era begins with server/discover"

SIGN_IN = "It wants a sign-in: put an Authorization header under 'headers' in the config."
LOGIN = (
    "{name}: it needs a login: nobody has signed in. Run: mcpzip auth login {name} --config …. "
    "Or put an Authorization header under 'headers' in the config."
)
CREDENTIALS = "If it is about credentials, check 'headers' in the config."
NOT_VALID = "Unauthorized: “The token is not valid any more”"
RATE = "It is rate-limiting us: wait before trying again."
ITS_LOG = "The fault is on its side: its own log says more."

AT_THE_START = (
    Row("slow start", (fault("slow-start", seconds=0.3),), {"all": Answered()}),
    Row(
        "exits at once",
        (fault("exit-at-once", code=3, text="no token, giving up"),),
        {
            "stdio": Fails(
                "{name}: it exited with code 3, saying “no token, giving up”. "
                "Run its command by hand to see what it lacks." + MORE,
                received=0,
            ),
            "all": ONLY_STDIO,
        },
        mend="refresh",
    ),
    Row("banner", (fault("banner"),), {"stdio": Answered(), "all": ONLY_STDIO}),
    Row("stderr", (fault("stderr", count=10_000),), {"stdio": Answered(), "all": ONLY_STDIO}),
    Row("grandchild", (fault("fork"),), {"stdio": Answered(), "all": ONLY_STDIO}),
    Row(
        "stays",
        (fault("ignore-eof"), fault("ignore-sigterm"), fault("fork", hold_output=True)),
        {"stdio": Answered(), "all": ONLY_STDIO},
    ),
    Row(
        "dies on discover",
        (fault("strict-handshake"),),
        {"stdio legacy": Answered(), "stdio modern": Absent(LEGACY_PROBE), "all": ONLY_STDIO},
    ),
    Row(
        "refuses the handshake",
        (fault("error", code=-32050, message="not today"),),
        {
            "all": Fails(
                "{name}: it refused the handshake: “not today” (-32050). Check that it is an MCP server.",
                received=0,
            )
        },
        mend="refresh",
    ),
)

IN_THE_LISTING = (
    Row(
        "no list",
        (fault("error", method="tools/list", message="the database is away"),),
        {"all": Fails("{name}: “the database is away” (-32603).", received=0)},
        mend="refresh",
    ),
    Row(
        "pages in circles",
        (fault("cursor-loop"),),
        {
            "all": Fails(
                "{name}: its tool list goes in circles (cursor “page-2” came twice).",
                received=0,
            )
        },
        server={"page_size": 1},
        mend="refresh",
    ),
    Row("empty cursor", (fault("empty-cursor"),), {"all": Answered()}, server={"page_size": 1}),
    Row("many pages", (fault("endless-pages", size=1000, count=5),), {"all": Answered()}),
    Row("costly schema", (fault("schema-bomb", size=200, count=50),), {"all": Answered()}),
    Row("long name", (fault("long-name", size=10_000),), {"all": Answered()}),
    Row(
        "hostile text",
        (fault("hostile-text", method="tools/list"),),
        {"all": Answered()},
        config={"trust": "open"},  # else it is held back at first sight
    ),
    Row("storm of changes", on_call("list-changed", count=200), {"all": Answered()}),
    Row(
        "another description",
        (fault("list-changed", method="tools/list", nth=1),),
        {"all": Answered()},
    ),
)

IN_A_CALL = (
    Row("silence", on_call("silence", times=2), {"all": NoAnswer()}),
    Row(
        "crash before the reply",
        on_call("crash", when="before", code=70, text="panic", run=1),
        {"stdio": EXITED, "all": BROKEN},
        mend="restart",
    ),
    Row(
        "crash in the reply",
        on_call("crash", when="middle", code=70, text="panic", run=1),
        {"stdio": EXITED, "http": LOST, "sse": CLOSED},
        mend="restart",
    ),
    Row(
        "crash after the reply",
        on_call("crash", when="after", code=70, text="panic", run=1),
        {"all": Answered()},
        mend="restart",
    ),
    Row(
        "crash of what only reads",
        on_call("crash", when="middle", code=70, text="panic", run=1),
        {"stdio": Answered(received=2), "all": Absent("nobody is there to be asked again: see 'cut of …'")},
        tool={"annotations": {"readOnlyHint": True}},
        mend="restart",
    ),
    Row(
        "error",
        on_call("error", code=-32050, message="out of paper", data={"tray": 2}),
        {"all": Refused(-32050, "out of paper", {"tray": 2})},
    ),
    # A stream goes on after a bad event; a body that is bad is all there was.
    Row("junk", on_call("junk"), {"http modern": UNREADABLE, "all": Answered()}),
    Row("invalid UTF-8", on_call("invalid-utf8"), {"http modern": UNREADABLE, "all": Answered()}),
    Row("duplicate", on_call("duplicate"), {"http modern": UNREADABLE, "all": Answered()}),
    # In the response to its own request there is no doubt whose answer it is.
    Row(
        "wrong id",
        on_call("wrong-id", times=2),
        {"stdio": NoAnswer(), "sse": NoAnswer(), "all": Answered()},
    ),
    Row("torn", (fault("torn", count=7, seconds=0.001),), {"all": Answered()}),
    Row("8 MB", on_call("huge", size=8_000_000), {"all": Answered()}),
    Row("made while it goes out", on_call("endless", size=2_000_000), {"all": Answered()}),
    Row("flood of logs", on_call("flood", what="log", count=500), {"all": Answered()}),
    Row("many keys", on_call("many-keys", count=500), {"all": Answered()}),
    Row(
        "more than a frame may have",
        on_call("huge", size=70_000_000),
        {"all": Fails("{name}: …too long…. " + OPEN)},
    ),
)


def refused(status: int, words: str, remedy: str, received: int = 1) -> Fails:
    return Fails(f"{{name}}: it answered HTTP {status} {words}. {remedy}", received)


def at_first(status: int, words: str, remedy: str) -> Row:
    """Every request gets this status until the server is fixed."""
    return Row(
        f"{status} at first",
        (fault("status", status=status),),
        {"stdio": ONLY_HTTP, "all": refused(status, words, remedy, received=0)},
        mend="refresh",
    )


def for_a_call(status: int, words: str, remedy: str, **others: Cell) -> Row:
    """The first call gets this status. others: by transport, what differs."""
    return Row(
        f"{status}",
        on_call("status", status=status),
        {"stdio": ONLY_HTTP, "all": refused(status, words, remedy), **others},
    )


PAGE: Json = {"status": 200, "text": "<html>Sign in</html>", "headers": {"content-type": "text/html"}}

OF_HTTP = (
    Row("hang", on_call("hang", times=2), {"stdio": ONLY_HTTP, "all": NoAnswer()}),
    Row(
        "cut before the reply",
        on_call("cut", when="before"),
        {"stdio": ONLY_HTTP, "http": LOST, "sse": CLOSED},
    ),
    Row("cut in the reply", on_call("cut"), {"stdio": ONLY_HTTP, "http": LOST, "sse": CLOSED}),
    Row(
        "cut of what only reads",
        on_call("cut"),
        {"stdio": ONLY_HTTP, "all": Answered(received=2, ran=2)},
        tool={"annotations": {"readOnlyHint": True}},
    ),
    Row("cut after the reply", on_call("cut", when="after"), {"stdio": ONLY_HTTP, "all": Answered()}),
    Row(
        "closed before the reply",
        on_call("cut", when="before", clean=True),
        {"stdio": ONLY_HTTP, "http legacy": LOST, "http modern": UNREADABLE, "sse": CLOSED},
    ),
    for_a_call(400, "Bad Request", OPEN),
    Row("401", on_call("status", status=401), {"stdio": ONLY_HTTP, "all": Fails(LOGIN, received=1)}),
    for_a_call(403, "Forbidden", CREDENTIALS),
    Row(
        "404",
        on_call("status", status=404),
        {
            "stdio": ONLY_HTTP,
            "http legacy": Answered(received=2),  # there is a session, and it was forgotten
            "all": refused(404, "Not Found", "Check 'url' in the config."),
        },
    ),
    for_a_call(408, "Request Timeout", OPEN),
    for_a_call(429, "Too Many Requests", RATE),
    for_a_call(500, "Internal Server Error", OPEN),
    for_a_call(502, "Bad Gateway", OPEN),
    for_a_call(503, "Service Unavailable", OPEN),
    Row(
        "401 at first",
        (fault("status", status=401),),
        {"stdio": ONLY_HTTP, "all": Fails(LOGIN, received=0)},
        mend="refresh",
    ),
    at_first(429, "Too Many Requests", RATE),
    at_first(503, "Service Unavailable", ITS_LOG),
    Row(
        "a page in place of a reply",
        on_call("status", **PAGE),
        {"stdio": ONLY_HTTP, "http": UNREADABLE, "sse": Absent("replies come over the event stream")},
    ),
    Row(
        "a page for a message",
        on_call("status", **PAGE, times=2),
        {"stdio": ONLY_HTTP, "http": Absent("a message is answered with its reply"), "sse": NoAnswer()},
    ),
    Row(
        "revoked token",
        on_call("token", refuse=["s3cret"], times=2),
        {"stdio": ONLY_HTTP, "all": refused(401, NOT_VALID, SIGN_IN, received=2)},
        config={"headers": {"Authorization": "Bearer s3cret"}},
    ),
    Row(
        "token that expired before",
        (fault("token", refuse=["s3cret"]),),
        {"stdio": ONLY_HTTP, "all": refused(401, NOT_VALID, SIGN_IN, received=0)},
        config={"headers": {"Authorization": "Bearer s3cret"}},
        mend="refresh",
    ),
    Row(
        "compressed",
        on_call("gzip-bomb", size=2_000_000),
        {"stdio": ONLY_HTTP, "sse": Absent("its stream is one response, begun before"), "all": Answered()},
    ),
    Row("interim answers", on_call("interim", count=3), {"stdio": ONLY_HTTP, "all": Answered()}),
    Row(
        "interim answers without end",
        on_call("interim"),
        {"stdio": ONLY_HTTP, "all": Fails("{name}: …has not begun after 262,144 bytes. " + OPEN)},
    ),
    Row("redirect", (fault("redirect"),), {"stdio": ONLY_HTTP, "all": Answered(received=2)}),
    # 307 says that nothing was done, 303 that something was.
    Row(
        "redirect to another origin",
        on_call("redirect", to="other"),
        {"stdio": ONLY_HTTP, "all": Fails("{name}: …{elsewhere}…")},
    ),
    Row("redirect to a page", on_call("redirect", status=303), {"stdio": ONLY_HTTP, "all": UNREADABLE}),
    Row(
        "redirect to another origin at first",
        (fault("redirect", to="other"),),
        {"stdio": ONLY_HTTP, "all": Fails("{name}: …{elsewhere}…", received=0)},
        mend="refresh",
    ),
    Row(
        "forgotten session",
        on_call("forget-session"),
        {
            "http legacy": Answered(received=2),
            "http modern": Absent("the modern era has no sessions"),
            "sse": Absent("the event stream is the session: see 'cut'"),
            "all": ONLY_HTTP,
        },
    ),
)

FOR_EVER = (
    Row(
        "silent on discover",
        (fault("silence", method="server/discover"),),
        {"stdio modern": STARTING, "http modern": STARTING, "all": Answered()},
    ),
    Row("says nothing", (fault("silence"),), {"all": STARTING}),
    Row("takes everything", (fault("hang"),), {"stdio": ONLY_HTTP, "all": STARTING}),
)
"""A call waits for them as long as a first listing may take."""

ROWS = AT_THE_START + IN_THE_LISTING + IN_A_CALL + OF_HTTP + FOR_EVER
