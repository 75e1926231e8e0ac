"""Legacy connections for requests of modern clients that can't be told apart.

The rules: one call has a connection to itself for as long as it lasts, so that what is asked in it is asked
of nobody else. A server gets so many and no more; what waits for one holds up no call to another server.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count

from mcpzip.model.errors import UpstreamUnavailableError
from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.wire import Era

MOST_CONNECTIONS = 16
"""How many such connections a server gets."""
YIELDING = 30.0
"""Seconds for which a call whose client is away keeps its lane from one that wants it."""

Kind = tuple[bytes, str | None]
"""What a connection has been told of the client: its capabilities and its log level."""


class ExclusiveConnections:
    """The connections of that kind to all servers."""

    def __init__(
        self, forget: Callable[[ClientBinding], Awaitable[None]], press: Callable[[str, float], None]
    ) -> None:
        """forget: ends the connection of a lane. press: is called when a call to this server waits for a
        lane, to end one whose client has been away for so many seconds.
        """
        self._forget, self._press = forget, press
        self._free: dict[str, list[ClientBinding]] = defaultdict(list)
        self._taken: Counter[str] = Counter()
        self._room: dict[str, asyncio.Semaphore] = {}
        self._numbers = count(1)

    def __len__(self) -> int:
        return self._taken.total() + sum(map(len, self._free.values()))

    @asynccontextmanager
    async def lane(self, server: str, exchange: Exchange, timeout: float) -> AsyncIterator[ClientBinding]:
        """A lane to ``server`` for ``exchange``, once there is one. Raises UpstreamUnavailableError when
        there is none after ``timeout`` seconds.
        """
        room = self._room.setdefault(server, asyncio.Semaphore(MOST_CONNECTIONS))
        await self._enter(room, server, timeout)
        self._taken[server] += 1
        lane: ClientBinding | None = None
        try:
            lane = await self._found(server, (exchange.capabilities, exchange.log_level))
            yield lane
        finally:
            self._taken[server] -= 1
            if lane is not None:
                self._free[server].append(lane)
            room.release()

    async def _enter(self, room: asyncio.Semaphore, server: str, timeout: float) -> None:
        left = timeout
        while room.locked():
            self._press(server, YIELDING)
            try:
                async with asyncio.timeout(min(YIELDING, left)):
                    await room.acquire()
                return
            except TimeoutError:
                left -= YIELDING
            if left <= 0:
                reason = f"all {MOST_CONNECTIONS} connections for such clients were in use for {timeout:g} s"
                raise UpstreamUnavailableError(server, f"{reason}, which is the timeout; nothing was sent")
        await room.acquire()

    async def _found(self, server: str, kind: Kind) -> ClientBinding:
        """One that was used for such a client before, or another."""
        free = self._free[server]
        for at in reversed(range(len(free))):
            client = free[at].client
            if (client.capabilities, client.log_level) == kind:
                return free.pop(at)
        if free and len(free) + self._taken[server] > MOST_CONNECTIONS:
            await self._forget(free.pop(0))
        client = Client(Era.MODERN, kind[0], lasting=False, log_level=kind[1])
        return ClientBinding(client, ("lane", next(self._numbers)))
