"""What one client may take of us over HTTP."""

from dataclasses import dataclass

from mcpzip.model import limits


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    body: int = limits.MESSAGE
    """A POSTed message, with what frames its chunks: as long as a line over stdio may be."""
    body_time: float = 60.0
    """Until a body is there: a client on this machine needs milliseconds, 64 MiB over 10 Mbit/s 54 s."""
    bodies: int = 4 * limits.MESSAGE
    """All bodies that aren't whole yet, together: four of the largest, as each may take a minute."""
    small_body: int = 64 * 1024
    """A body that counts in no sum: calls go on while others send much. Of 2,000 clients it is 125 MiB."""
    head: int = 64 * 1024
    """The request line and headers: tokens and mirrored parameters are some hundred bytes each."""
    head_time: float = 20.0
    """Until the head of a request is there, from the connection's or its own first byte on."""
    keep_alive: float = 75.0
    """A connection without a request: longer than a reverse proxy keeps its own (nginx: 60)."""
    event: int = 1_000_000
    """A legacy answer in an event stream: the SDKs' clients take 2**20. A longer one goes as plain JSON where
    it still can, which is when nothing was said on the stream before it."""
    sessions: int = limits.SESSIONS
    """Legacy sessions at once: each may have upstream connections of its own."""
    session_idle: float = 3_600.0
    """A session without a request or an open stream: clients are told 404 then and begin anew."""
    sessions_share: int = limits.SESSIONS_SHARE
    """Those of one address. Loopback has none: behind it may be anybody, a reverse proxy too."""
    connections: int = 2_000
    """Open at once; a session has one for its stream and one for each of its calls."""
    turned_away: int = 50
    """Connections beyond those, all let in, that are told so; any more are closed without a word."""
    calls: int = limits.CALLS
    """Requests under way at once. One session, or the modern clients of one address, have as many as they
    leave for all others. A legacy client that hangs up has cancelled none of its own."""
    unheard: float = 600.0
    """Until what a legacy client asked is cancelled after it hung up: what is to be done may be done by then,
    and its result is lost anyway."""
    away: float = 30.0
    """Until a client that may come back for the answer, and hasn't, is asked nothing more in that call."""
    silence: float = 2.0
    """Until the stream of a legacy request begins on which nothing was said: from then on its client can
    resume it. No sooner, as the SDK's client for Python takes no event of over 1 MiB in this era, and an
    answer of that size is one from then on."""
    replayed: int = limits.REPLAYED
    """What was said on the streams of one session, and may be said again."""
    replayed_by_all: int = limits.REPLAYED_FOR_ALL
    """What was said on all streams, and may be said again."""
    backlog: int = 512
    """Connections that wait to be taken."""
    unread: float = 600.0
    """What waits to be read: the longest pause of a client, and 64 MiB over 1 Mbit/s."""
    untold: int = limits.WAITING
    """What is told to a client that doesn't read, per stream; past that it is told no more on it."""
    untold_small: int = limits.WAITING_SMALL
    """What of that each stream may have, however much waits on the others."""
    untold_by_all: int = limits.WAITING_FOR_ALL
    """What waits on all streams together, beyond that."""
    unread_by_all: int = limits.UNREAD
    """What waits to be read on all connections together: two of the largest messages."""
    linger: float = 2.0
    """For what a client still sends after it was refused: closed at once, it might never read why."""


LIMITS = Limits()
