"""One upstream connection and the task that owns it.

The rule: the owner task alone opens the channel, keeps it open and closes it; other tasks only use it
(anyio's cancel scopes hang or cancel sibling tasks when another task leaves them). A connection is used once:
after it has ended, a new one is made.
"""

import asyncio
import os
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol

from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.model.errors import (
    LoginNeededError,
    McpzipError,
    UpstreamError,
    UpstreamLostError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from mcpzip.model.quoting import quoted, shortened
from mcpzip.system.environment import server_environment
from mcpzip.system.event_log import more_about, note, note_output
from mcpzip.system.process_activity import ProcessActivity
from mcpzip.system.reaper import Reaper
from mcpzip.system.tasks import root_cause
from mcpzip.transport.base import NOBODY, BoundClient, Channel, ChannelClosedError, Origin, ProgressSink
from mcpzip.transport.deadlines import Deadline, Deadlines
from mcpzip.transport.handshake import ServerInfo, StartAgainError, shake_hands
from mcpzip.transport.opening import opened, process_tap
from mcpzip.transport.requesters import Requesters
from mcpzip.transport.session_times import measured
from mcpzip.transport.stdio import open_stdio
from mcpzip.transport.subscription import ACKNOWLEDGED, LIST_CHANGED, UPDATED, SubscriptionStream
from mcpzip.wire import (
    METHOD_NOT_FOUND,
    Era,
    JsonRpcError,
    RpcError,
    UpstreamRpcError,
    join_object,
    quote,
    stamp_request,
    with_members,
)
from mcpzip.wire.client_info import CLIENT_INFO

EXIT_GRACE = 0.15
"""Seconds that processes have to exit after the end of their input when mcpzip exits. Some clients kill
mcpzip 0.5 s after SIGINT.
"""
QUICK_GRACE = 0.4
"""Seconds between end of input, SIGTERM and SIGKILL when mcpzip itself must exit within 2 s."""
GRACE = 2.0
"""The same when only this connection is closed."""
SUBSCRIBE_TIMEOUT = 10.0
"""Seconds an upstream has to subscribe us to a resource."""
LEEWAY = 0.1
"""Seconds that closing takes in addition to the graces."""

_MESSAGE = "notifications/message"
_HOP_BY_HOP = ("notifications/progress", "notifications/cancelled")
"""They are about requests on this connection alone; what arrives after the request ended is dropped."""


class Listener(Protocol):
    """Is called when a connection or its server changes."""

    def list_changed(self, connection: "Connection", which: str | None) -> None:
        """The list of ``which`` (tools, prompts, resources; None: any of them) may have changed."""

    def resource_updated(self, server: str, bound_client: BoundClient | None, params: bytes) -> None:
        """A resource has changed to which ``bound_client`` subscribed; None: to which mcpzip did."""

    def asked(self, server: str, bound_client: BoundClient, method: str, params: bytes | None) -> None:
        """The server asks ``bound_client`` something, which is answered in its own time."""

    def disconnected(self, server: str, connection: "Connection") -> None:
        """A usable connection takes no more requests, although nobody closed it."""


class Connection:
    """A connection to one upstream: connect, send requests, close.

    server: its config. server_info: the handshake result, set once `connect` has returned. alive: whether
    requests can be sent.
    activity: of its process. open_requests: how many are waiting for a response. is_replaced: see `retire`.
    """

    def __init__(
        self,
        server: ServerConfig,
        listener: Listener,
        reaper: Reaper,
        *,
        first: Era = Era.MODERN,
        sure: bool = False,
        bound_client: BoundClient | None = None,
        sign_ins: SignIns | None = None,
        environment: Mapping[str, str] = os.environ,
        folder: str | None = None,
    ) -> None:
        """first, sure: see `shake_hands`. bound_client: owns the connection if the server is legacy; None:
        all clients share it. sign_ins: sign its requests over HTTP. environment: the variables of which its
        process inherits some. folder: where its process runs if its config names none; None for ours.
        """
        self.server = server
        self.server_info: ServerInfo | None = None
        self.open_requests = 0
        self.alive = False
        self.grace = GRACE
        self.activity = ProcessActivity()
        self.bound_client = (
            bound_client if bound_client is not None and bound_client.key is not None else None
        )
        self._listener, self._reaper = listener, reaper
        self._first, self._sure, self._sign_ins = first, sure, sign_ins
        self._env, self._folder = environment, folder
        self._subscribed: frozenset[str] = frozenset()
        self._subscribing = asyncio.Lock()
        self._requesters = Requesters()
        self._deadlines = Deadlines()
        self._subscription: SubscriptionStream | None = None
        self._channel: Channel | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._retired = self.is_replaced = self._lost = False
        self._owner: asyncio.Task[None] | None = None
        self._failure: UpstreamUnavailableError | None = None

    async def connect(self, timeout: float) -> None:
        """Opens the channel and completes the handshake. timeout: seconds. Raises UpstreamUnavailableError,
        after cleaning up.
        """
        self._owner = asyncio.create_task(self._run(), name=f"upstream-{self.server.name}")
        ready = asyncio.ensure_future(self._ready.wait())
        connected = False
        try:
            await asyncio.wait({ready, self._owner}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            connected = self._ready.is_set()
            diagnosis = self._diagnosis()
        finally:
            ready.cancel()
            if not connected:  # also when we were cancelled at the very moment it became ready
                self.grace = QUICK_GRACE
                self._owner.cancel()
                await self._wait_for_owner()
        if connected:
            return
        raise self._failure or UpstreamUnavailableError(
            self.server.name,
            f"it did not answer the handshake within {timeout:g} s{diagnosis}",
            self._with_more("Check that it is an MCP server and starts without asking anything."),
        )

    async def _wait_for_owner(self) -> None:
        """Waits until the owner task has closed the channel, for as long as ending a process may take. Then
        cancels it, because a server over HTTP may never answer the DELETE of its session.
        """
        assert self._owner is not None
        timeout = (2 * self.grace if self.server.transport == "stdio" else self.grace) + LEEWAY
        while not self._owner.done():
            await asyncio.wait({self._owner}, timeout=timeout)
            timeout = LEEWAY
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
        """Sends a request and returns the result's JSON text.

        params: without an era's metadata and progress token; ours are added. timeout: seconds, not counting
        those in which the client answers a request of the upstream's. definition: see `Channel.request`.
        Raises UpstreamRpcError, UpstreamTimeoutError, UpstreamLostError, UpstreamUnavailableError.
        """
        name = self.server.name
        if not self.alive or self._channel is None or self.server_info is None:
            raise UpstreamLostError(name, "the connection was closed", may_have_run=False)
        self.open_requests += 1
        self._requesters.begin(origin)
        try:
            with Deadline(self._deadlines, timeout):
                params = self._stamped(params, origin)
                return await self._channel.request(
                    method, params, on_progress=on_progress, definition=definition, origin=origin
                )
        except TimeoutError:
            self._abandon(origin)
            raise UpstreamTimeoutError(
                name, f"no answer to {method} within {timeout:g} s; the request was cancelled"
            ) from None
        except asyncio.CancelledError:
            self._abandon(origin)
            raise
        except JsonRpcError as fault:
            raise UpstreamRpcError(self.server.name, fault.error) from fault
        except ChannelClosedError as closed:
            if closed.fatal:
                self._retire(closed.reason)
            raise self._request_error(closed) from closed
        finally:
            self.open_requests -= 1
            if self._retired and not self.open_requests:
                self._stop.set()
            self._requesters.end(origin)

    async def notify(self, method: str, params: bytes | None) -> None:
        """Sends a notification, if the connection is still usable."""
        if self.alive and self._channel is not None:
            try:
                await self._channel.notify(method, params)
            except ChannelClosedError:
                pass  # nobody waits for the answer to a notification

    async def set_subscriptions(self, uris: Collection[str]) -> dict[str, UpstreamError]:
        """Subscribes to these resources and to no others.

        Returns the refusals, by resource. Raises UpstreamError and its subclasses when the connection fails.
        """
        async with self._subscribing:
            wanted, refused = frozenset(uris), dict[str, UpstreamError]()
            if self.modern:
                return await self._set_stream(wanted)
            for uri in sorted(self._subscribed - wanted):
                await self._subscribe("resources/unsubscribe", uri)
                self._subscribed -= {uri}
            for uri in sorted(wanted - self._subscribed):
                if (error := await self._subscribe("resources/subscribe", uri)) is None:
                    self._subscribed |= {uri}
                else:
                    refused[uri] = error
            return refused

    async def _subscribe(self, method: str, uri: str) -> UpstreamRpcError | None:
        try:
            await self.request(method, join_object({"uri": quote(uri)}), timeout=SUBSCRIBE_TIMEOUT)
        except UpstreamRpcError as error:
            return error
        return None

    async def _set_stream(self, wanted: frozenset[str]) -> dict[str, UpstreamError]:
        stream, refused = self._subscription, dict[str, UpstreamError]()
        if stream is None:
            return refused
        # One stream is for all resources. When it is refused, each is tried alone to find the cause.
        attempts = [wanted, *(frozenset({uri}) for uri in sorted(wanted - self._subscribed))]
        self._subscribed &= wanted
        for attempt in attempts:
            try:
                await stream.set_resources(self._subscribed | attempt)
                self._subscribed |= attempt
            except JsonRpcError as fault:
                error = UpstreamRpcError(self.server.name, fault.error)
                refused |= dict.fromkeys(attempt - self._subscribed, error)
            if self._subscribed == wanted:
                return {}
        return {uri: error for uri, error in refused.items() if uri not in self._subscribed}

    async def ended(self) -> None:
        """Waits until the connection is unusable and its open requests have ended."""
        await self._stop.wait()

    def retire(self) -> None:
        """Takes no more requests, because its server's config has changed; ends with the open ones."""
        self._retired = self.is_replaced = True
        self.alive = False
        if not self.open_requests:
            self._stop.set()

    async def close(self, grace: float = GRACE) -> None:
        """Closes the channel and ends its process. grace: seconds between the steps of that. May be called
        twice.
        """
        self.grace = min(self.grace, grace)
        if self.alive:
            note("info", self.server.name, "closed", "closed")
        self.alive = False
        self._stop.set()
        if self._owner is not None:
            await self._wait_for_owner()

    def _stamped(self, params: bytes | None, origin: Origin) -> bytes | None:
        """``params`` with the ``_meta`` that a modern server requires; unchanged for a legacy one."""
        assert self.server_info is not None
        dialect = self.server_info.dialect
        if dialect.era is Era.LEGACY:
            return params
        if origin.modern:
            params = with_members(params or b"{}", origin.modern)
        return stamp_request(params, dialect.version, CLIENT_INFO, origin.capabilities, origin.log_level)

    def _request_error(self, closed: ChannelClosedError) -> UpstreamError:
        name, reason = self.server.name, closed.reason + self._diagnosis()
        if closed.login:
            lasting = closed.status != 403  # a scope is missing for this one request
            return LoginNeededError(name, reason, closed.login, closed.remedy, lasting=lasting)
        if closed.status is not None and not closed.sent and not closed.fatal:
            return UpstreamUnavailableError(name, reason, closed.remedy)
        exited = closed.fatal and self.server.transport == "stdio"
        return UpstreamLostError(name, reason, may_have_run=closed.sent, remedy=closed.remedy, exited=exited)

    async def _run(self) -> None:
        """The owner task."""
        try:
            try:
                await self._run_channel(self._first, self._sure)
            except BaseException as error:
                again = root_cause(error)
                if not isinstance(again, StartAgainError):
                    raise
                await self._run_channel(again.era, sure=True)
        except BaseException as error:
            cause = root_cause(error)
            if isinstance(cause, asyncio.CancelledError):
                raise
            self._failure = self._connect_error(cause)
        finally:
            self.alive = False
            self._stop.set()

    async def _run_channel(self, first: Era, sure: bool) -> None:
        async with await self._open() as channel:
            self._channel = channel
            capabilities = self.bound_client.capabilities if self.bound_client is not None else b"{}"
            self.server_info = await shake_hands(channel, capabilities, first=first, sure=sure)
            await self._restore_session(channel, self.server_info)
            self._ready.set()
            self.alive = not (self._stop.is_set() or self._retired)
            # A modern upstream sends change notifications only on a subscription.
            self._subscription = SubscriptionStream(channel, self.server_info, self._lists_changed)
            subscribing = asyncio.create_task(self._subscription.run(), name=f"listen-{self.server.name}")
            try:
                with measured(self.server, self.server_info.dialect.version, lambda: self._lost):
                    await self._stop.wait()
            finally:
                subscribing.cancel()
                await asyncio.wait({subscribing})

    async def _restore_session(self, channel: Channel, info: ServerInfo) -> None:
        """Repeats on a new legacy connection the settings that the client made on the one before it."""
        if self.bound_client is None or info.dialect.era is Era.MODERN:
            return
        level, uris = self.bound_client.log_level, self.bound_client.watched(self.server.name)
        settings = [("resources/subscribe", {"uri": quote(uri)}) for uri in uris]
        if level and info.offers.logging is not None:
            settings.insert(0, ("logging/setLevel", {"level": quote(level)}))
        for method, params in settings:
            try:
                await channel.request(method, join_object(params))
            except JsonRpcError:
                pass  # the client got this error for its own request, or the server has changed since

    def _retire(self, reason: str) -> None:
        """Takes no more requests; the open ones may still get their responses."""
        was_alive, self._lost = self.alive, self._lost or self.alive
        self._retired, self.alive = True, False
        if was_alive:
            note("warning", self.server.name, "ended", reason + self._diagnosis())
            self._listener.disconnected(self.server.name, self)

    def _lists_changed(self) -> None:
        self._listener.list_changed(self, None)

    async def _open(self) -> AbstractAsyncContextManager[Channel]:
        server, incoming = self.server, _IncomingHandler(self)
        if server.transport != "stdio":
            return await opened(server, self._sign_ins, incoming, self._env)
        argv = [server.command or "", *server.args]
        return open_stdio(
            argv,
            server_environment(self._env, server.env, server.inherit_env, server.withheld_env),
            self._working_folder(),
            incoming,
            self._reaper,
            grace=lambda: self.grace,
            started=self._process_started,
            output=partial(note_output, server.name),
            tap=process_tap(server, argv),
        )

    def _working_folder(self) -> str | None:
        # The client's may have been deleted.
        return self.server.cwd or (self._folder if os.path.isdir(self._folder or "") else None)

    def _process_started(self, pid: int) -> None:
        self.activity.follow(pid)
        note("info", self.server.name, "started", f"started with process id {pid}")

    def _with_more(self, remedy: str) -> str:
        """``remedy``, and where the log is with all that a process wrote to stderr."""
        if self.server.transport != "stdio":
            return remedy
        return f"{remedy} {more_about(self.server.name)}".rstrip()

    def _connect_error(self, cause: BaseException) -> UpstreamUnavailableError:
        match cause:
            case ChannelClosedError(reason=reason, remedy=remedy, login=login) if login:
                return LoginNeededError(self.server.name, reason, login, remedy)
            case ChannelClosedError(reason=reason, remedy=remedy):
                pass
            case JsonRpcError(error=error):
                reason = f"it refused the handshake: {quoted(error.message)} ({error.code})"
                remedy = "Check that it is an MCP server."
            case McpzipError():
                reason, remedy = str(cause).rstrip("."), ""
            case _:
                reason, remedy = f"the transport failed ({type(cause).__name__}: {shortened(str(cause))})", ""
        if not remedy and self.server.transport == "stdio":
            remedy = self._with_more("Run its command by hand to see what it lacks.")
        return UpstreamUnavailableError(self.server.name, reason + self._diagnosis(), remedy)

    @property
    def modern(self) -> bool:
        """Whether its handshake ended in the modern era."""
        return self.server_info is not None and self.server_info.dialect.era is Era.MODERN

    @property
    def logs(self) -> bool:
        """Whether it accepts `logging/setLevel`, which only legacy servers have."""
        info = self.server_info
        return info is not None and info.dialect.era is Era.LEGACY and info.offers.logging is not None

    @property
    def unbound(self) -> bool:
        """Whether no bound_client owns it."""
        return self.modern or self.bound_client is None

    @property
    def subscribes_for_all(self) -> bool:
        """Whether its resource subscriptions are those of all clients together."""
        return self.unbound or (self.bound_client is not None and self.bound_client.is_reused)

    def _abandon(self, origin: Origin) -> None:
        """A request ends without an answer. In the modern era the server says nothing more about it over
        HTTP, whose stream is closed, and logs nothing if it wasn't asked to."""
        if not self.modern or (self.server.transport == "stdio" and origin.log_level):
            self._requesters.abandon(origin)

    def _diagnosis(self) -> str:
        return self._channel.diagnosis() if self._channel else ""

    def _channel_ended(self, reason: str) -> None:
        if not self._ready.is_set():
            return  # the handshake fails because of it, or starts again
        was_alive, self._lost = self.alive, self._lost or self.alive
        self.alive = False
        self._stop.set()
        if was_alive:
            note("warning", self.server.name, "ended", reason + self._diagnosis())
            self._listener.disconnected(self.server.name, self)


class _IncomingHandler:
    """Handles what an upstream sends on its own (`base.Incoming`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def notified(self, method: str, params: bytes | None, origin: Origin | None) -> None:
        connection, server = self._connection, self._connection.server.name
        if method == ACKNOWLEDGED:
            if connection._subscription is not None:
                connection._subscription.acknowledged()
        elif method in LIST_CHANGED:
            connection._listener.list_changed(connection, LIST_CHANGED[method])
        elif method == UPDATED:
            bound_client = None if connection.subscribes_for_all else connection.bound_client
            connection._listener.resource_updated(server, bound_client, params or b"{}")
        elif method in _HOP_BY_HOP:
            pass
        elif connection.bound_client is not None and not connection.modern:
            connection.bound_client.notified(server, method, params, origin and origin.call)
        else:
            logs_wanted = method == _MESSAGE and connection.modern
            connection._requesters.notify(method, params, origin, logs_wanted=logs_wanted)

    async def asked(self, method: str, params: bytes | None, origin: Origin | None) -> bytes:
        connection, server = self._connection, self._connection.server.name
        if method == "ping":
            return b"{}"
        if (asked := connection.bound_client) is None or connection.modern:
            raise JsonRpcError(RpcError(METHOD_NOT_FOUND, f"mcpzip does not offer {method}", None))
        connection._listener.asked(server, asked, method, params)
        with connection._deadlines.stopped():
            return await asked.asked(server, method, params, origin and origin.call)

    def ended(self, reason: str) -> None:
        self._connection._channel_ended(reason)
