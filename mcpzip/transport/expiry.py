"""When connections that nobody uses are closed.

The rule: an open request keeps a connection open, and so does a resource that is subscribed to on it.
"""

import asyncio
import time
from collections.abc import Callable, Hashable

from mcpzip.transport.closing import ClosingConnections
from mcpzip.transport.connection import GRACE
from mcpzip.transport.server_state import PoolEntry, ServerState

OUTDATED = 1.0
"""Seconds an outdated connection stays open without use: the server may be being listed on it."""


class Expiry:
    """The timers of the connections of a pool.

    idle_timeout: seconds without a request after which a connection is closed.
    """

    def __init__(
        self,
        idle_timeout: float,
        is_current: Callable[[ServerState], bool],
        closing: ClosingConnections,
    ) -> None:
        """is_current: whether a state is in use: see `ServerStates`."""
        self.idle_timeout = idle_timeout
        self._is_current, self._closing = is_current, closing
        self._stopped = False

    def keep(self, state: ServerState, entry: PoolEntry, seconds: float | None = None) -> None:
        """Keeps the connection, which was just used, open for at least ``seconds`` (default: the idle
        timeout) more.
        """
        seconds = min(self.idle_timeout if seconds is None else seconds, entry.longest)
        entry.used_at = time.monotonic()
        entry.unused_at = max(entry.unused_at, entry.used_at + seconds)
        if entry.expiry is None and not self._stopped and self._is_current(state):
            entry.expiry = asyncio.get_running_loop().call_later(seconds, self._expire, state, entry)

    def outdate(self, state: ServerState, owner: Hashable) -> None:
        """Hardly any client uses the legacy connections again that are reserved for ``owner``, or None."""
        for entry in [entry for (_, key), entry in state.entries.items() if key == owner]:
            if owner is None and (entry.connection is None or entry.connection.modern):
                continue  # one that opens may turn out to be modern
            entry.longest, entry.unused_at = OUTDATED, 0.0
            if entry.expiry is not None:
                entry.expiry.cancel()
                entry.expiry = None
                self.keep(state, entry)

    def stop(self) -> None:
        """Starts no more timers."""
        self._stopped = True

    def _expire(self, state: ServerState, entry: PoolEntry) -> None:
        entry.expiry = None
        connection = entry.connection
        if connection is None:
            state.remove(entry)
            return
        left = entry.unused_at - time.monotonic()
        if connection.open_requests or (connection.alive and state.has_subscriptions(connection)):
            self.keep(state, entry)
        elif left > 0:
            entry.expiry = asyncio.get_running_loop().call_later(left, self._expire, state, entry)
        else:
            state.remove(entry)
            self._closing.begin(connection, GRACE)
