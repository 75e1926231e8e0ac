"""One upstream connection and the task that owns it.

The rule: the owner task opens the channel, keeps it and leaves it, all in one task (anyio's contexts hang or
kill their siblings otherwise); every other task only talks to it. A connection lives once: when it has ended
a new one is made.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from mcpzip import __version__
from mcpzip.config import ServerConfig
from mcpzip.model.errors import (
    UpstreamError,
    UpstreamLostError,
    UpstreamRpcError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from mcpzip.system.process import Guardian
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import (
    Channel,
    ChannelClosedError,
    Incoming,
    ProgressSink,
    RpcFaultError,
)
from mcpzip.transport.handshake import Greeting, StartAgainError, greet
from mcpzip.transport.stdio import open_stdio
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    Era,
    RpcError,
    join_object,
    quote,
    stamp_request,
)

CLIENT_INFO = join_object({"name": quote("mcpzip"), "version": quote(__version__)})
QUICK_GRACE = 0.5
"""Seconds between end of input, SIGTERM and SIGKILL when mcpzip itself must be gone within 2 s."""
GRACE = 2.0
"""The same when only this connection is closed."""
LEEWAY = 0.1
"""Seconds that ending takes beyond the graces."""


LISTEN_PARAMS = b'{"notifications":{"toolsListChanged":true}}'
LISTEN_AGAIN, LISTEN_SELDOM = 5.0, 300.0
"""Seconds after which a subscription that ended is opened anew: doubling from one to the other, where the
server never keeps one for long.
"""


class Listener(Protocol):
    """Who is told what an upstream says of itself."""

    def list_changed(self, server: str) -> None:
        """Its tools are not what they were."""

    def disconnected(self, server: str, connection: "Connection") -> None:
        """A connection that was ready has ended by itself."""


class Connection:
    """A connection to one upstream: connect, ask, close.

    server: its config. greeting: what it said in the handshake; set once `connect` has returned.
    """

    def __init__(
        self, server: ServerConfig, listener: Listener, guardian: Guardian, *, remembered: str | None
    ) -> None:
        self.server = server
        self.greeting: Greeting | None = None
        self.open_requests = 0
        self.grace = GRACE
        self._listener, self._guardian, self._remembered = listener, guardian, remembered
        self._channel: Channel | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._failure: UpstreamUnavailableError | None = None

    @property
    def alive(self) -> bool:
        """Whether requests can be sent."""
        return self._ready.is_set() and not self._stop.is_set()

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
        self, method: str, params: bytes | None, *, timeout: float, on_progress: ProgressSink | None = None
    ) -> bytes:
        """Asks and returns the result's JSON text.

        params: without the stamp of an era and without a progress token; they get our own. timeout: seconds.
        Raises UpstreamRpcError, UpstreamTimeoutError, UpstreamLostError, UpstreamUnavailableError.
        """
        name = self.server.name
        if not self.alive or self._channel is None or self.greeting is None:
            raise UpstreamLostError(name, "the connection was closed", may_have_run=False)
        self.open_requests += 1
        try:
            async with asyncio.timeout(timeout):
                return await self._channel.request(method, self._dressed(params), on_progress=on_progress)
        except TimeoutError:
            raise UpstreamTimeoutError(
                name, f"no answer to {method} within {timeout:g} s; the request was cancelled"
            ) from None
        except RpcFaultError as fault:
            error = fault.error
            raise UpstreamRpcError(name, error.code, error.message, error.data) from fault
        except ChannelClosedError as closed:
            if closed.fatal:
                self._stop.set()
            raise self._lost(closed) from closed
        finally:
            self.open_requests -= 1

    async def close(self, grace: float = GRACE) -> None:
        """Ends the channel and its process. Safe to call twice."""
        self.grace = min(self.grace, grace)
        self._stop.set()
        if self._owner is not None:
            await self._farewell()

    def _dressed(self, params: bytes | None) -> bytes | None:
        assert self.greeting is not None
        if self.greeting.dialect.era is Era.LEGACY:
            return params
        return stamp_request(params, self.greeting.dialect.version, CLIENT_INFO, b"{}")

    def _lost(self, closed: ChannelClosedError) -> UpstreamError:
        name, reason = self.server.name, closed.reason + self._last_words()
        if closed.status is not None and not closed.sent and not closed.fatal:
            return UpstreamUnavailableError(name, reason, closed.remedy)
        return UpstreamLostError(name, reason, may_have_run=closed.sent, remedy=closed.remedy)

    async def _own(self) -> None:
        try:
            try:
                await self._live(self._remembered)
            except BaseException as error:
                if not isinstance(_cause(error), StartAgainError):
                    raise
                await self._live(LATEST_LEGACY_VERSION)
        except BaseException as error:
            cause = _cause(error)
            if isinstance(cause, asyncio.CancelledError):
                raise
            self._failure = self._explained(cause)
        finally:
            self._stop.set()

    async def _live(self, remembered: str | None) -> None:
        async with await self._open() as channel:
            self._channel = channel
            self.greeting = await greet(channel, client_info=CLIENT_INFO, remembered=remembered)
            self._ready.set()
            listening = asyncio.create_task(self._listen(channel), name=f"listen-{self.server.name}")
            try:
                await self._stop.wait()
            finally:
                listening.cancel()
                await asyncio.wait({listening})

    async def _listen(self, channel: Channel) -> None:
        """Asks a modern upstream to tell of changes (spec 2026-07-28: basic/patterns/subscriptions).

        A legacy one tells unasked.
        """
        greeting = self.greeting
        if greeting is None or greeting.dialect.era is Era.LEGACY or not greeting.tells_of_tools:
            return
        params = stamp_request(LISTEN_PARAMS, greeting.dialect.version, CLIENT_INFO, b"{}")
        pause = LISTEN_AGAIN
        while True:
            began = time.monotonic()
            try:
                await channel.request("subscriptions/listen", params)
            except RpcFaultError as fault:
                if fault.error.code != REQUEST_CANCELLED:
                    return  # it promised more than it does: its tools are listed at the next refresh
            except ChannelClosedError as closed:
                if closed.fatal:
                    return
            if time.monotonic() - began > LISTEN_SELDOM:
                pause = LISTEN_AGAIN
            await asyncio.sleep(pause)
            pause = min(2 * pause, LISTEN_SELDOM)
            self._listener.list_changed(self.server.name)  # whatever changed while nobody listened

    async def _open(self) -> AbstractAsyncContextManager[Channel]:
        server, ear = self.server, _Ear(self)
        if server.transport == "stdio":
            argv = [server.command or "", *server.args]
            return open_stdio(argv, server.env, server.cwd, ear, self._guardian, grace=lambda: self.grace)
        # The SDK takes half a second to import: only where it is needed, and while others go on.
        opener = await in_thread(_http_opener if server.transport == "http" else _sse_opener, "import-sdk")
        return opener(server.url, server.headers, ear)

    def _explained(self, cause: BaseException) -> UpstreamUnavailableError:
        match cause:
            case ChannelClosedError(reason=reason, remedy=remedy):
                pass
            case RpcFaultError(error=error):
                reason = f"it refused the handshake: {error.message} ({error.code})"
                remedy = "Check that it is an MCP server."
            case _:
                reason, remedy = f"the transport failed ({type(cause).__name__}: {cause})", ""
        if not remedy and self.server.transport == "stdio":
            remedy = "Run its command by hand to see what it lacks."
        return UpstreamUnavailableError(self.server.name, reason + self._last_words(), remedy)

    def _last_words(self) -> str:
        said = self._channel.diagnosis() if self._channel else ""
        return f", saying “{said}”" if said else ""

    def _ended(self) -> None:
        if not self._ready.is_set():
            return  # the handshake fails of it, or starts again
        was_alive = self.alive
        self._stop.set()
        if was_alive:
            self._listener.disconnected(self.server.name, self)


_HttpOpener = Callable[[str, Mapping[str, str], Incoming], AbstractAsyncContextManager[Channel]]


_IMPORTING = threading.Lock()
"""One import of the SDK at a time: its modules import each other in circles, where two threads deadlock."""


def _http_opener() -> _HttpOpener:
    with _IMPORTING:
        from mcpzip.transport.http import open_http

    return open_http


def _sse_opener() -> _HttpOpener:
    with _IMPORTING:
        from mcpzip.transport.sse import open_sse

    return open_sse


class _Ear:
    """Hears what the upstream says unasked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def notified(self, method: str, params: bytes | None) -> None:
        if method == "notifications/tools/list_changed":
            self._connection._listener.list_changed(self._connection.server.name)

    def asked(self, method: str, params: bytes | None) -> bytes | RpcError:
        if method == "ping":
            return b"{}"
        return RpcError(METHOD_NOT_FOUND, f"mcpzip does not offer {method}", None)

    def ended(self, reason: str) -> None:
        self._connection._ended()


def _cause(error: BaseException) -> BaseException:
    """The one error worth telling in a group of them: not a cancellation if there is anything else."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_cause(inner) for inner in error.exceptions]
    return next((leaf for leaf in leaves if not isinstance(leaf, asyncio.CancelledError)), leaves[0])
