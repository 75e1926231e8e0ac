"""What a cassette holds: the sessions of clients with one MCP server, as they were on the wire.

A session is a list of exchanges, in the order in which they began. An exchange is one message of the client
with all that the server sent because of it; or, without a request, what the server sent on its own. Messages
are the JSON text of the wire, so that they can be sent again byte for byte; only secrets are replaced
(`Masked`).
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec import Struct

FORMAT = 1
"""The version of the file format."""

CLOSE = "close"
"""The verb of an exchange over stdio: the client closed the server's input."""

Transport = Literal["stdio", "http", "sse"]
Kind = Literal["send", "receive", "reply", "stderr", "end"]
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened in an exchange, ``after`` so many seconds from its beginning.

    kind, and what ``data`` is:

    - ``send``: the server sent a message that is no answer to a client: a notification, or a request; or a
      line that is no message;
    - ``receive``: the client answered a request of the server;
    - ``reply``: the server answered the client's request: a response with its id or, over HTTP, a body;
    - ``stderr``: the server wrote a line to its standard error (stdio);
    - ``end``: the server ended its output. stdio: the process ended, with ``code`` (None: unknown), after an
      unfinished line ``data``. HTTP: an event stream ended before the answer; if ``cut``, its connection
      broke.

    fields: of a server-sent event, its lines for ``id``, ``event`` and ``retry``.
    """

    kind: Kind
    after: float
    data: bytes = b""
    fields: tuple[str, ...] = ()
    code: int | None = None
    cut: bool = False


class Response(Struct, frozen=True, kw_only=True):
    """The head of an HTTP response: its status, and its headers with names in lower case."""

    status: int
    headers: Mapping[str, str] = _NO_HEADERS


class Exchange(Struct, frozen=True, kw_only=True):
    """One message of a client, and what the server sent because of it.

    session: its number, from 1. at: the seconds from the beginning of the session. request: the message, b""
    if there was none: then the server sent something on its own, or it is an HTTP request without a body.
    Over HTTP: verb, headers (of the request, only those that MCP defines) and response, None if there was
    none. Over stdio: the verb is `CLOSE` when the client closed the server's input; a server whose output
    ends before that has ended by itself. events: by time.

    The order of all messages of a session is that of their times (``at``, and ``at + after``), in millionths
    of a second. So a recorder gives no two of them the same time.
    """

    session: int = 1
    at: float = 0.0
    request: bytes = b""
    verb: str = ""
    headers: Mapping[str, str] = _NO_HEADERS
    response: Response | None = None
    events: tuple[Event, ...] = ()

    @property
    def reply(self) -> bytes | None:
        """The server's answer; None if it gave none."""
        return next((event.data for event in self.events if event.kind == "reply"), None)


class Match(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which requests count as the recorded ones.

    ignore: paths into ``params`` whose values don't count, such as ``arguments.now`` or ``arguments.*.id``;
    with a tool's name before a colon, only in calls of it: ``pay:arguments.now``. repeat: whether the last
    answer to a request is given again when all recorded answers were given.
    """

    ignore: tuple[str, ...] = ()
    repeat: bool = True


class Check(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How `mcpzip-fake check` compares a server with the recorded one.

    ignore: paths into a ``result`` whose values don't count, such as ``structuredContent.time`` or
    ``content.*.text``; with a tool's name before a colon, only in calls of it: ``now:content``. shape:
    whether only the types and keys of answers count. call: the tools that are called although nothing says
    that they only read.
    """

    ignore: tuple[str, ...] = ()
    shape: bool = False
    call: tuple[str, ...] = ()


class Masked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A secret that the recorder replaced by ``mask``. where: a place in which it was found first, such as
    ``request 3: params.arguments.token``. why: the reason, as a phrase.
    """

    mask: str
    where: str
    why: str


class Session(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One connection of a client, or over HTTP one session. started: RFC 3339, UTC."""

    number: int
    started: str = ""


class Cassette(Struct, frozen=True, kw_only=True):
    """A recorded server. transport: what the client spoke. command, url: of the server; one of them is empty.
    recorder: the name and version of the program that recorded it. exchanges: by session, then by time.
    """

    name: str = ""
    transport: Transport = "stdio"
    command: tuple[str, ...] = ()
    url: str = ""
    recorder: str = ""
    match: Match = Match()
    check: Check = Check()
    sessions: tuple[Session, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    masked: tuple[Masked, ...] = ()

    def with_exchanges(self, exchanges: Iterable[Exchange]) -> "Cassette":
        """Itself with these exchanges, put in order."""
        ordered = sorted(exchanges, key=lambda each: (each.session, each.at))
        return msgspec.structs.replace(self, exchanges=tuple(ordered))


MASK = "[masked {}]"
"""What a secret is replaced by, with a number: the same secret has the same number."""
