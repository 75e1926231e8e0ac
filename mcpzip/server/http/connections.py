"""What all connections to the HTTP server share: their number, and the memory and time each may take."""

import asyncio
from typing import Protocol

from mcpzip.server.http.limits import Limits

_TURNS = 3
"""Turns of the event loop in which connections are accepted, and read, that are there already."""
_FIRST_REQUEST = 0.25
"""Seconds that a request which has begun, or is the first of its connection, has to come when the server
ends."""


class Member(Protocol):
    """A connection, as far as its group needs it."""

    @property
    def unread(self) -> int:
        """Bytes that were sent, or are to be, and that the client has not read."""

    def read_more(self) -> bool:
        """Reads some of what arrived. Returns whether there is more."""

    def abort(self) -> None:
        """Closes it at once."""

    def shutdown(self) -> None:
        """Closes it once the request under way, if there is one, is answered."""


class Connections:
    """The open connections.

    room: how many there may be. open: all of them. unauthenticated: those on which no request has passed the
    checks yet, the oldest first. bodies: bytes of incomplete request bodies, small ones not counted.
    """

    def __init__(self, limits: Limits, room: int) -> None:
        self.room = room
        self.open: dict[Member, None] = {}
        self.unauthenticated: dict[Member, None] = {}
        self.bodies = 0
        self._limits = limits
        self._slow: dict[Member, _Unread] = {}
        self._turns: dict[Member, None] = {}
        self._asking: dict[Member, None] = {}
        """New ones, and those whose request isn't complete."""
        self._all_closed: asyncio.Future[None] | None = None
        self._all_asked: asyncio.Future[None] | None = None
        self._ending = False

    def add(self, connection: Member) -> bool:
        """Counts a new connection. One too many replaces the oldest unauthenticated one. Returns whether
        there is room; where there is none, some more stay open to be told so, and any more are closed. So is
        one that was accepted just before the server ended.
        """
        self.open[connection] = None
        if len(self.open) > self.room and self.unauthenticated:
            oldest = next(iter(self.unauthenticated))
            self.remove(oldest)
            oldest.abort()
        self.unauthenticated[connection] = None
        self.asks(connection)
        if self._ending or len(self.open) > self.room + self._limits.turned_away:
            connection.abort()
        return len(self.open) <= self.room

    def remove(self, connection: Member) -> None:
        """It is closed."""
        self.open.pop(connection, None)
        if not self.open and self._all_closed is not None and not self._all_closed.done():
            self._all_closed.set_result(None)
        self.unauthenticated.pop(connection, None)
        self.has_asked(connection)
        self.client_reads(connection)

    def asks(self, connection: Member) -> None:
        """A request of it begins."""
        self._asking[connection] = None

    def has_asked(self, connection: Member) -> None:
        """Its request is complete, or refused."""
        self._asking.pop(connection, None)
        if not self._asking and self._all_asked is not None and not self._all_asked.done():
            self._all_asked.set_result(None)

    async def stop(self, server: asyncio.Server) -> None:
        """Takes no more connections, and closes each once it has no request under way. What was accepted, or
        has begun to ask, is heard to the end: its client can't know that nobody has read it.
        """
        loop = asyncio.get_running_loop()
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        server.close()
        if self._asking:
            self._all_asked = loop.create_future()
            await asyncio.wait({self._all_asked}, timeout=_FIRST_REQUEST)
        self.shutdown()

    def shutdown(self) -> None:
        """Closes each connection once it has no request under way, and takes no more."""
        self._ending = True
        for connection in list(self.open):
            connection.shutdown()

    async def close(self, patience: float) -> None:
        """Gives the last responses ``patience`` seconds to be sent, then closes all connections."""
        if self.open:
            self._all_closed = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._all_closed}, timeout=patience)
        for connection in list(self.open):
            connection.abort()

    # Reading in turns

    def request_turn(self, connection: Member) -> None:
        """Calls ``read_more`` of ``connection`` until there is no more: one call of one connection between
        two iterations of the event loop, in turn.
        """
        if not self._turns:
            asyncio.get_running_loop().call_soon(self._turn)
        self._turns.setdefault(connection)

    def _turn(self) -> None:
        connection = next(iter(self._turns))
        try:
            if connection.read_more():
                self._turns[connection] = self._turns.pop(connection)  # behind the others
            else:
                del self._turns[connection]
        except BaseException:
            self._turns.pop(connection, None)
            raise
        finally:
            if self._turns:
                asyncio.get_running_loop().call_soon(self._turn)

    # Clients that don't read

    def client_stalls(self, connection: Member) -> None:
        """The client of ``connection`` doesn't read what was sent."""
        self._slow[connection] = _Unread(asyncio.get_running_loop().time())
        self.check_unread()

    def check_unread(self) -> None:
        """While too much waits for clients that don't read, closes the connection of the client that has left
        most unread for longest, by bytes times seconds.
        """
        now = asyncio.get_running_loop().time()
        for connection, state in self._slow.items():
            state.update(connection.unread, now)
        while sum(state.size for state in self._slow.values()) > self._limits.unread_by_all:
            worst = max(self._slow, key=lambda each: self._slow[each].weight(now))
            self.client_reads(worst)
            worst.abort()

    def client_reads(self, connection: Member) -> None:
        """The client of ``connection`` has read what was sent, or has left."""
        self._slow.pop(connection, None)


class _Unread:
    """What waits for a client that doesn't read. size: bytes; since: when it last read any of them, by the
    loop's clock.
    """

    def __init__(self, since: float) -> None:
        self.since, self.size = since, 0

    def update(self, size: int, now: float) -> None:
        """So much waits ``now``."""
        if size < self.size:
            self.since = now
        self.size = size

    def weight(self, now: float) -> float:
        """Bytes times seconds."""
        return self.size * (now - self.since + 1)
