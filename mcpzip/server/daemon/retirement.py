"""How a daemon gives way to one of a newer mcpzip.

The rules:

1. It ends as soon as no call is under way.
2. If calls overlap for `PATIENCE` seconds, each client goes over on its own: its new requests are held back
   until those under way are answered, and then the next daemon gets them. A client of the newer version is
   the first, because its `mcpzip serve` starts the next daemon. From then on nobody finds this one.
3. No request is held back for long. If those under way take longer, the ones that were held back are
   processed here. The next attempt takes twice as long, and begins after a rest.
4. A call that waits for a modern client to come back with answers is under way, too. While there is one,
   nothing of that client is held back.
"""

import asyncio
from collections.abc import Collection
from typing import Protocol

from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.client import DaemonClient

PATIENCE = 5.0
"""Seconds in which a moment without any call is waited for."""
HOLD, LONGEST_HOLD = 0.5, 30.0
"""Seconds for which requests are held back in the first attempt, and at most."""
REST = 4
"""How many times as long nothing is held back then."""
_LOOK = 0.05
"""Seconds between two looks whether calls are under way."""


class Retiring(Protocol):
    """What it needs of the daemon."""

    @property
    def clients(self) -> Collection[DaemonClient]: ...

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        ...

    def stop(self) -> None:
        """Ends the daemon; its clients go on with the next."""
        ...

    async def withdraw(self) -> None:
        """From now on another daemon can take this one's place, and nobody finds this one."""
        ...


async def give_way(daemon: Retiring, successor: str) -> bool:
    """Ends ``daemon`` when its clients have gone over. successor: the version that follows. Returns False if
    it stays, because no client of a newer version is left.
    """
    now = asyncio.get_running_loop().time
    until = now() + PATIENCE
    while daemon.is_busy:  # calls end in many ways, of which none says so here
        if now() > until:
            return await _one_by_one(daemon, successor)
        await asyncio.sleep(_LOOK)
    for client in list(daemon.clients):
        await client.becomes_quiet(0)  # as they are: requests from now on are for the next daemon
    daemon.stop()
    return True


async def _one_by_one(daemon: Retiring, successor: str) -> bool:
    hold = HOLD
    while (first := await _quiet_newer(daemon, hold)) is None:
        if not any(map(_is_newer, daemon.clients)):
            return False
        await asyncio.sleep(REST * hold)
        hold = min(2 * hold, LONGEST_HOLD)
    await daemon.withdraw()
    await _go_over(first, successor)
    await asyncio.gather(*(_go_over(client, successor) for client in daemon.clients))
    while daemon.clients:  # noqa: ASYNC110 - the last ones are just being closed
        await asyncio.sleep(_LOOK)
    daemon.stop()
    return True


async def _quiet_newer(daemon: Retiring, hold: float) -> DaemonClient | None:
    """A client of a newer version whose requests are all answered, or will be processed elsewhere."""
    for client in filter(_is_newer, list(daemon.clients)):
        if await client.becomes_quiet(hold):
            return client
    return None


async def _go_over(client: DaemonClient, successor: str) -> None:
    hold = HOLD
    while not client.has_ended:
        if await client.becomes_quiet(hold):
            client.hand_over(successor)
            return
        await asyncio.sleep(REST * hold)
        hold = min(2 * hold, LONGEST_HOLD)


def _is_newer(client: DaemonClient) -> bool:
    return protocol.is_newer(client.greeting.version)
