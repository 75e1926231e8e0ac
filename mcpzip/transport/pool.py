"""The connections to all upstreams.

The rules: a connection is opened by the first request that needs it and closed when it was unused for a
while; a broken server affects no other; a request is sent again only when it can't have run, or when running
it twice does no harm. No lock is held while an upstream works: requests to one server share its connection
and run concurrently.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.model.errors import (
    LoginNeededError,
    McpzipError,
    UpstreamError,
    UpstreamLostError,
    UpstreamUnavailableError,
)
from mcpzip.system.reaper import Reaper
from mcpzip.system.tasks import retrieve_exception
from mcpzip.transport.base import NOBODY, BoundClient, Origin, ProgressSink
from mcpzip.transport.closing import ClosingConnections
from mcpzip.transport.connection import EXIT_GRACE, GRACE, QUICK_GRACE, Connection
from mcpzip.transport.expiry import Expiry
from mcpzip.transport.handshake import ServerInfo
from mcpzip.transport.health import Health, Listing, Rest, problem
from mcpzip.transport.listing import listed_tools
from mcpzip.transport.login_wait import LoginWait
from mcpzip.transport.pagination import all_the_rest
from mcpzip.transport.server_state import (
    CONNECT_TIMEOUT,
    PoolEntry,
    PoolKey,
    ServerState,
    make_room,
)
from mcpzip.transport.server_states import ServerStates
from mcpzip.transport.start_queue import StartQueue
from mcpzip.wire import Era

REST_TIMEOUT = 5.0
"""Seconds an upstream has to list its prompts, resources or templates."""
REOPEN = 1.0
"""Seconds after which a lost connection with subscriptions is opened again."""
DRAIN_TIMEOUT = 120.0
"""Seconds that open requests have to end on a connection whose server was changed in the config."""
LINGER, CROWDED_LINGER = 30.0, 5.0
"""Seconds a connection that only listed tools stays open; the latter while other servers wait to start."""


class Pool:
    """Connections to all upstreams of a config. Everything runs on one event loop.

    starts: the queue of servers that are waiting to be started. own_connections: see `make_room`.
    """

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        *,
        idle_timeout: float,
        protocols: Mapping[str, str] = {},
        sign_ins: SignIns | None = None,
        on_list_changed: Callable[[str, str | None, Origin], None] = lambda server, which, origin: None,
        on_resource_updated: Callable[
            [str, BoundClient | None, bytes], None
        ] = lambda server, bound_client, params: None,
        on_question: Callable[
            [str, BoundClient, str, bytes | None], None
        ] = lambda server, bound_client, method, params: None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """idle_timeout: seconds without a request after which a connection is closed. protocols: the version
        each server spoke last time, by name. sign_ins: sign the requests over HTTP. environment: of which
        processes inherit a part.
        """
        self._environment = environment
        self._sign_ins = sign_ins
        self._on_list_changed = on_list_changed
        self._on_resource_updated, self._on_question = on_resource_updated, on_question
        self._reaper = Reaper()
        self.own_connections: int | None = None
        self.starts = StartQueue()
        self._closing = ClosingConnections()
        self._background: set[asyncio.Task[None]] = set()
        self._abandoned: set[asyncio.Task[Connection]] = set()
        self._closed = False
        self._states = ServerStates(
            lambda server: LoginWait(server, sign_ins, partial(on_list_changed, server.name, None, NOBODY))
        )
        self._states.replace(servers, protocols)
        self._expiry = Expiry(idle_timeout, self._states.is_current, self._closing)

    def reconfigure(
        self,
        servers: Iterable[ServerConfig],
        *,
        idle_timeout: float,
        disconnected: Collection[str],
        protocols: Mapping[str, str],
        watched: Callable[[str], Collection[str]],
        drain: float | None = None,
    ) -> None:
        """Uses ``servers`` from now on. disconnected: those that were removed, or have another connection
        now; their connections are closed when the open requests have ended, or after ``drain`` (else
        DRAIN_TIMEOUT) seconds. watched: the resources that clients without own connections subscribed to.
        """
        self._expiry.idle_timeout = idle_timeout
        for state in self._states.replace(servers, protocols, disconnected, watched):
            self._retire(state, DRAIN_TIMEOUT if drain is None else drain)

    def _retire(self, state: ServerState, drain: float) -> None:
        """Closes the connections of ``state``, which is no longer used."""
        state.login.close()
        now = self._states.get(state.server.name)
        for entry in state.entries.values():
            entry.end_attempt(self._abandoned)
            connection, entry.connection = entry.connection, None
            if connection is None:
                continue
            watched = state.has_subscriptions(connection)
            connection.retire()
            closing = self._closing.begin(connection, GRACE, drain=True, timeout=drain)
            if now is not None and not connection.open_requests:
                now.predecessors.append(closing)
            if watched and now is not None and now.server.problem is None and not now.server.disabled:
                self._in_background(self._reopen(now, connection), f"reopen-{state.server.name}")

    async def request(
        self,
        server: str,
        method: str,
        params: bytes | None,
        *,
        timeout: float,
        on_progress: ProgressSink | None = None,
        repeatable: bool = False,
        origin: Origin = NOBODY,
        definition: bytes | None = None,
    ) -> bytes:
        """Sends a request, connecting first if necessary, and returns the result's JSON text.

        timeout: seconds for the request itself, without connecting. repeatable: running it twice does no
        harm, so it is sent a second time when the connection breaks under it. definition: see
        `Channel.request`. Raises UpstreamError and its subclasses.
        """
        repeated = False
        while True:
            # Not `_connection`: its context manager would take a tenth of a call's time.
            state = self._states.configured(server)
            entry = state.entry(origin)
            connection = entry.connection
            if connection is None or not connection.alive:
                state, entry, connection = await self._acquire(server, origin)
            if origin.on_sent is not None:
                origin.on_sent()
            try:
                result = await connection.request(
                    method,
                    params,
                    timeout=timeout,
                    on_progress=on_progress,
                    origin=origin,
                    definition=definition,
                )
                state.login.end()
                return result
            except UpstreamLostError as error:
                if repeated or (error.may_have_run and not repeatable):
                    raise
                repeated = True
            except LoginNeededError as error:
                if error.lasting:
                    state.login.begin(error)
                raise
            finally:
                self._expiry.keep(state, entry)

    def speaks(self, server: str, era: Era | None) -> Era | None:
        """The era that ``server`` speaks with a client of ``era``; None while it isn't known."""
        return state.eras.get(era) if (state := self._states.by_name.get(server)) else None

    async def notify(self, server: str, bound_client: BoundClient, method: str, params: bytes | None) -> None:
        """Sends a notification on the client's legacy connection to ``server``, if it has one."""
        if (state := self._states.get(server)) is None:
            return
        for key in {state.key(Origin(era, bound_client)) for era in Era}:
            entry = state.entries.get(key)
            connection = None if entry is None else entry.connection
            if connection is not None and connection.bound_client is bound_client:
                await connection.notify(method, params)

    async def set_level(
        self, bound_client: BoundClient, params: bytes, timeout: float, to: Callable[[str], bool]
    ) -> None:
        """Sends `logging/setLevel` on the client's legacy connections to servers that log. to: whether to
        send it to the server of this name. Errors are ignored.
        """
        wanted = (one for name, state in self._states.items() if to(name) for one in state.connections())
        own = [one for one in wanted if one.bound_client is bound_client and one.logs]
        requests = (connection.request("logging/setLevel", params, timeout=timeout) for connection in own)
        for outcome in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, UpstreamError):
                raise outcome

    async def forget(self, bound_client: BoundClient) -> None:
        """Closes the connections that are reserved for ``bound_client``."""
        if bound_client.key is None:
            return
        for state in self._states.values():
            for key in [key for key in state.entries if key[1] == bound_client.key]:
                entry = state.entries.pop(key)
                entry.end_attempt(self._abandoned)
                if entry.connection is not None:
                    self._closing.begin(entry.connection, GRACE)

    def outdate(self, server: str, bound_client: BoundClient | None) -> None:
        """Hardly any client uses the legacy connections to ``server`` again that are reserved for
        ``bound_client``, or for none: they are closed as soon as their requests have ended.
        """
        if (state := self._states.get(server)) is not None:
            self._expiry.outdate(state, None if bound_client is None else bound_client.key)

    async def server_info(self, server: str, origin: Origin) -> ServerInfo:
        """The handshake result of ``server``, connecting first if necessary. Raises
        UpstreamUnavailableError.
        """
        async with self._connection(server, origin) as connection:
            assert connection.server_info is not None
            return connection.server_info

    async def set_subscriptions(
        self, server: str, uris: Collection[str], origin: Origin | None = None
    ) -> dict[str, UpstreamError]:
        """Subscribes to these resources of ``server`` and to no others: to those that all clients together
        want, without those that a bound_client subscribes to on a connection of its own. origin: of a client
        that wants one of them, which shares its connection with others; None where none wants more.

        Returns the refusals, by resource. Raises UpstreamError and its subclasses without a connection.
        """
        state = self._states.configured(server)
        state.subscriptions = frozenset(uris)
        connections = [one for one in state.connections() if one.subscribes_for_all]
        shares = origin is not None and origin.bound_client is not None
        if state.subscriptions and origin and (shares or not any(one.unbound for one in connections)):
            async with self._connection(server, origin) as connection:
                connections += [] if connection in connections else [connection]
        refused: dict[str, UpstreamError] = {}
        for connection in connections:
            refused |= await connection.set_subscriptions(uris)
        return refused

    @asynccontextmanager
    async def _connection(
        self,
        server: str,
        origin: Origin,
        *,
        force: bool = False,
        keep: float | None = None,
    ) -> AsyncIterator[Connection]:
        """The connection for ``origin``, which then stays open for ``keep`` seconds (default: the idle
        timeout). force: see `_acquire`.
        """
        state, entry, connection = await self._acquire(server, origin, force=force)
        try:
            yield connection
        except LoginNeededError as error:
            state.login.begin(error)
            raise
        finally:
            self._expiry.keep(state, entry, keep)

    async def list_tools(
        self, server: str, timeout: float = CONNECT_TIMEOUT, *, origin: Origin = NOBODY
    ) -> Listing:
        """All pages of the server's tools. timeout: seconds for all of it, from the start of the server on,
        which may have to wait for its turn.

        Ignores an open circuit, to show the server's present state. Raises UpstreamError and its subclasses.
        """
        connection = partial(self._connection, server, origin, force=True, keep=self._linger)
        started = partial(self.connect_started, server)
        listing = await listed_tools(server, connection, started, timeout, origin)
        state = self._states.configured(server)
        state.login.end()
        state.listed = True
        return listing

    async def list_rest(self, server: str, timeout: float = REST_TIMEOUT, *, origin: Origin = NOBODY) -> Rest:
        """The server's prompts, resources and templates. timeout: seconds for each list. Raises UpstreamError
        and its subclasses when there is no connection.
        """
        async with self._connection(server, origin, force=True, keep=self._linger) as connection:
            return await all_the_rest(connection, timeout, origin)

    @property
    def _linger(self) -> float:
        """Seconds a connection that only listed stays open."""
        return min(CROWDED_LINGER if self.starts.crowded else LINGER, self._expiry.idle_timeout)

    def connect_started(self, server: str) -> float:
        """When the last attempt to connect to ``server`` began (monotonic s); 0 before the first."""
        return state.connect_started if (state := self._states.get(server)) else 0.0

    def health(self, server: str) -> Health:
        """The present state of ``server``."""
        return self._states[server].health(time.monotonic())

    def connections(self, server: str) -> list[Connection]:
        """The usable connections to ``server``."""
        return self._states[server].connections()

    def login_is_over(self, server: str) -> bool:
        """Whether somebody has signed in to, or out of, ``server`` since it was found to need a login."""
        return (state := self._states.get(server)) is not None and state.login.over

    async def close(self) -> None:
        """Closes every connection, because mcpzip is about to exit. Processes that don't exit soon after the
        end of their input are ended after mcpzip has exited, if the system allows that, else here.
        """
        self._closed = True
        self._expiry.stop()
        self._reaper.take_over()
        entries = [entry for state in self._states.values() for entry in state.entries.values()]
        connecting = [entry.connecting for entry in entries if entry.connecting is not None]
        for task in (*connecting, *self._background):
            task.cancel()
        connections = [entry.connection for entry in entries if entry.connection is not None]
        grace = EXIT_GRACE if self._reaper.takes_over else QUICK_GRACE
        closing = [connection.close(grace) for connection in (*connections, *self._closing.connections)]
        for entry in entries:
            if entry.expiry is not None:
                entry.expiry.cancel()
        for state in self._states.values():
            state.login.end()
        tasks = (*connecting, *self._background, *self._abandoned, *self._closing.tasks)
        await asyncio.gather(*tasks, *closing, return_exceptions=True)
        if self._sign_ins is not None:
            await self._sign_ins.close()
        await self._reaper.cancel_scans()
        self._reaper.close()

    async def _acquire(
        self, server: str, origin: Origin, *, force: bool = False
    ) -> tuple[ServerState, PoolEntry, Connection]:
        """A usable connection for ``origin``, its entry, and the state of ``server``. force: connect although
        the circuit is open. The caller calls `Expiry.keep` afterwards.
        """
        while True:
            state = self._states.configured(server)
            try:
                entry, connection = await self._acquire_from(state, origin, force=force)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self._states.is_current(state) or task is None or task.cancelling():
                    raise
                continue  # the attempt to connect was cancelled, because the server's config has changed
            return state, entry, connection

    async def _acquire_from(
        self, state: ServerState, origin: Origin, *, force: bool
    ) -> tuple[PoolEntry, Connection]:
        entry = state.entry(origin)
        if entry.connection is not None and entry.connection.alive:
            return entry, entry.connection
        connection = await self._connected(state, entry, origin, force=force)
        entry = state.entries.get(state.key(origin), entry)  # the server may speak another era than wanted
        return entry, connection

    async def _connected(
        self, state: ServerState, entry: PoolEntry, origin: Origin, *, force: bool
    ) -> Connection:
        """A new connection for ``entry``; callers that need it at the same time share the attempt."""
        server = state.server
        state.check_config()
        if self._closed:
            raise UpstreamUnavailableError(server.name, "mcpzip is shutting down")
        if not force:
            state.check_usable(time.monotonic())
        if entry.connecting is None:
            own = origin.bound_client is not None and origin.bound_client.key is not None
            if own and (idle := make_room(self._states, state, entry, self.own_connections)) is not None:
                self._closing.begin(idle, QUICK_GRACE)
            connecting = self._connect(state, entry, origin, requested=not force)
            entry.connecting = asyncio.create_task(connecting, name=f"connect-{server.name}")
            entry.connecting.add_done_callback(retrieve_exception)
        elif not force:
            self.starts.prioritize(server.name)
        # Shielded, because a caller that gives up must not cancel the attempt that others wait for.
        return await asyncio.shield(entry.connecting)

    async def _connect(
        self, state: ServerState, entry: PoolEntry, origin: Origin, *, requested: bool
    ) -> Connection:
        old, entry.connection = entry.connection, None
        first, sure = state.first_era(origin)
        connection = Connection(
            state.server,
            self,
            self._reaper,
            first=first,
            sure=sure,
            bound_client=origin.bound_client,
            sign_ins=self._sign_ins,
            environment=self._environment,
            folder=origin.folder,
        )
        try:
            if old is not None:
                self._closing.begin(old, QUICK_GRACE, drain=True)
            await state.connect(connection, self.starts, requested=requested)
        except LoginNeededError as error:
            state.login.begin(error)
            raise
        except McpzipError as error:
            state.failed(time.monotonic(), problem(error))
            raise
        finally:
            entry.connecting = None
        assert connection.server_info is not None
        state.succeeded(connection.server_info.dialect, origin, first)
        return self._add(state, entry, connection, state.key(origin))

    def _add(self, state: ServerState, entry: PoolEntry, connection: Connection, key: PoolKey) -> Connection:
        """Stores a new connection under ``key`` and returns the connection to use, which is another if a
        request that wanted another era has opened that one in the meantime.
        """
        present = state.entries.get(key, entry)
        if present.connection is not None and present.connection.alive:
            if present is not entry:
                state.remove(entry)
            self._closing.begin(connection, GRACE)
            return present.connection
        state.entries = {other: one for other, one in state.entries.items() if one is not entry}
        state.entries[key] = present
        present.connection = connection
        if state.subscriptions and connection.subscribes_for_all:
            self._in_background(self._resubscribe(state, connection), f"subscribe-{state.server.name}")
        self._expiry.keep(state, present, self._linger)
        return connection

    async def _resubscribe(self, state: ServerState, connection: Connection) -> None:
        try:
            await connection.set_subscriptions(state.subscriptions)
        except UpstreamError:
            pass  # the subscribing client got the error; the next connection tries again

    async def _reopen(self, state: ServerState, connection: Connection) -> None:
        """Replaces a lost connection for as long as a client has subscriptions on it."""
        while not self._closed and self._states.is_current(state) and state.has_subscriptions(connection):
            await asyncio.sleep(max(REOPEN, state.circuit.retry_at - time.monotonic()))
            if not self._states.is_current(state) or not state.has_subscriptions(connection):
                return
            info = connection.server_info
            try:
                origin = Origin(None if info is None else info.dialect.era, connection.bound_client)
                async with self._connection(state.server.name, origin):
                    return
            except UpstreamError:
                continue

    def _in_background(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def list_changed(self, connection: Connection, which: str | None) -> None:
        """Implements `connection.Listener`."""
        if connection.is_replaced:
            return
        # The list may differ on this connection alone, so it is fetched there.
        origin = Origin(Era.MODERN if connection.modern else Era.LEGACY, connection.bound_client)
        self._on_list_changed(connection.server.name, which, origin)

    def resource_updated(self, server: str, bound_client: BoundClient | None, params: bytes) -> None:
        """Implements `connection.Listener`."""
        self._on_resource_updated(server, bound_client, params)

    def asked(self, server: str, bound_client: BoundClient, method: str, params: bytes | None) -> None:
        """Implements `connection.Listener`."""
        self._on_question(server, bound_client, method, params)

    def disconnected(self, server: str, connection: Connection) -> None:
        """Implements `connection.Listener`."""
        if (state := self._states.get(server)) is None:
            return
        for entry in state.entries.values():
            if entry.connection is connection:
                entry.connection = None
                self._closing.begin(connection, QUICK_GRACE, drain=True)
        if state.has_subscriptions(connection):
            self._in_background(self._reopen(state, connection), f"reopen-{server}")
