"""Limits of the HTTP server."""

import msgspec

from mcpzip.model import limits


class Limits(msgspec.Struct, frozen=True):
    """Sizes in bytes, times in seconds."""

    body: int = limits.MESSAGE
    """The body of a POST, with the framing of its chunks: as long as a line over stdio may be."""
    body_time: float = 60.0
    """Until a body is complete: a client on this machine needs milliseconds, 64 MiB over 10 Mbit/s 54 s."""
    bodies: int = 4 * limits.MESSAGE
    """All incomplete bodies together: four of the largest, as each may take a minute."""
    small_body: int = 64 * 1024
    """A body up to this size isn't counted in `bodies`, so that calls go on while others send much: 125 MiB
    for 2,000 clients."""
    head: int = 64 * 1024
    """The request line and headers: tokens and mirrored parameters are some hundred bytes each."""
    head_time: float = 20.0
    """Until the head of a request is complete, from the connection or its own first byte on."""
    keep_alive: float = 75.0
    """Until an idle connection is closed: longer than a reverse proxy keeps its own (nginx: 60)."""
    event: int = 1_000_000
    """The final message of a legacy stream: the SDKs' clients take 2**20. A longer one is sent as plain JSON
    if no other message preceded it."""
    sessions: int = limits.SESSIONS
    """Legacy sessions at once: each may have upstream connections of its own."""
    session_idle: float = 3_600.0
    """Until a session without a request or an open stream ends: then its client gets 404 and begins anew."""
    sessions_share: int = limits.SESSIONS_SHARE
    """Sessions of one address. Loopback has no such limit: a reverse proxy may be behind it."""
    connections: int = 2_000
    """Open at once; a session has one for its stream and one for each of its calls."""
    turned_away: int = 50
    """Connections beyond those that get a 503; any more are closed at once."""
    calls: int = limits.CALLS
    """Requests under way at once. One session, or the modern clients of one address, have as many as they
    leave for all others. A legacy client that closes its connection has not cancelled its requests."""
    unheard: float = 600.0
    """Until the request of a legacy client that closed its connection is cancelled. It may have had its
    effect by then, and its result is lost anyway."""
    away: float = 30.0
    """Until a client that could resume a stream, and hasn't, is sent no more requests on it."""
    silence: float = 2.0
    """Until the stream of a legacy request begins if it has no message yet: from then on its client can
    resume it. No sooner, because the final message must then be an event, and the SDK's client for Python
    takes no event of over 1 MiB in this era."""
    replayed: int = limits.REPLAYED
    """Events kept for the streams of one session."""
    replayed_by_all: int = limits.REPLAYED_FOR_ALL
    """Events kept for all streams."""
    backlog: int = 512
    """Connections that wait to be accepted."""
    unread: float = 600.0
    """Until a connection is closed whose client doesn't read: the longest pause of a client, and 64 MiB over
    1 Mbit/s."""
    untold: int = limits.WAITING
    """What waits on one stream for a client that doesn't read; further notifications are dropped."""
    untold_small: int = limits.WAITING_SMALL
    """What each stream may have of that, however much waits on the others."""
    untold_by_all: int = limits.WAITING_FOR_ALL
    """What waits on all streams together, beyond that."""
    unread_by_all: int = limits.UNREAD
    """What waits to be read on all connections together: two of the largest messages."""
    linger: float = 2.0
    """Until a connection is closed whose request was refused before its body was complete: if it were closed
    at once, the client might never read why."""


LIMITS = Limits()
