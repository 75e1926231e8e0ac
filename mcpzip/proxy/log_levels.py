"""Log levels: which messages a client wants, and telling servers so.

The rule: a modern client gets the log messages that it asked for in the very request, a legacy client all of
them until it sets a level. A server may send more than is wanted; the rest is not handed on.
"""

import asyncio
from collections.abc import Callable, Sequence

from mcpzip.proxy.exchange import Client, Exchange, members
from mcpzip.transport.base import BoundClient
from mcpzip.transport.pool import Pool
from mcpzip.wire import Era, join_object, quote

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least to the most severe (RFC 5424)."""
SET_LEVEL_TIMEOUT = 2.0
"""Seconds a server may take to set a log level."""


def is_wanted(params: bytes | None, client: Client, exchange: Exchange | None) -> bool:
    """Whether the log message with ``params`` (JSON text) is to be sent to ``client``. exchange: its request
    that the message belongs to, None for none.
    """
    if client.era is Era.MODERN:
        wanted = None if exchange is None else exchange.log_level
        if wanted is None:
            return False
    else:
        wanted = client.log_level
    level = members(params).get("level", b'""').strip(b'"').decode("utf-8", "replace")
    if wanted not in LOG_LEVELS or level not in LOG_LEVELS:
        return True
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)


class LogLevelSetter:
    """Makes `logging/setLevel` on the legacy connections that a client has to itself."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._tasks: set[asyncio.Task[None]] = set()

    async def set(
        self, bindings: Sequence[BoundClient], to: Callable[[str], bool] = lambda server: True
    ) -> None:
        """Sets the level of the client with ``bindings`` at the servers that ``to`` accepts, by name."""
        for binding in bindings:
            params = join_object({"level": quote(binding.log_level or "info")})
            await self._pool.set_level(binding, params, SET_LEVEL_TIMEOUT, to)

    async def lower(
        self, client: Client, bindings: Sequence[BoundClient], level: str | None, server: str
    ) -> None:
        """Has all servers send what is wanted from ``level`` on, if they do not yet; waits for ``server``
        only.
        """
        if level not in LOG_LEVELS:
            return
        if client.log_level is not None and LOG_LEVELS.index(client.log_level) <= LOG_LEVELS.index(level):
            return
        client.log_level = level
        task = asyncio.create_task(self.set(bindings, lambda name: name != server))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await self.set(bindings, lambda name: name == server)

    async def close(self) -> None:
        """Stops what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
