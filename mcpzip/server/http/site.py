"""The HTTP server: uvicorn around the gate, the gate around the clients.

The rule: it begins and ends by `serve` alone, which takes no signals and leaves no task, connection or
session behind.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Generator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from mcpzip.server.endpoint import Endpoint
from mcpzip.server.http.access import Access
from mcpzip.server.http.downstream import Downstream
from mcpzip.server.http.gate import Gate
from mcpzip.server.http.limits import LIMITS, Limits
from mcpzip.system.descriptors import room_for

PATIENCE = 0.5
"""Seconds that calls under way are given after we were told to end."""
LETTING_GO = 0.3
"""Seconds that what was cancelled may take to tell its server, and its answers then to leave."""

# What it prints is for who runs a server of his own; what matters here is told through `warn`.
logging.getLogger("uvicorn").addHandler(logging.NullHandler())
logging.getLogger("uvicorn").propagate = False


class Site:
    """One endpoint, served over HTTP to whom ``access`` lets in. warn: is told what goes wrong with us."""

    def __init__(
        self,
        endpoint: Endpoint,
        access: Access,
        warn: Callable[[str], None],
        limits: Limits = LIMITS,
    ) -> None:
        self._downstream = Downstream(endpoint, limits)
        self._gate = Gate(self._downstream, access, limits, warn)
        self._server = _Server(self._gate, limits)

    async def serve(
        self,
        listening: socket.socket,
        done: asyncio.Event,
        ready: Callable[[], None],
        leaving: Callable[[], None],
        over: Callable[[], None] = lambda: None,
    ) -> None:
        """Serves until ``done``; closes ``listening``. ready: is called once connections are taken; leaving:
        when no more are, to end what would not by itself; over: when nothing is under way any more, while the
        last answers leave.
        """
        await self._server.begin(listening)
        try:
            ready()
            await done.wait()
        finally:
            self._server.take_no_more()
            try:
                leaving()
                await self._downstream.finish(PATIENCE, LETTING_GO)
                over()
                await self._gate.settle(LETTING_GO)
            finally:
                await self._server.end(LETTING_GO)


class _Server(uvicorn.Server):
    """uvicorn, begun and ended step by step."""

    def __init__(self, app: Gate, limits: Limits) -> None:
        room = max(1, room_for(limits.connections + limits.turned_away) - limits.turned_away)

        def protocol(*args: Any, **keys: Any) -> "_Protocol":
            return _Protocol(app, limits, room, *args, **keys)

        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=limits.head,
            backlog=limits.backlog,
            timeout_keep_alive=round(limits.keep_alive),
        )
        super().__init__(config)
        config.load()
        config.http_protocol_class = protocol  # type: ignore[assignment] # which it only calls
        self._clock: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leaves signals to whoever runs us."""
        yield

    async def begin(self, listening: socket.socket) -> None:
        """Takes connections."""
        self.lifespan = self.config.lifespan_class(self.config)
        await self.on_tick(0)  # sets the headers that every response has
        await self.startup([listening])
        self._clock = asyncio.create_task(self.main_loop())

    def take_no_more(self) -> None:
        """Takes no more connections, nor requests on those there are."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()

    async def end(self, patience: float) -> None:
        """Gives what is being answered ``patience`` seconds, then closes every connection."""
        for _ in range(2):
            if self.server_state.tasks:
                await asyncio.wait(list(self.server_state.tasks), timeout=patience)
            for task in list(self.server_state.tasks):
                task.cancel()
        for connection in list(self.server_state.connections):
            connection.transport.close()
        if self._clock is not None:
            self._clock.cancel()
            await asyncio.wait({self._clock})


_ARRIVING = bytearray(1 << 16)
"""Where what arrives stands for a moment: whoever reads into it copies it before another does."""


class _Protocol(H11Protocol, asyncio.BufferedProtocol):
    """A connection. room: how many there may be; some more are told so, by ``gate``.

    The head of a request has its time, so has what the client is to read; what it sends ahead of an answer
    has its size.

    What arrives is read into one buffer for all connections and copied: asyncio would take a block of 256 KiB
    for each read and give back what was not filled, which leaves holes in memory, more with every call.
    """

    def __init__(self, gate: Gate, limits: Limits, room: int, *args: Any, **keys: Any) -> None:
        super().__init__(*args, **keys)
        self._gate, self._limits, self._room = gate, limits, room
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
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
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE) and not data.strip(b"\r\n"):
            return  # some clients end a body with a line of its own (RFC 9112, 2.2)
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

    def _ahead(self) -> None:
        """Looks at what came behind a request that isn't answered yet."""
        ahead, _ = self.conn.trailing_data
        if not ahead.strip(b"\r\n"):
            self.flow.resume_reading()  # so that it is heard when the client leaves
        elif len(ahead) > self._limits.head:
            self.transport.abort()  # uvicorn reads on with each request that it begins

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self._limits.unread, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_read()

    def _is_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def send_400_response(self, msg: str) -> None:
        """Says that this is no HTTP, unless it came while something else was being said."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._is_read()
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
