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

EXCLUSIVE_CONNECTIONS = 16
"""How many such connections a server gets."""
YIELD_AFTER = 30.0
"""Seconds for which a call whose client is away keeps its connection from one that wants it."""

Declaration = tuple[bytes, str | None]
"""What a connection has been told of the client: its capabilities and its log level."""


class ExclusiveConnections:
    """Those to all servers. ``len()``: how many there are, in use or free."""

    def __init__(
        self,
        forget: Callable[[ClientBinding], Awaitable[None]],
        make_room: Callable[[str, float], None],
    ) -> None:
        """forget: ends the connection of a binding. make_room: is called when a call to this server waits for
        a connection, to end one whose client has been away for so many seconds.
        """
        self._forget, self._make_room = forget, make_room
        self._free: dict[str, list[ClientBinding]] = defaultdict(list)
        self._used: Counter[str] = Counter()
        self._places: dict[str, asyncio.Semaphore] = {}
        self._numbers = count(1)

    def __len__(self) -> int:
        return self._used.total() + sum(map(len, self._free.values()))

    @asynccontextmanager
    async def connection(
        self, server: str, exchange: Exchange, timeout: float
    ) -> AsyncIterator[ClientBinding]:
        """One to ``server`` for ``exchange``, once there is one. Raises UpstreamUnavailableError when there
        is none after ``timeout`` seconds.
        """
        places = self._places.setdefault(server, asyncio.Semaphore(EXCLUSIVE_CONNECTIONS))
        await self._acquire(places, server, timeout)
        self._used[server] += 1
        binding: ClientBinding | None = None
        try:
            binding = await self._binding(server, (exchange.capabilities, exchange.log_level))
            yield binding
        finally:
            self._used[server] -= 1
            if binding is not None:
                self._free[server].append(binding)
            places.release()

    async def _acquire(self, places: asyncio.Semaphore, server: str, timeout: float) -> None:
        left = timeout
        while places.locked():
            self._make_room(server, YIELD_AFTER)
            try:
                async with asyncio.timeout(min(YIELD_AFTER, left)):
                    await places.acquire()
                return
            except TimeoutError:
                left -= YIELD_AFTER
            if left <= 0:
                reason = f"all {EXCLUSIVE_CONNECTIONS} connections for clients of this kind were in use"
                raise UpstreamUnavailableError(
                    server, f"{reason} for {timeout:g} s, which is the timeout; nothing was sent"
                )
        await places.acquire()

    async def _binding(self, server: str, declared: Declaration) -> ClientBinding:
        """One that was used for such a client before, or another."""
        free = self._free[server]
        for at in reversed(range(len(free))):
            client = free[at].client
            if (client.capabilities, client.log_level) == declared:
                return free.pop(at)
        if free and len(free) + self._used[server] > EXCLUSIVE_CONNECTIONS:
            await self._forget(free.pop(0))
        client = Client(Era.MODERN, declared[0], has_session=False, log_level=declared[1])
        return ClientBinding(client, ("exclusive", next(self._numbers)))
