"""What the pool keeps of one server.

The rule: one connection serves everybody who is spoken to in the same way; a legacy one that a partner has to
itself is that partner's only.
"""

import asyncio
from collections.abc import Hashable

from mcpzip.config import ServerConfig
from mcpzip.model.errors import UpstreamUnavailableError
from mcpzip.transport.base import Partner
from mcpzip.transport.circuit import Circuit
from mcpzip.transport.connection import Connection
from mcpzip.transport.waiting import LoginWait
from mcpzip.wire import Era


class Line:
    """The place of one connection to a server, which comes and goes."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.connecting: asyncio.Task[Connection] | None = None
        self.unused_at = 0.0
        self.expiry: asyncio.TimerHandle | None = None


Place = tuple[Era | None, Hashable]
"""Which of a server's connections: the era that is wanted, and the key of the partner that it is for."""


class Slot:
    """What the pool remembers of one server between connections.

    speaks: the era that it speaks to somebody who would like to speak the other. stored: of its sign-in, when
    the circuit opened.
    """

    def __init__(self, server: ServerConfig, protocol: str | None, login: LoginWait) -> None:
        self.server, self.protocol, self.login = server, protocol, login
        self.stored: object = None
        self.circuit = Circuit()
        self.lines: dict[Place, Line] = {}
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

    def connections(self) -> list[Connection]:
        """Those that can be used, the one used last at the end."""
        live = [line for line in self.lines.values() if line.connection is not None and line.connection.alive]
        return [line.connection for line in sorted(live, key=lambda line: line.unused_at) if line.connection]

    def any_line(self, *, common: bool) -> Line | None:
        """That of a connection that can be used, whose ever it is. common: of one that is nobody's."""
        for line in self.lines.values():
            connection = line.connection
            if connection is not None and connection.alive and (connection.common or not common):
                return line
        return None

    def place(self, era: Era | None, partner: Partner | None) -> Place:
        """Where the connection for such a client is."""
        spoken = self.speaks.get(era, era)
        # A modern connection is no session: everybody can share it.
        return spoken, None if partner is None or spoken is Era.MODERN else partner.key

    def watches(self, connection: Connection) -> bool:
        """Whether somebody waits to hear something on ``connection``."""
        if connection.shared or connection.partner is None:
            return bool(self.watched)
        return bool(connection.partner.watched(self.server.name))
