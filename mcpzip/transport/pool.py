"""The upstream connections.

The rules: a connection is opened by the first request that needs it and closed when nothing has used it for a
while; one broken server costs nobody else anything; a request is sent again only when it can't have run (see
`_attempt`). No lock is held while
an upstream works: requests to one server share its connection and run concurrently.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from mcpzip.config import ServerConfig
from mcpzip.model.errors import (
    McpzipError,
    UpstreamError,
    UpstreamLostError,
    UpstreamUnavailableError,
)
from mcpzip.system.process import Guardian
from mcpzip.transport.base import ProgressSink
from mcpzip.transport.circuit import Circuit
from mcpzip.transport.connection import GRACE, QUICK_GRACE, Connection
from mcpzip.wire import quote

CONNECT_TIMEOUT = 30.0
"""Seconds an upstream has to start and shake hands."""
MAX_PAGES = 1_000
LINGER = 30.0
"""Seconds a connection that only listed its tools is kept before it is closed as unused."""

State = Literal["connected", "connecting", "idle", "failing", "disabled"]


@dataclass(frozen=True, slots=True)
class Health:
    """How an upstream is doing, for people. ``reason`` is empty unless it is failing or disabled."""

    state: State
    reason: str = ""
    retry_in: float = 0.0


@dataclass(frozen=True, slots=True)
class Listing:
    """All tools of one upstream, as raw JSON texts in the upstream's order, and the protocol version it
    speaks.
    """

    tools: tuple[bytes, ...]
    protocol: str
    instructions: str


class _Page(msgspec.Struct, rename="camel"):
    tools: list[msgspec.Raw] | None = None
    next_cursor: str | None = None


def _read_page(result: bytes) -> _Page:
    """A page of `tools/list`. Raises ValueError.

    A text that one tool spells as no JSON should (a lone surrogate) must not cost the others their place:
    what the strict decoder refuses is read by the lenient one, and each tool stands for itself again.
    """
    try:
        return msgspec.json.decode(result, type=_Page)
    except msgspec.DecodeError:
        lenient = json.loads(result)
    page = msgspec.convert(lenient, type=_LenientPage)
    tools = None if page.tools is None else [msgspec.Raw(json.dumps(tool)) for tool in page.tools]
    return _Page(tools, page.next_cursor)


class _LenientPage(msgspec.Struct, rename="camel"):
    tools: list[object] | None = None
    next_cursor: str | None = None


class _Slot:
    """What the pool remembers of one server between connections."""

    def __init__(self, server: ServerConfig, protocol: str | None) -> None:
        self.server, self.protocol = server, protocol
        self.circuit = Circuit()
        self.connection: Connection | None = None
        self.connecting: asyncio.Task[Connection] | None = None
        self.unused_at = 0.0
        self.expiry: asyncio.TimerHandle | None = None


class Pool:
    """Connections to all upstreams of a config. Everything runs on one event loop."""

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        *,
        idle_timeout: float,
        protocols: Mapping[str, str] = {},
        on_list_changed: Callable[[str], None] = lambda server: None,
    ) -> None:
        """idle_timeout: seconds without a request after which a connection is closed. protocols: the version
        each server spoke last time, by name."""
        self._slots = {server.name: _Slot(server, protocols.get(server.name)) for server in servers}
        self._idle_timeout = idle_timeout
        self._on_list_changed = on_list_changed
        self._guardian = Guardian()
        self._leaving: dict[asyncio.Task[None], Connection] = {}
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
    ) -> bytes:
        """Asks an upstream, connecting first if need be, and returns the result's JSON text.

        timeout: seconds for the request itself; connecting has its own. repeatable: running it twice does no
        harm, so that a request whose connection broke under it may be sent once more.
        Raises UpstreamError and its kinds.
        """
        try:
            return await self._attempt(server, method, params, timeout, on_progress)
        except UpstreamLostError as error:
            if error.may_have_run and not repeatable:
                raise
            return await self._attempt(server, method, params, timeout, on_progress)

    async def _attempt(
        self,
        server: str,
        method: str,
        params: bytes | None,
        timeout: float,
        on_progress: ProgressSink | None,
    ) -> bytes:
        slot = self._slots[server]
        connection = await self._connection(slot)
        try:
            return await connection.request(method, params, timeout=timeout, on_progress=on_progress)
        finally:
            self._keep(slot, self._idle_timeout)

    async def list_tools(self, server: str, timeout: float = CONNECT_TIMEOUT) -> Listing:
        """Every page of the server's tools. timeout: seconds for all of it, connecting included.

        Ignores an open circuit: whoever lists wants to know how it is now. Raises UpstreamError and its
        kinds.
        """
        slot = self._slots[server]
        try:
            async with asyncio.timeout(timeout):
                try:
                    connection = await self._connection(slot, insist=True)
                    tools = await self._all_pages(connection, timeout)
                except UpstreamLostError:  # listing twice does no harm
                    connection = await self._connection(slot, insist=True)
                    tools = await self._all_pages(connection, timeout)
        except TimeoutError:
            raise UpstreamUnavailableError(
                server,
                f"it did not list its tools within {timeout:g} s",
                "It is asked again at the next refresh.",
            ) from None
        finally:
            self._keep(slot, min(LINGER, self._idle_timeout))
        assert connection.greeting is not None
        greeting = connection.greeting
        return Listing(tuple(tools), greeting.dialect.version, greeting.instructions)

    async def _all_pages(self, connection: Connection, timeout: float) -> list[bytes]:
        name = connection.server.name
        tools: list[bytes] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            # An empty string is a cursor like any other (spec: server/utilities/pagination).
            params = b"{}" if cursor is None else b'{"cursor":' + quote(cursor) + b"}"
            result = await connection.request("tools/list", params, timeout=timeout)
            try:
                page = _read_page(result)
            except (ValueError, RecursionError) as error:
                raise UpstreamError(name, f"its tool list makes no sense ({error})") from error
            if page.tools is None:
                raise UpstreamError(name, "its tool list has no 'tools'")
            tools.extend(bytes(tool) for tool in page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return tools
            if cursor in seen:
                raise UpstreamError(name, f"its tool list goes in circles (cursor {cursor!r} came twice)")
            seen.add(cursor)
        raise UpstreamError(name, f"its tool list has more than {MAX_PAGES:,} pages")

    def health(self, server: str) -> Health:
        """How the server is doing right now."""
        slot = self._slots[server]
        if slot.server.disabled:
            return Health("disabled", "it is disabled in the config")
        if slot.server.problem:
            return Health("failing", slot.server.problem)
        if slot.connection is not None and slot.connection.alive:
            return Health("connected")
        if slot.connecting is not None:
            return Health("connecting")
        if slot.circuit.failures:
            return Health("failing", slot.circuit.reason, max(0.0, slot.circuit.retry_at - time.monotonic()))
        return Health("idle")

    async def close(self) -> None:
        """Ends every connection and process, within about a second."""
        self._closed = True
        slots = self._slots.values()
        connecting = [slot.connecting for slot in slots if slot.connecting is not None]
        for task in connecting:
            task.cancel()
        connections = [slot.connection for slot in slots if slot.connection is not None]
        closing = [connection.close(QUICK_GRACE) for connection in (*connections, *self._leaving.values())]
        for slot in slots:
            if slot.expiry is not None:
                slot.expiry.cancel()
        await asyncio.gather(*connecting, *closing, *self._leaving, return_exceptions=True)
        self._guardian.close()

    async def _connection(self, slot: _Slot, *, insist: bool = False) -> Connection:
        connection = slot.connection
        if connection is not None and connection.alive:
            return connection
        return await self._connected(slot, insist=insist)

    def _keep(self, slot: _Slot, seconds: float) -> None:
        """The connection was used: it lives ``seconds`` more at least."""
        slot.unused_at = max(slot.unused_at, time.monotonic() + seconds)
        if slot.expiry is None and not self._closed:
            slot.expiry = asyncio.get_running_loop().call_later(seconds, self._expire, slot)

    def _expire(self, slot: _Slot) -> None:
        slot.expiry = None
        connection = slot.connection
        if connection is None:
            return
        left = slot.unused_at - time.monotonic()
        if connection.open_requests:
            self._keep(slot, self._idle_timeout)
        elif left > 0:
            slot.expiry = asyncio.get_running_loop().call_later(left, self._expire, slot)
        else:
            slot.connection = None
            self._leave(connection, GRACE)

    async def _connected(self, slot: _Slot, *, insist: bool) -> Connection:
        server = slot.server
        if server.disabled:
            raise UpstreamUnavailableError(
                server.name, "it is disabled", "Remove 'disabled' from its config to use it."
            )
        if server.problem:
            raise UpstreamUnavailableError(server.name, server.problem)
        if self._closed:
            raise UpstreamUnavailableError(server.name, "mcpzip is shutting down")
        if slot.connecting is None:
            if slot.circuit.open(time.monotonic()) and not insist:
                wait = slot.circuit.retry_at - time.monotonic()
                raise UpstreamUnavailableError(
                    server.name, slot.circuit.reason, f"It is tried again in {max(wait, 0.1):.1f} s."
                )
            slot.connecting = asyncio.create_task(self._connect(slot), name=f"connect-{server.name}")
            slot.connecting.add_done_callback(_looked_at)
        # Shielded: a caller that gives up doesn't take the others' connection with it.
        return await asyncio.shield(slot.connecting)

    async def _connect(self, slot: _Slot) -> Connection:
        old, slot.connection = slot.connection, None
        connection = Connection(slot.server, self, self._guardian, remembered=slot.protocol)
        try:
            if old is not None:
                await old.close(QUICK_GRACE)
            await connection.connect(CONNECT_TIMEOUT)
        except McpzipError as error:
            slot.circuit.failed(time.monotonic(), _told(error))
            slot.protocol = None  # it may be what is remembered of it that is wrong
            raise
        finally:
            slot.connecting = None
        slot.circuit.succeeded()
        slot.connection = connection
        self._keep(slot, self._idle_timeout)
        assert connection.greeting is not None
        slot.protocol = connection.greeting.dialect.version
        return connection

    def list_changed(self, server: str) -> None:
        """Called by a connection (`connection.Listener`)."""
        self._on_list_changed(server)

    def disconnected(self, server: str, connection: Connection) -> None:
        """Called by a connection that ended by itself (`connection.Listener`)."""
        slot = self._slots[server]
        if slot.connection is connection:
            slot.connection = None
            self._leave(connection, QUICK_GRACE)

    def _leave(self, connection: Connection, grace: float) -> None:
        """Closes ``connection`` in the background. `close` knows of it from this moment on."""
        task = asyncio.create_task(connection.close(grace), name=f"leave-{connection.server.name}")
        self._leaving[task] = connection
        task.add_done_callback(self._leaving.pop)


def _told(error: McpzipError) -> str:
    """What is wrong and what to do, without a full stop."""
    if isinstance(error, UpstreamError):
        return f"{error.reason}. {error.remedy}".rstrip(" .")
    return str(error).rstrip(".")


def _looked_at(task: "asyncio.Task[Connection]") -> None:
    """Callers may all have given up: a failure nobody waited for is no "exception was never retrieved"."""
    if not task.cancelled():
        task.exception()
