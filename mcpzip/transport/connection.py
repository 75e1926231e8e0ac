"""One upstream connection and the task that owns it.

The rule: the owner task opens the channel, keeps it and leaves it, all in one task (anyio's contexts hang or
kill their siblings otherwise); every other task only talks to it. A connection lives once: when it has ended
a new one is made.
"""

import asyncio
import os
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from mcpzip import __version__
from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.model.errors import (
    LoginNeededError,
    McpzipError,
    UpstreamError,
    UpstreamLostError,
    UpstreamRpcError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from mcpzip.model.quoting import quoted, shortened
from mcpzip.system.environment import server_environment
from mcpzip.system.process_activity import ProcessActivity
from mcpzip.system.reaper import Reaper
from mcpzip.transport.base import (
    NOBODY,
    Channel,
    ChannelClosedError,
    Origin,
    Partner,
    ProgressSink,
    RpcFaultError,
)
from mcpzip.transport.deadlines import Deadlines
from mcpzip.transport.handshake import ClientIdentity, ServerInfo, StartAgainError, shake_hands
from mcpzip.transport.opening import opened
from mcpzip.transport.stdio import open_stdio
from mcpzip.transport.subscription import ACKNOWLEDGED, LIST_CHANGED, UPDATED, SubscriptionStream
from mcpzip.wire import METHOD_NOT_FOUND, Era, RpcError, join_object, quote, stamp_request, with_members

CLIENT_INFO = join_object({"name": quote("mcpzip"), "version": quote(__version__)})
QUICK_GRACE = 0.4
"""Seconds between end of input, SIGTERM and SIGKILL when mcpzip itself must be gone within 2 s."""
GRACE = 2.0
"""The same when only this connection is closed."""
WATCH_TIMEOUT = 10.0
"""Seconds an upstream may take to subscribe us to a resource."""
LEEWAY = 0.1
"""Seconds that ending takes beyond the graces."""

_MESSAGE = "notifications/message"
_OURS = ("notifications/progress", "notifications/cancelled")
"""What is of one leg only; what is left of it belongs to nobody who still waits."""


class Listener(Protocol):
    """Who is told what an upstream says of itself."""

    def list_changed(self, connection: "Connection", which: str | None) -> None:
        """Its server's tools, prompts or resources are not what they were. which: of these, None when it
        can't be told.
        """

    def resource_updated(self, server: str, partner: Partner | None, params: bytes) -> None:
        """A resource that was subscribed to has changed. partner: whose subscription it is, None for ours.
        params: of the notification, JSON text.
        """

    def disconnected(self, server: str, connection: "Connection") -> None:
        """A connection that was ready has ended by itself."""


class Connection:
    """A connection to one upstream: connect, ask, close.

    server: its config. greeting: what it said in the handshake; set once `connect` has returned.
    effort: of its process.
    """

    def __init__(
        self,
        server: ServerConfig,
        listener: Listener,
        guardian: Reaper,
        *,
        first: Era = Era.MODERN,
        sure: bool = False,
        partner: Partner | None = None,
        sign_ins: SignIns | None = None,
    ) -> None:
        """first, sure: see `shake_hands`. partner: whose it is, if it is legacy and anybody's. sign_ins:
        what requests over HTTP are signed with.
        """
        self.server = server
        self.greeting: ServerInfo | None = None
        self.open_requests = 0
        self.grace = GRACE
        self.effort = ProcessActivity()
        self.partner = partner if partner is not None and partner.key is not None else None
        self._listener, self._guardian = listener, guardian
        self._first, self._sure, self._sign_ins = first, sure, sign_ins
        self._watched: frozenset[str] = frozenset()
        self._watching = asyncio.Lock()
        self._waiting: list[Origin] = []
        self._clocks = Deadlines()
        self._listening: SubscriptionStream | None = None
        self._channel: Channel | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._retired = False
        self._owner: asyncio.Task[None] | None = None
        self._failure: UpstreamUnavailableError | None = None

    @property
    def alive(self) -> bool:
        """Whether requests can be sent."""
        return self._ready.is_set() and not self._stop.is_set() and not self._retired

    async def connect(self, timeout: float) -> None:
        """Opens the channel and shakes hands. timeout: seconds. Raises UpstreamUnavailableError, after
        cleaning up.
        """
        self._owner = asyncio.create_task(self._own(), name=f"upstream-{self.server.name}")
        ready = asyncio.ensure_future(self._ready.wait())
        connected = False
        try:
            await asyncio.wait({ready, self._owner}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            connected = self._ready.is_set()
            last_words = self._last_words()
        finally:
            ready.cancel()
            if not connected:  # also when we were cancelled in the very moment it was ready
                await self._abandon()
        if connected:
            return
        raise self._failure or UpstreamUnavailableError(
            self.server.name,
            f"it did not answer the handshake within {timeout:g} s{last_words}",
            "Check that it is an MCP server and starts without asking anything.",
        )

    async def _abandon(self) -> None:
        assert self._owner is not None
        self.grace = QUICK_GRACE
        self._owner.cancel()
        await self._farewell()

    async def _farewell(self) -> None:
        """Waits for the owner to leave its contexts, for as long as a process may take to end. A server over
        HTTP may take for ever to answer a good-bye.
        """
        assert self._owner is not None
        patience = (2 * self.grace if self.server.transport == "stdio" else self.grace) + LEEWAY
        while not self._owner.done():
            await asyncio.wait({self._owner}, timeout=patience)
            patience = LEEWAY
            if not self._owner.done():
                self._owner.cancel()

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        timeout: float,
        on_progress: ProgressSink | None = None,
        origin: Origin = NOBODY,
        definition: bytes | None = None,
    ) -> bytes:
        """Asks and returns the result's JSON text.

        params: without the stamp of an era and without a progress token; they get our own. timeout: seconds,
        not counting those in which the client is being asked something. definition: see `Channel.request`.
        Raises UpstreamRpcError, UpstreamTimeoutError, UpstreamLostError, UpstreamUnavailableError.
        """
        name = self.server.name
        if not self.alive or self._channel is None or self.greeting is None:
            raise UpstreamLostError(name, "the connection was closed", may_have_run=False)
        self.open_requests += 1
        if origin.on_notice is not None:
            self._waiting.append(origin)
        try:
            with self._clocks.running(timeout):
                return await self._channel.request(
                    method, self._dressed(params, origin), on_progress=on_progress, definition=definition
                )
        except TimeoutError:
            raise UpstreamTimeoutError(
                name, f"no answer to {method} within {timeout:g} s; the request was cancelled"
            ) from None
        except RpcFaultError as fault:
            error = fault.error
            raise UpstreamRpcError(name, error.code, error.message, error.data, error.more) from fault
        except ChannelClosedError as closed:
            if closed.fatal:
                self._retire()
            raise self._lost(closed) from closed
        finally:
            self.open_requests -= 1
            if self._retired and not self.open_requests:
                self._stop.set()
            if origin.on_notice is not None:
                self._waiting.remove(origin)

    async def notify(self, method: str, params: bytes | None) -> None:
        """Tells the upstream something, if it still listens."""
        if self.alive and self._channel is not None:
            try:
                await self._channel.notify(method, params)
            except ChannelClosedError:
                pass  # nobody waits for the answer to a notification

    async def watch(self, uris: Collection[str]) -> dict[str, UpstreamError]:
        """From now on the upstream is to tell us of changes of these resources, and no others.

        Returns why it won't, by resource. Raises UpstreamError and its kinds when it can't be asked.
        """
        async with self._watching:
            wanted, refused = frozenset(uris), dict[str, UpstreamError]()
            if self.modern:
                return await self._hear_of(wanted)
            for uri in sorted(self._watched - wanted):
                await self._subscribe("resources/unsubscribe", uri)
                self._watched -= {uri}
            for uri in sorted(wanted - self._watched):
                if (error := await self._subscribe("resources/subscribe", uri)) is None:
                    self._watched |= {uri}
                else:
                    refused[uri] = error
            return refused

    async def _subscribe(self, method: str, uri: str) -> UpstreamRpcError | None:
        try:
            await self.request(method, join_object({"uri": quote(uri)}), timeout=WATCH_TIMEOUT)
        except UpstreamRpcError as error:
            return error
        return None

    async def _hear_of(self, wanted: frozenset[str]) -> dict[str, UpstreamError]:
        listening, refused = self._listening, dict[str, UpstreamError]()
        if listening is None:
            return refused
        # One subscription is for all: where it is refused, it is seen which of them it was for.
        attempts = [wanted, *(frozenset({uri}) for uri in sorted(wanted - self._watched))]
        self._watched &= wanted
        for attempt in attempts:
            try:
                await listening.hear_of(self._watched | attempt)
                self._watched |= attempt
            except RpcFaultError as fault:
                error = fault.error
                told = UpstreamRpcError(self.server.name, error.code, error.message, error.data, error.more)
                refused |= dict.fromkeys(attempt - self._watched, told)
            if self._watched == wanted:
                return {}
        return {uri: error for uri, error in refused.items() if uri not in self._watched}

    async def ended(self) -> None:
        """Waits until it is of no more use to anybody."""
        await self._stop.wait()

    async def close(self, grace: float = GRACE) -> None:
        """Ends the channel and its process. Safe to call twice."""
        self.grace = min(self.grace, grace)
        self._stop.set()
        if self._owner is not None:
            await self._farewell()

    def _dressed(self, params: bytes | None, origin: Origin) -> bytes | None:
        assert self.greeting is not None
        dialect = self.greeting.dialect
        if dialect.era is Era.LEGACY:
            return params
        if origin.modern:
            params = with_members(params or b"{}", origin.modern)
        return stamp_request(params, dialect.version, CLIENT_INFO, origin.capabilities, origin.log_level)

    def _lost(self, closed: ChannelClosedError) -> UpstreamError:
        name, reason = self.server.name, closed.reason + self._last_words()
        if closed.login:
            lasting = closed.status != 403  # a scope is lacking for what was asked
            return LoginNeededError(name, reason, closed.login, closed.remedy, lasting=lasting)
        if closed.status is not None and not closed.sent and not closed.fatal:
            return UpstreamUnavailableError(name, reason, closed.remedy)
        return UpstreamLostError(name, reason, may_have_run=closed.sent, remedy=closed.remedy)

    async def _own(self) -> None:
        try:
            try:
                await self._live(self._first, self._sure)
            except BaseException as error:
                again = _cause(error)
                if not isinstance(again, StartAgainError):
                    raise
                await self._live(again.era, sure=True)
        except BaseException as error:
            cause = _cause(error)
            if isinstance(cause, asyncio.CancelledError):
                raise
            self._failure = self._explained(cause)
        finally:
            self._stop.set()

    async def _live(self, first: Era, sure: bool) -> None:
        async with await self._open() as channel:
            self._channel = channel
            able = self.partner.capabilities if self.partner is not None else b"{}"
            self.greeting = await shake_hands(
                channel, ClientIdentity(CLIENT_INFO, able), first=first, sure=sure
            )
            await self._take_up(channel, self.greeting)
            self._ready.set()
            # A modern upstream tells of changes when it is asked to; a legacy one tells unasked.
            self._listening = SubscriptionStream(channel, self.greeting, self._changed, CLIENT_INFO)
            listening = asyncio.create_task(self._listening.run(), name=f"listen-{self.server.name}")
            try:
                await self._stop.wait()
            finally:
                listening.cancel()
                await asyncio.wait({listening})

    async def _take_up(self, channel: Channel, greeting: ServerInfo) -> None:
        """Says on a new legacy connection what the client had said on the one before it."""
        if self.partner is None or greeting.dialect.era is Era.MODERN:
            return
        level, offers = self.partner.log_level, greeting.offers
        said = [("logging/setLevel", {"level": quote(level)})] if level and offers.logging is not None else []
        said += [
            ("resources/subscribe", {"uri": quote(uri)}) for uri in self.partner.watched(self.server.name)
        ]
        for method, params in said:
            try:
                await channel.request(method, join_object(params))
            except RpcFaultError:
                pass  # the client heard that when it said it itself, or it is no longer so

    def _retire(self) -> None:
        """No more requests; what else is under way on it may still come to its end."""
        was_alive = self.alive
        self._retired = True
        if was_alive:
            self._listener.disconnected(self.server.name, self)

    def _changed(self) -> None:
        self._listener.list_changed(self, None)

    async def _open(self) -> AbstractAsyncContextManager[Channel]:
        server, ear = self.server, _Ear(self)
        if server.transport != "stdio":
            return await opened(server, self._sign_ins, ear)
        argv, follow = [server.command or "", *server.args], self.effort.follow
        env = server_environment(os.environ, server.env, server.inherit_env, server.withheld_env)
        return open_stdio(
            argv, env, server.cwd, ear, self._guardian, grace=lambda: self.grace, started=follow
        )

    def _explained(self, cause: BaseException) -> UpstreamUnavailableError:
        match cause:
            case ChannelClosedError(reason=reason, remedy=remedy, login=login) if login:
                return LoginNeededError(self.server.name, reason, login, remedy)
            case ChannelClosedError(reason=reason, remedy=remedy):
                pass
            case McpzipError():
                reason, remedy = str(cause).rstrip("."), ""
            case RpcFaultError(error=error):
                reason = f"it refused the handshake: {quoted(error.message)} ({error.code})"
                remedy = "Check that it is an MCP server."
            case _:
                reason, remedy = f"the transport failed ({type(cause).__name__}: {shortened(str(cause))})", ""
        if not remedy and self.server.transport == "stdio":
            remedy = "Run its command by hand to see what it lacks."
        return UpstreamUnavailableError(self.server.name, reason + self._last_words(), remedy)

    @property
    def modern(self) -> bool:
        """Whether it is known to be spoken in the modern era."""
        return self.greeting is not None and self.greeting.dialect.era is Era.MODERN

    @property
    def logs(self) -> bool:
        """Whether it can be told from which level on to log."""
        greeting = self.greeting
        legacy = greeting is not None and greeting.dialect.era is Era.LEGACY
        return legacy and greeting is not None and greeting.offers.logging is not None

    @property
    def common(self) -> bool:
        """Whether it is nobody's in particular."""
        return self.modern or self.partner is None

    @property
    def shared(self) -> bool:
        """Whether what it is subscribed to is for all clients."""
        return self.modern or self.partner is None or self.partner.passing

    def _tell_who_waits(self, method: str, params: bytes | None) -> None:
        """Hands on what belongs to one of the open requests, as far as it can be told whose it is: what was
        said for one client must not reach another.
        """
        who = [one for one in self._waiting if method != _MESSAGE or not self.modern or one.log_level]
        if who and all(one.owner is who[-1].owner for one in who):
            assert who[-1].on_notice is not None
            who[-1].on_notice(method, params)

    def _last_words(self) -> str:
        said = self._channel.diagnosis() if self._channel else ""
        return f", saying {quoted(said)}" if said else ""

    def _ended(self) -> None:
        if not self._ready.is_set():
            return  # the handshake fails of it, or starts again
        was_alive = self.alive
        self._stop.set()
        if was_alive:
            self._listener.disconnected(self.server.name, self)


class _Ear:
    """Hears what the upstream says unasked, and asks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def notified(self, method: str, params: bytes | None) -> None:
        connection, server = self._connection, self._connection.server.name
        if method == ACKNOWLEDGED:
            if connection._listening is not None:
                connection._listening.acknowledged()
        elif method in LIST_CHANGED:
            connection._listener.list_changed(connection, LIST_CHANGED[method])
        elif method == UPDATED:
            partner = None if connection.shared else connection.partner
            connection._listener.resource_updated(server, partner, params or b"{}")
        elif method in _OURS:
            pass
        elif connection.partner is not None and not connection.modern:
            connection.partner.notified(server, method, params)
        else:
            connection._tell_who_waits(method, params)

    async def asked(self, method: str, params: bytes | None) -> bytes:
        connection = self._connection
        if method == "ping":
            return b"{}"
        if connection.partner is None or connection.modern:
            raise RpcFaultError(RpcError(METHOD_NOT_FOUND, f"mcpzip does not offer {method}", None))
        with connection._clocks.stopped():
            return await connection.partner.asked(connection.server.name, method, params)

    def ended(self, reason: str) -> None:
        self._connection._ended()


def _cause(error: BaseException) -> BaseException:
    """The one error worth telling in a group of them: not a cancellation if there is anything else."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_cause(inner) for inner in error.exceptions]
    return next((leaf for leaf in leaves if not isinstance(leaf, asyncio.CancelledError)), leaves[0])
