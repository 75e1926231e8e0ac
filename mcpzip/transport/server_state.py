"""The pool's record of one server: its connections, who uses them, its failures.

The rule: all clients that are spoken to in the same era share one connection, except that a legacy connection
made for a bound_client is used by that bound_client alone.
"""

import asyncio
import math
import time
from collections.abc import Hashable, Mapping
from contextlib import nullcontext

from mcpzip.config import ServerConfig
from mcpzip.model import limits
from mcpzip.model.errors import UpstreamUnavailableError
from mcpzip.system.event_log import more_about, note
from mcpzip.transport.base import Dialect, Origin
from mcpzip.transport.circuit import CircuitBreaker
from mcpzip.transport.connection import Connection
from mcpzip.transport.health import Health, at_start, problem
from mcpzip.transport.login_wait import LoginWait
from mcpzip.transport.start_queue import StartPriority, StartQueue
from mcpzip.wire import LEGACY_VERSIONS, Era

PREDECESSOR_TIMEOUT = 1.0
"""Seconds that a process waits for the ends of those that it replaces: they may hold a port or a lock."""
CONNECT_TIMEOUT = 30.0
"""Seconds an upstream has to start and complete the handshake."""


class PoolEntry:
    """One connection to a server, or the attempt to open one.

    unused_at: when the connection may be closed as unused (monotonic s). used_at: its last use. longest: the
    most seconds that it stays open without use.
    """

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.connecting: asyncio.Task[Connection] | None = None
        self.unused_at = self.used_at = 0.0
        self.longest = math.inf
        self.expiry: asyncio.TimerHandle | None = None

    def end_attempt(self, abandoned: "set[asyncio.Task[Connection]]") -> None:
        """Cancels the timer and the attempt to open a connection, which is in ``abandoned`` until it ends."""
        if self.expiry is not None:
            self.expiry.cancel()
        if self.connecting is not None:
            self.connecting.cancel()
            abandoned.add(self.connecting)
            self.connecting.add_done_callback(abandoned.discard)


PoolKey = tuple[Era | None, Hashable]
"""The era wanted of a connection, and the key of the bound_client it is reserved for."""


class ServerState:
    """What the pool remembers of one server between connections.

    protocol: the version it last spoke. listed: whether its tools were ever listed. connect_started: when the
    last attempt to connect began (monotonic s). eras: by wanted era, the era that the server turned out to
    speak. subscriptions: the resources that clients without connections of their own subscribed to.
    predecessors: the tasks that close the idle connections from before an edit of the config.
    """

    def __init__(self, server: ServerConfig, protocol: str | None, login: LoginWait) -> None:
        self.server, self.protocol, self.login = server, protocol, login
        self.listed = protocol is not None
        self.connect_started = 0.0
        self.circuit = CircuitBreaker()
        self.entries: dict[PoolKey, PoolEntry] = {}
        self.eras: dict[Era | None, Era] = {}
        self.subscriptions: frozenset[str] = frozenset()
        self.predecessors: list[asyncio.Task[None]] = []
        self._grant_at_failure: object = None

    def failed(self, now: float, reason: str) -> None:
        """Records that no connection could be made at ``now`` (monotonic s)."""
        self.login.end()
        self.circuit.failed(now, reason)
        wait = max(self.circuit.retry_at - now, 0.0)
        said = reason.removesuffix(more_about(self.server.name)).rstrip(". ")
        note(
            "error",
            self.server.name,
            "failed",
            f"{said}. It is tried again in {wait:.1f} s at the earliest.",
        )
        self._grant_at_failure = self.login.grant_signature
        self.protocol = None  # the remembered version may be the cause of the failure
        self.eras.clear()

    def succeeded(self, dialect: Dialect, origin: Origin, first: Era) -> None:
        """Records that a connection was made. first: the era that was tried first."""
        self.circuit.succeeded()
        self.protocol = dialect.version
        self.eras[origin.era] = self.eras[first] = dialect.era

    def first_era(self, origin: Origin) -> tuple[Era, bool]:
        """The era in which to connect for ``origin``, and whether to be sure of it: see `shake_hands`."""
        was_legacy = self.protocol in LEGACY_VERSIONS
        first = self.eras.get(origin.era, origin.era) or (Era.LEGACY if was_legacy else Era.MODERN)
        return first, was_legacy and first is Era.LEGACY

    def check_config(self) -> None:
        """Raises UpstreamUnavailableError for a server that is not to be used, by its config."""
        if self.server.disabled:
            raise UpstreamUnavailableError(
                self.server.name, "it is disabled", "Remove 'disabled' from its config to use it."
            )
        if self.server.problem:
            raise UpstreamUnavailableError(self.server.name, self.server.problem)

    def check_usable(self, now: float) -> None:
        """Raises UpstreamUnavailableError while a connection attempt would be pointless."""
        if self.login.error is not None and not self.login.over:
            raise self.login.error
        if self.circuit.open(now) and self.login.grant_signature == self._grant_at_failure:
            wait = f"It is tried again in {max(self.circuit.retry_at - now, 0.1):.1f} s."
            raise UpstreamUnavailableError(self.server.name, self.circuit.reason, wait)

    def health(self, now: float) -> Health:
        """The state at ``now`` (monotonic s)."""
        if self.server.disabled or self.server.problem:
            return at_start(self.server)
        if self.login.error is not None:
            return Health("needs login", problem(self.login.error))
        if self.connections():
            return Health("connected")
        if any(entry.connecting is not None for entry in self.entries.values()):
            return Health("connecting")
        if self.circuit.failures:
            return Health("failing", self.circuit.reason, max(0.0, self.circuit.retry_at - now))
        return Health("idle")

    async def connect(self, connection: Connection, starts: StartQueue, *, requested: bool) -> None:
        """Connects. A process is started when its turn has come, and its time to connect counts from then.

        requested: whether a request waits for it. Raises UpstreamUnavailableError.
        """
        priority = StartPriority.KNOWN if self.listed else StartPriority.NEW
        if requested:
            priority = StartPriority.ASKED
        stdio = self.server.transport == "stdio"
        if stdio and (ending := [task for task in self.predecessors if not task.done()]):
            await asyncio.wait(ending, timeout=PREDECESSOR_TIMEOUT)
        turn = (
            starts.turn(self.server.name, priority, connection.activity.resting) if stdio else nullcontext()
        )
        async with turn:
            self.connect_started = time.monotonic()
            await connection.connect(CONNECT_TIMEOUT)
        assert connection.server_info is not None
        seconds, version = time.monotonic() - self.connect_started, connection.server_info.dialect.version
        note(
            "info", self.server.name, "connected", f"connected in {seconds:.2f} s, protocol version {version}"
        )

    def connections(self) -> list[Connection]:
        """The usable connections, the one that may be closed last at the end."""
        entries = sorted(self.entries.values(), key=lambda entry: entry.unused_at)
        return [entry.connection for entry in entries if entry.connection and entry.connection.alive]

    def entry(self, origin: Origin) -> PoolEntry:
        """That of the connection that serves ``origin``; a new one if there is none."""
        key = self.key(origin)
        entry = self.entries.get(key)
        if entry is None and origin.era is None and origin.bound_client is None:  # any connection will do
            entry = self.any_entry()
        if entry is None:
            entry = self.entries[key] = PoolEntry()
        return entry

    def any_entry(self) -> PoolEntry | None:
        """An entry with a usable connection, if there is one."""
        for entry in self.entries.values():
            if entry.connection is not None and entry.connection.alive:
                return entry
        return None

    def key(self, origin: Origin) -> PoolKey:
        """The key of the connection that serves ``origin``."""
        era = self.eras.get(origin.era, origin.era)
        client = origin.bound_client
        # A modern connection is no session: every client can share it.
        shared = client is None or (era is Era.MODERN and not client.is_isolated)
        return era, None if client is None or shared else client.key

    def remove(self, entry: PoolEntry) -> None:
        """Removes the entry's connection, and the entry unless a new connection is being opened for it."""
        entry.connection = None
        if entry.connecting is None:
            self.entries = {key: other for key, other in self.entries.items() if other is not entry}

    def has_subscriptions(self, connection: Connection) -> bool:
        """Whether a client has subscribed to resources whose updates arrive on ``connection``."""
        if connection.subscribes_for_all or connection.bound_client is None:
            return bool(self.subscriptions)
        return bool(connection.bound_client.watched(self.server.name))

    def exclusive_entries(self) -> list[PoolEntry]:
        """The entries that are reserved for one bound_client each."""
        return [entry for (_, owner), entry in self.entries.items() if owner is not None]


def make_room(
    by_name: Mapping[str, ServerState], wanting: ServerState, entry: PoolEntry, most: int | None
) -> Connection | None:
    """The connection to close because clients hold more of their own than ``most`` (None: OWN_CONNECTIONS),
    not counting one for each server: the least recently used of those that are idle. None if there is room.
    When all are in use, removes ``entry`` of ``wanting``, which is one too many, and raises
    UpstreamUnavailableError.
    """
    states = by_name.values()
    held = sum(max(0, len(state.exclusive_entries()) - 1) for state in states)
    if held <= (limits.OWN_CONNECTIONS if most is None else most):
        return None
    idle = [
        (state, entry, entry.connection)
        for state in states
        for entry in state.exclusive_entries()
        if entry.connection is not None and entry.connecting is None and len(state.exclusive_entries()) > 1
        if not entry.connection.open_requests and not state.has_subscriptions(entry.connection)
    ]
    if not idle:
        wanting.remove(entry)
        why = "too many clients have connections of their own in use"
        raise UpstreamUnavailableError(wanting.server.name, why, "Try again later.")
    state, unused, connection = min(idle, key=lambda found: found[1].used_at)
    state.remove(unused)
    return connection
