"""One connection to the HTTP server: uvicorn's protocol, and what a client may take of it.

The rule: nobody who sends something in many small pieces, or opens many connections, keeps others from being
heard.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from mcpzip.server.http.gate import Gate
from mcpzip.server.http.head import Arrival
from mcpzip.server.http.limits import Limits

PIECES = 128
"""Lines in what arrived at once, up to which it is read at once: to read a chunk takes some 20 µs."""
PIECE = 1024
"""Bytes that are read at a time of what has more lines: 200 chunks at most."""


class Shared:
    """What connections share. unread: bytes that may wait on all of them to be read; strangers: those on
    which nothing came yet that was let in, in order of age.
    """

    def __init__(self, unread: int) -> None:
        self.strangers: dict[Connection, None] = {}
        self._unread = unread
        self._unheard: dict[Connection, _Unheard] = {}
        self._waiting: dict[Connection, None] = {}

    def ask(self, connection: "Connection") -> None:
        """Has ``connection`` go on in its turn. There is one turn between two rounds of the event loop."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._turn)
        self._waiting.setdefault(connection)

    def falls_silent(self, connection: "Connection") -> None:
        """The client of ``connection`` doesn't read what was sent. If too much waits, somebody has to go."""
        self._unheard[connection] = _Unheard(asyncio.get_running_loop().time())
        self.more_waits()

    def more_waits(self) -> None:
        """More waits on a connection whose client doesn't read. If it is too much, somebody has to go: whose
        client has read nothing of most for longest, by bytes times seconds.
        """
        now = asyncio.get_running_loop().time()
        for each, state in self._unheard.items():
            state.look(each.unread, now)
        while sum(state.unread for state in self._unheard.values()) > self._unread:
            worst = max(self._unheard, key=lambda each: self._unheard[each].weight(now))
            self.hears(worst)
            worst.transport.abort()

    def hears(self, connection: "Connection") -> None:
        """The client of ``connection`` has read what was sent, or has left."""
        self._unheard.pop(connection, None)

    def _turn(self) -> None:
        connection = next(iter(self._waiting))
        try:
            if connection.go_on():
                self._waiting[connection] = self._waiting.pop(connection)  # behind the others
            else:
                del self._waiting[connection]
        except BaseException:
            self._waiting.pop(connection, None)
            raise
        finally:
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._turn)


class _Unheard:
    """What waits for a client that doesn't read. unread: bytes; since: when it last read any of them, by the
    loop's clock.
    """

    def __init__(self, since: float) -> None:
        self.since, self.unread = since, 0

    def look(self, unread: int, now: float) -> None:
        """So much waits ``now``."""
        if unread < self.unread:
            self.since = now
        self.unread = unread

    def weight(self, now: float) -> float:
        """Bytes times seconds."""
        return self.unread * (now - self.since + 1)


class _Flow(FlowControl):
    """Reading and writing that may have to wait; reading also for what was read to be looked at."""

    _held = False

    def hold(self) -> None:
        """Nothing is read until `let_go`."""
        self._held = True
        self._transport.pause_reading()

    def let_go(self) -> None:
        """Reading goes on, unless it waits for something else."""
        self._held = False
        if not self.read_paused and not self._transport.is_closing():
            self._transport.resume_reading()

    def resume_reading(self) -> None:
        if self._held:
            self.read_paused = False
        else:
            super().resume_reading()


_ARRIVING = bytearray(1 << 16)
"""Where what arrives stands for a moment: whoever reads into it copies it before another does."""


class Connection(H11Protocol, asyncio.BufferedProtocol):
    """A connection. room: how many there may be; for one more the oldest is closed on which nothing came yet
    that was let in. Where there is none, some more are told so, by ``gate``.

    The head of a request has its time, so has what the client is to read; what it sends ahead of an answer
    has its size. Where a body is in chunks it takes turns: to read one of a byte takes as long as one of a
    kilobyte. Of a body that was refused none is read.

    What arrives is read into one buffer for all connections and copied: asyncio would take a block of 256 KiB
    for each read and give back what was not filled, which leaves holes in memory, more with every call.
    """

    def __init__(
        self, gate: Gate, limits: Limits, room: int, shared: Shared, *args: Any, **keys: Any
    ) -> None:
        super().__init__(*args, **keys)
        self._gate, self._limits, self._room, self._shared = gate, limits, room, shared
        self._rest = b""  # what arrived and waits for its turn
        self._arrival = Arrival(lambda: self._shared.strangers.pop(self, None), blocked=self._blocked)
        self._held_back = 0  # bytes of responses that wait for the client to read what was sent before
        self.app_state = {"arrival": self._arrival}  # what requests have in their scope
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = self._flow = _Flow(transport)
        if len(self.connections) > self._room and self._shared.strangers:
            self._shared.strangers.pop(oldest := next(iter(self._shared.strangers)))
            self.connections.discard(oldest)
            oldest.transport.abort()
        self._shared.strangers[self] = None
        if len(self.connections) > self._room + self._limits.turned_away:
            transport.abort()
        elif len(self.connections) > self._room:
            self.app = self._gate.turn_away
        self._expect()

    def get_buffer(self, sizehint: int) -> bytearray:
        return _ARRIVING

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(memoryview(_ARRIVING)[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._rest or self._is_in_pieces(data):
            self._rest += data
            self._flow.hold()
            self._shared.ask(self)
        else:
            self._take(data)

    def go_on(self) -> bool:
        """Reads some of what arrived. Returns whether there is more."""
        data, self._rest = self._rest[:PIECE], self._rest[PIECE:]
        if self.transport.is_closing():
            self._rest = b""
        elif data:
            self._take(data)
        if not self._rest:
            self._flow.let_go()
        return bool(self._rest)

    def _is_in_pieces(self, data: bytes) -> bool:
        """Whether there may be so many chunks in ``data`` that they take long."""
        has_length = self.conn.their_state is h11.SEND_BODY and not self._is_chunked
        return not has_length and data.count(b"\n") > PIECES

    @property
    def _is_chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self.headers or ())

    def _take(self, data: bytes) -> None:
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE) and not data.strip(b"\r\n"):
            return  # some clients end a body with a line of its own (RFC 9112, 2.2)
        if self.conn.their_state is h11.SEND_BODY:
            if self._is_chunked and self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                self._drop(data + self._rest)
                return
            self._arrival.raw += len(data) if self._is_chunked else 0
        else:
            self._arrival.raw = 0
        super().data_received(data)
        if self.transport.is_closing():
            self._forget()
        elif self.conn.their_state is h11.DONE:
            self._ahead()
            self._forget()
        elif self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE:
            self._expect()  # part of a head is there, or a body comes that nobody waits for
        else:
            self._forget()

    def _drop(self, data: bytes) -> None:
        """Takes note of the end of a body that was refused, as far as that can be seen."""
        self._rest = b""
        if data.endswith(b"0\r\n\r\n"):
            self.cycle.more_body = False
            self.cycle.message_event.set()

    def _ahead(self) -> None:
        """Looks at what came behind a request that isn't answered yet."""
        ahead, _ = self.conn.trailing_data
        if not ahead.strip(b"\r\n"):
            self.flow.resume_reading()  # so that it is heard when the client leaves
        elif len(ahead) > self._limits.head:
            self.transport.abort()  # uvicorn reads on with each request that it begins

    @property
    def unread(self) -> int:
        """Bytes that were sent, or are to be, and that the client has not read."""
        return self.transport.get_write_buffer_size() + self._held_back

    def _blocked(self, size: int) -> Awaitable[None] | None:
        """What to wait for before ``size`` bytes of a response are written; None for nothing."""
        return self._until_read(size) if self.flow.write_paused else None

    async def _until_read(self, size: int) -> None:
        self._held_back += size
        try:
            self._shared.more_waits()
            await self.flow.drain()
        finally:
            self._held_back -= size

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self._limits.unread, self.transport.abort)
            self._shared.falls_silent(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_read()

    def _is_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        self._shared.hears(self)

    def send_400_response(self, msg: str) -> None:
        """Says that this is no HTTP, unless it came while something else was being said."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._is_read()
        self._shared.strangers.pop(self, None)
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(self._limits.head_time, self._give_up)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            said = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(said)
            self.transport.close()
