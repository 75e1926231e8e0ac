"""What the pool keeps of one server.

The rule: one connection serves everybody who is spoken to in the same way; a legacy one that a partner has to
itself is that partner's only.
"""

import asyncio
import time
from collections.abc import Hashable, Iterable
from contextlib import nullcontext

from mcpzip.config import ServerConfig
from mcpzip.model import limits
from mcpzip.model.errors import UpstreamUnavailableError
from mcpzip.transport.base import Partner
from mcpzip.transport.circuit import Circuit
from mcpzip.transport.connection import Connection
from mcpzip.transport.login_wait import LoginWait
from mcpzip.transport.start_queue import StartPriority, StartQueue
from mcpzip.wire import Era

CONNECT_TIMEOUT = 30.0
"""Seconds an upstream has to start and shake hands."""


class PoolEntry:
    """The place of one connection to a server, which comes and goes."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.connecting: asyncio.Task[Connection] | None = None
        self.unused_at = self.used_at = 0.0
        self.expiry: asyncio.TimerHandle | None = None


PoolKey = tuple[Era | None, Hashable]
"""Which of a server's connections: the era that is wanted, and the key of the partner that it is for."""


class ServerState:
    """What the pool remembers of one server between connections.

    speaks: the era that it speaks to somebody who would like to speak the other. stored: of its sign-in, when
    the circuit opened. known: whether it was ever listed. begun: when a connection to it was last begun
    (monotonic s).
    """

    def __init__(self, server: ServerConfig, protocol: str | None, login: LoginWait) -> None:
        self.server, self.protocol, self.login = server, protocol, login
        self.stored: object = None
        self.known = protocol is not None
        self.begun = 0.0
        self.circuit = Circuit()
        self.lines: dict[PoolKey, PoolEntry] = {}
        self.speaks: dict[Era | None, Era] = {}
        self.watched: frozenset[str] = frozenset()

    def failed(self, now: float, reason: str) -> None:
        """No connection could be made at ``now`` (monotonic s)."""
        self.login.end()
        self.circuit.failed(now, reason)
        self.stored = self.login.stored
        self.protocol = None  # it may be what is remembered of it that is wrong
        self.speaks.clear()

    def refuse(self, now: float) -> None:
        """Raises UpstreamUnavailableError while it is of no use to try it again."""
        if self.login.error is not None and not self.login.over:
            raise self.login.error
        if self.circuit.open(now) and self.login.stored == self.stored:
            wait = f"It is tried again in {max(self.circuit.retry_at - now, 0.1):.1f} s."
            raise UpstreamUnavailableError(self.server.name, self.circuit.reason, wait)

    def rank(self, *, asked: bool) -> StartPriority:
        """When its turn is to start. asked: somebody waits for it."""
        return StartPriority.ASKED if asked else StartPriority.KNOWN if self.known else StartPriority.NEW

    async def connect(self, connection: Connection, starts: StartQueue, rank: StartPriority) -> None:
        """Connects when it is the server's turn: its time counts from then on. A server over HTTP is started
        already, somewhere. Raises UpstreamUnavailableError.
        """
        stdio = self.server.transport == "stdio"
        turn = starts.turn(self.server.name, rank, connection.effort.resting) if stdio else nullcontext()
        async with turn:
            self.begun = time.monotonic()
            await connection.connect(CONNECT_TIMEOUT)

    def connections(self) -> list[Connection]:
        """Those that can be used, the one used last at the end."""
        live = [line for line in self.lines.values() if line.connection is not None and line.connection.alive]
        return [line.connection for line in sorted(live, key=lambda line: line.unused_at) if line.connection]

    def any_entry(self, *, common: bool) -> PoolEntry | None:
        """That of a connection that can be used, whose ever it is. common: of one that is nobody's."""
        for line in self.lines.values():
            connection = line.connection
            if connection is not None and connection.alive and (connection.common or not common):
                return line
        return None

    def place(self, era: Era | None, partner: Partner | None) -> PoolKey:
        """Where the connection for such a client is."""
        spoken = self.speaks.get(era, era)
        # A modern connection is no session: everybody can share it.
        return spoken, None if partner is None or spoken is Era.MODERN else partner.key

    def watches(self, connection: Connection) -> bool:
        """Whether somebody waits to hear something on ``connection``."""
        if connection.shared or connection.partner is None:
            return bool(self.watched)
        return bool(connection.partner.watched(self.server.name))

    def exclusive_entries(self) -> list[PoolEntry]:
        """Those that partners have to themselves."""
        return [line for (_, key), line in self.lines.items() if key is not None]


def too_many_exclusive(slots: Iterable[ServerState]) -> bool:
    """Whether partners have more connections to themselves than they may, besides one a server."""
    return sum(max(0, len(slot.exclusive_entries()) - 1) for slot in slots) > limits.OWN_CONNECTIONS


def least_recently_used(slots: Iterable[ServerState]) -> tuple[ServerState, PoolEntry, Connection] | None:
    """That of those which nobody uses and that was unused longest."""
    found = [
        (slot, line, line.connection)
        for slot in slots
        for line in slot.exclusive_entries()
        if line.connection is not None and line.connecting is None and len(slot.exclusive_entries()) > 1
        if not line.connection.open_requests and not slot.watches(line.connection)
    ]
    return min(found, key=lambda one: one[1].used_at, default=None)
