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

import uvicorn

from mcpzip.server.endpoint import Endpoint
from mcpzip.server.http.access import Access
from mcpzip.server.http.connection import Connection, Shared
from mcpzip.server.http.downstream import Downstream
from mcpzip.server.http.gate import Gate
from mcpzip.server.http.limits import LIMITS, Limits
from mcpzip.system.descriptors import raise_descriptor_limit

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
        room = max(1, raise_descriptor_limit(limits.connections + limits.turned_away) - limits.turned_away)

        shared = Shared(limits.unread_by_all)

        def protocol(*args: Any, **keys: Any) -> Connection:
            return Connection(app, limits, room, shared, *args, **keys)

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
