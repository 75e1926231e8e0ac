"""The upstream connections.

The rules: a connection is opened by the first request that needs it and closed when nothing has used it for
a while; one broken server costs nobody else anything; a request is sent again only when it can't have run. No
lock is held while an upstream works: requests to one server share its connection and run concurrently.
"""

import asyncio
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
from mcpzip.transport.base import NOBODY, Origin, Partner, ProgressSink
from mcpzip.transport.connection import GRACE, QUICK_GRACE, Connection
from mcpzip.transport.handshake import ServerInfo
from mcpzip.transport.health import Health, Listing, Rest, problem
from mcpzip.transport.login_wait import LoginWait
from mcpzip.transport.pagination import all_pages, all_the_rest
from mcpzip.transport.server_state import (
    CONNECT_TIMEOUT,
    PoolEntry,
    PoolKey,
    ServerState,
    least_recently_used,
    too_many_exclusive,
)
from mcpzip.transport.start_queue import StartPriority, StartQueue
from mcpzip.wire import LEGACY_VERSIONS, Era

REST_TIMEOUT = 5.0
"""Seconds an upstream has to list its prompts, resources or templates."""
REOPEN = 1.0
"""Seconds after which a lost connection is opened again where somebody waits to hear something on it."""
LINGER, CROWDED_LINGER = 30.0, 5.0
"""Seconds a connection that only listed its tools is kept before it is closed as unused; the latter while
others wait for their turn to start.
"""


class Pool:
    """Connections to all upstreams of a config. Everything runs on one event loop.

    starts: whose turn it is to start.
    """

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        *,
        idle_timeout: float,
        protocols: Mapping[str, str] = {},
        sign_ins: SignIns | None = None,
        on_list_changed: Callable[[str, str | None, Origin], None] = lambda server, which, origin: None,
        on_resource_updated: Callable[[str, Partner | None, bytes], None] = lambda server, partner, params: (
            None
        ),
    ) -> None:
        """idle_timeout: seconds without a request after which a connection is closed. protocols: the version
        each server spoke last time, by name. sign_ins: with which requests over HTTP are signed."""
        self._idle_timeout, self._sign_ins = idle_timeout, sign_ins
        self._slots: dict[str, ServerState] = {}
        for server in servers:
            wait = LoginWait(server, sign_ins, partial(on_list_changed, server.name, None, NOBODY))
            self._slots[server.name] = ServerState(server, protocols.get(server.name), wait)
        self._on_list_changed = on_list_changed
        self._on_resource_updated = on_resource_updated
        self._guardian = Reaper()
        self.starts = StartQueue()
        self._leaving: dict[asyncio.Task[None], Connection] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._abandoned: set[asyncio.Task[Connection]] = set()
        self._closed = False

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
        """Asks an upstream, connecting first if need be, and returns the result's JSON text.

        timeout: seconds for the request itself; connecting has its own. repeatable: running it twice does no
        harm, so that a request whose connection broke under it may be sent once more. origin: on whose
        behalf. definition: see `Channel.request`. Raises UpstreamError and its kinds.
        """
        slot, again = self._slots[server], False
        while True:
            # As `_used` does it, whose context alone would take a tenth of a call's time.
            line, connection = await self._line(slot, origin.era, origin.partner, insist=False)
            try:
                result = await connection.request(
                    method,
                    params,
                    timeout=timeout,
                    on_progress=on_progress,
                    origin=origin,
                    definition=definition,
                )
                slot.login.end()
                return result
            except UpstreamLostError as error:
                if again or (error.may_have_run and not repeatable):
                    raise
                again = True
            except LoginNeededError as error:
                if error.lasting:
                    slot.login.begin(error)
                raise
            finally:
                self._keep(slot, line, self._idle_timeout)

    def speaks(self, server: str, era: Era | None) -> Era | None:
        """The era in which ``server`` is spoken to for somebody of ``era``; None when it isn't known."""
        return self._slots[server].speaks.get(era)

    async def tell(self, server: str, partner: Partner, method: str, params: bytes | None) -> None:
        """Sends a notification on the legacy connection that ``partner`` has to ``server``, if it has one."""
        slot = self._slots[server]
        for place in {slot.place(era, partner) for era in Era}:
            line = slot.lines.get(place)
            if line is not None and line.connection is not None and line.connection.partner is partner:
                await line.connection.notify(method, params)

    async def set_level(
        self, partner: Partner, params: bytes, timeout: float, to: Callable[[str], bool]
    ) -> None:
        """Makes a `logging/setLevel` on the legacy connections that ``partner`` has to servers that log. to:
        to which, by name. Errors change nothing.
        """
        every = [one for name, slot in self._slots.items() if to(name) for one in slot.connections()]
        own = [one for one in every if one.partner is partner and one.logs]
        asking = (connection.request("logging/setLevel", params, timeout=timeout) for connection in own)
        for outcome in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, UpstreamError):
                raise outcome

    async def forget(self, partner: Partner) -> None:
        """Ends the connections that are ``partner``'s own."""
        if partner.key is None:
            return
        for slot in self._slots.values():
            for place in [place for place in slot.lines if place[1] == partner.key]:
                line = slot.lines.pop(place)
                if line.expiry is not None:
                    line.expiry.cancel()
                if line.connecting is not None:
                    line.connecting.cancel()
                    self._abandoned.add(line.connecting)
                    line.connecting.add_done_callback(self._abandoned.discard)
                if line.connection is not None:
                    self._leave(line.connection, GRACE)

    async def greeting(self, server: str, origin: Origin) -> ServerInfo:
        """What ``server`` says of itself, connecting first if need be. Raises UpstreamUnavailableError."""
        async with self._used(self._slots[server], origin) as connection:
            assert connection.greeting is not None
            return connection.greeting

    async def watch(self, server: str, uris: Collection[str]) -> dict[str, UpstreamError]:
        """From now on ``server`` is to tell us of changes of these resources, and no others: those that all
        clients together want, but for the ones that a partner watches on a connection of its own.

        Returns why it won't, by resource. Raises UpstreamError and its kinds when it can't be asked.
        """
        slot = self._slots[server]
        slot.watched = frozenset(uris)
        shared = [one for one in slot.connections() if one.shared]
        if slot.watched and not any(one.common for one in shared):  # the others come and go
            async with self._used(slot, NOBODY, common=True) as connection:
                shared.append(connection)
        refused: dict[str, UpstreamError] = {}
        for connection in shared:
            refused |= await connection.watch(uris)
        return refused

    @asynccontextmanager
    async def _used(
        self,
        slot: ServerState,
        origin: Origin,
        *,
        insist: bool = False,
        common: bool = False,
        keep: float | None = None,
    ) -> AsyncIterator[Connection]:
        """The connection for ``origin``, which is then kept for ``keep`` seconds (default: as configured)."""
        line, connection = await self._line(slot, origin.era, origin.partner, insist=insist, common=common)
        try:
            yield connection
        except LoginNeededError as error:
            slot.login.begin(error)
            raise
        finally:
            self._keep(slot, line, self._idle_timeout if keep is None else keep)

    async def list_tools(
        self, server: str, timeout: float = CONNECT_TIMEOUT, *, origin: Origin = NOBODY
    ) -> Listing:
        """Every page of the server's tools. timeout: seconds for all of it from the start of the server on,
        which may have to wait for its turn.

        Ignores an open circuit: whoever lists wants to know how it is now. Raises UpstreamError and its
        kinds.
        """
        slot = self._slots[server]
        begun = time.monotonic()

        async def attempt() -> tuple[list[bytes], float | None, ServerInfo]:
            async with self._used(slot, origin, insist=True, keep=self._linger) as connection:
                assert connection.greeting is not None
                left = max(begun, slot.begun) + timeout - time.monotonic()
                async with asyncio.timeout(left):
                    pages = await all_pages(connection, "tools/list", "tools", timeout, origin)
                return *pages, connection.greeting

        try:
            try:
                tools, ttl, greeting = await attempt()
            except UpstreamLostError:  # listing twice does no harm
                tools, ttl, greeting = await attempt()
            slot.login.end()
        except TimeoutError:
            raise UpstreamUnavailableError(
                server,
                f"it did not list its tools within {timeout:g} s",
                "It is asked again at the next refresh.",
            ) from None
        slot.known = True
        return Listing.of(tools, ttl, greeting)

    async def list_rest(self, server: str, timeout: float = REST_TIMEOUT, *, origin: Origin = NOBODY) -> Rest:
        """What the server offers beside tools. timeout: seconds for each kind. Raises UpstreamError and its
        kinds when there is no connection.
        """
        async with self._used(self._slots[server], origin, insist=True, keep=self._linger) as connection:
            return await all_the_rest(connection, timeout, origin)

    @property
    def _linger(self) -> float:
        """Seconds to keep what only listed: what others need to start is not for it."""
        return min(CROWDED_LINGER if self.starts.crowded else LINGER, self._idle_timeout)

    def begun(self, server: str) -> float:
        """When ``server`` was last begun to be connected to (monotonic s); 0 when never."""
        return self._slots[server].begun

    def health(self, server: str) -> Health:
        """How the server is doing right now."""
        slot = self._slots[server]
        if slot.server.disabled:
            return Health("disabled", "it is disabled in the config")
        if slot.server.problem:
            return Health("failing", slot.server.problem)
        if slot.login.error is not None:
            return Health("needs login", problem(slot.login.error))
        if slot.connections():
            return Health("connected")
        if any(line.connecting is not None for line in slot.lines.values()):
            return Health("connecting")
        if slot.circuit.failures:
            return Health("failing", slot.circuit.reason, max(0.0, slot.circuit.retry_at - time.monotonic()))
        return Health("idle")

    def login_is_over(self, server: str) -> bool:
        """Whether somebody has signed in to ``server`` after it was found that a person has to."""
        slot = self._slots.get(server)
        return slot is not None and slot.login.over

    async def close(self) -> None:
        """Ends every connection and process, within about a second."""
        self._closed = True
        lines = [line for slot in self._slots.values() for line in slot.lines.values()]
        connecting = [line.connecting for line in lines if line.connecting is not None]
        for task in (*connecting, *self._background):
            task.cancel()
        connections = [line.connection for line in lines if line.connection is not None]
        closing = [connection.close(QUICK_GRACE) for connection in (*connections, *self._leaving.values())]
        for line in lines:
            if line.expiry is not None:
                line.expiry.cancel()
        for slot in self._slots.values():
            slot.login.end()
        leaving = (*self._background, *self._abandoned, *self._leaving)
        await asyncio.gather(*connecting, *leaving, *closing, return_exceptions=True)
        if self._sign_ins is not None:
            await self._sign_ins.close()
        await self._guardian.cancel_scans()
        self._guardian.close()

    async def _line(
        self,
        slot: ServerState,
        era: Era | None,
        partner: Partner | None,
        *,
        insist: bool,
        common: bool = False,
    ) -> tuple[PoolEntry, Connection]:
        place = slot.place(era, partner)
        line = slot.lines.get(place)
        if line is None and era is None and partner is None:  # whoever there is will do
            line = slot.any_entry(common=common)
        if line is None:
            line = slot.lines[place] = PoolEntry()
        if line.connection is not None and line.connection.alive:
            return line, line.connection
        connection = await self._connected(slot, line, era, partner, insist=insist)
        line = slot.lines.get(slot.place(era, partner), line)  # it may speak another era than was hoped
        return line, connection

    def _keep(self, slot: ServerState, line: PoolEntry, seconds: float) -> None:
        """The connection was used: it lives ``seconds`` more at least."""
        line.used_at = time.monotonic()
        line.unused_at = max(line.unused_at, line.used_at + seconds)
        if line.expiry is None and not self._closed:
            line.expiry = asyncio.get_running_loop().call_later(seconds, self._expire, slot, line)

    def _expire(self, slot: ServerState, line: PoolEntry) -> None:
        line.expiry = None
        connection = line.connection
        if connection is None:
            self._drop(slot, line)
            return
        left = line.unused_at - time.monotonic()
        if connection.open_requests or (connection.alive and slot.watches(connection)):
            self._keep(slot, line, self._idle_timeout)
        elif left > 0:
            line.expiry = asyncio.get_running_loop().call_later(left, self._expire, slot, line)
        else:
            self._drop(slot, line)
            self._leave(connection, GRACE)

    @staticmethod
    def _drop(slot: ServerState, line: PoolEntry) -> None:
        line.connection = None
        if line.connecting is None:
            slot.lines = {place: one for place, one in slot.lines.items() if one is not line}

    async def _connected(
        self, slot: ServerState, line: PoolEntry, era: Era | None, partner: Partner | None, *, insist: bool
    ) -> Connection:
        server = slot.server
        if server.disabled:
            raise UpstreamUnavailableError(
                server.name, "it is disabled", "Remove 'disabled' from its config to use it."
            )
        if server.problem:
            raise UpstreamUnavailableError(server.name, server.problem)
        if self._closed:
            raise UpstreamUnavailableError(server.name, "mcpzip is shutting down")
        if not insist:
            slot.refuse(time.monotonic())
        if line.connecting is None:
            if partner is not None and partner.key is not None:
                self._make_room(slot, line)
            line.connecting = asyncio.create_task(
                self._connect(slot, line, era, partner, slot.rank(asked=not insist)),
                name=f"connect-{server.name}",
            )
            line.connecting.add_done_callback(retrieve_exception)
        elif not insist:
            self.starts.hurry(server.name)
        # Shielded: a caller that gives up doesn't take the others' connection with it.
        return await asyncio.shield(line.connecting)

    def _make_room(self, slot: ServerState, line: PoolEntry) -> None:
        """Closes, for ``line``, a connection that its partner doesn't use if there are too many."""
        if too_many_exclusive(self._slots.values()):
            if (idle := least_recently_used(self._slots.values())) is None:
                self._drop(slot, line)
                why = "too many clients have connections of their own in use"
                raise UpstreamUnavailableError(slot.server.name, why, "Try again later.")
            self._drop(*idle[:2])
            self._leave(idle[2], QUICK_GRACE)

    async def _connect(
        self,
        slot: ServerState,
        line: PoolEntry,
        era: Era | None,
        partner: Partner | None,
        rank: StartPriority,
    ) -> Connection:
        old, line.connection = line.connection, None
        wanted = slot.speaks.get(era, era)
        was_legacy = slot.protocol in LEGACY_VERSIONS
        first = wanted or (Era.LEGACY if was_legacy else Era.MODERN)
        sure = was_legacy and first is Era.LEGACY
        connection = Connection(
            slot.server,
            self,
            self._guardian,
            first=first,
            sure=sure,
            partner=partner,
            sign_ins=self._sign_ins,
        )
        try:
            if old is not None:
                self._drain(old)
            await slot.connect(connection, self.starts, rank)
        except LoginNeededError as error:
            slot.login.begin(error)
            raise
        except McpzipError as error:
            slot.failed(time.monotonic(), problem(error))
            raise
        finally:
            line.connecting = None
        slot.circuit.succeeded()
        assert connection.greeting is not None
        slot.protocol = connection.greeting.dialect.version
        spoken = connection.greeting.dialect.era
        slot.speaks[era] = slot.speaks[first] = spoken
        return self._placed(slot, line, connection, slot.place(era, partner))

    def _placed(
        self, slot: ServerState, line: PoolEntry, connection: Connection, place: PoolKey
    ) -> Connection:
        """Puts a new connection where those look for it that want one of its kind."""
        there = slot.lines.get(place, line)
        if there.connection is not None and there.connection.alive:  # one that wanted another era was faster
            if there is not line:
                self._drop(slot, line)
            self._leave(connection, GRACE)
            return there.connection
        slot.lines = {at: one for at, one in slot.lines.items() if one is not line}
        slot.lines[place] = line = there
        line.connection = connection
        if slot.watched and connection.shared:
            self._in_background(self._watch_again(slot, connection), f"watch-{slot.server.name}")
        self._keep(slot, line, self._linger)
        return connection

    def _drain(self, connection: Connection) -> None:
        """Closes ``connection`` in the background, as `_leave` does, when it is of no more use."""
        task = asyncio.create_task(self._drained(connection), name=f"drain-{connection.server.name}")
        self._leaving[task] = connection
        task.add_done_callback(self._leaving.pop)

    async def _drained(self, connection: Connection) -> None:
        """Closes ``connection`` when what is under way on it has come to its end."""
        try:
            await connection.ended()
        finally:
            await connection.close(QUICK_GRACE)

    async def _watch_again(self, slot: ServerState, connection: Connection) -> None:
        try:
            await connection.watch(slot.watched)
        except UpstreamError:
            pass  # whoever subscribed heard of it; the next connection is asked again

    async def _open_again(self, slot: ServerState, connection: Connection) -> None:
        """Opens in the place of a lost connection another, for those who wait to hear something on it."""
        while not self._closed and slot.watches(connection):
            await asyncio.sleep(max(REOPEN, slot.circuit.retry_at - time.monotonic()))
            if not slot.watches(connection):
                return
            era = None if connection.greeting is None else connection.greeting.dialect.era
            try:
                async with self._used(slot, Origin(era=era, partner=connection.partner)):
                    return
            except UpstreamError:
                continue

    def _in_background(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def list_changed(self, connection: Connection, which: str | None) -> None:
        """Called by a connection (`connection.Listener`)."""
        # What changed may have changed on this connection only: it is to be listed there.
        origin = Origin(Era.MODERN if connection.modern else Era.LEGACY, connection.partner)
        self._on_list_changed(connection.server.name, which, origin)

    def resource_updated(self, server: str, partner: Partner | None, params: bytes) -> None:
        """Called by a connection (`connection.Listener`)."""
        self._on_resource_updated(server, partner, params)

    def disconnected(self, server: str, connection: Connection) -> None:
        """Called by a connection of which no more can be asked (`connection.Listener`)."""
        for line in self._slots[server].lines.values():
            if line.connection is connection:
                line.connection = None
                self._drain(connection)
        if self._slots[server].watches(connection):
            self._in_background(self._open_again(self._slots[server], connection), f"reopen-{server}")

    def _leave(self, connection: Connection, grace: float) -> None:
        """Closes ``connection`` in the background. `close` knows of it from this moment on."""
        task = asyncio.create_task(connection.close(grace), name=f"leave-{connection.server.name}")
        self._leaving[task] = connection
        task.add_done_callback(self._leaving.pop)
