"""Every client that comes over HTTP: from the SDK's requests to exchanges, and the ways back.

The rules: one middleware answers all requests, so that nothing of them meets the SDK's typed layer; a request
that ends, ends what it began; and what is said on one stream keeps its order, and is said before the answer.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.dispatcher import Outbound
from mcp.shared.exceptions import MCPError
from starlette.requests import Request as HttpRequest

from mcpzip import __version__
from mcpzip.proxy.exchange import Ask, Client, Exchange
from mcpzip.server import verbatim
from mcpzip.server.endpoint import Endpoint, FaultError
from mcpzip.server.gate import RECEIVED, Limits
from mcpzip.server.verbatim import Received, Seal
from mcpzip.system.tasks import looked_at
from mcpzip.transport.base import RpcFaultError
from mcpzip.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MODERN_VERSIONS,
    Era,
    RpcError,
    read_opening,
)

Send = Callable[[str, bytes | None], Awaitable[None]]

STREAM_TIME = 5.0
"""Seconds a client may take to open the stream on which it is to be asked something outside its requests."""
_STATE = "mcpzip"
_NOT_BEGUN = RpcError(INVALID_REQUEST, "The conversation has not begun: send initialize first.")
_NO_VERSION = RpcError(INVALID_PARAMS, "initialize needs a 'protocolVersion'.")
_NO_STREAM = RpcError(INVALID_REQUEST, "The client has no stream open on which it could be asked.")
_STOPPING = RpcError(INTERNAL_ERROR, "mcpzip was told to stop; the request was cancelled.")


class Outbox:
    """What is told on one stream, in order, by whoever can't wait.

    send: sends one notification. open: is waited for before anything is sent.
    """

    def __init__(self, send: Send, limit: int, open: asyncio.Event | None = None) -> None:
        self._send, self._limit, self._open = send, limit, open
        self._waiting: deque[tuple[str, bytes | None]] = deque()
        self._size = 0
        self._sending: asyncio.Task[None] | None = None
        self._closed = False

    def tell(self, method: str, params: bytes | None) -> None:
        """See `proxy.exchange.Tell`. What the client is too slow for is dropped."""
        size = len(method) + len(params or b"")
        if self._closed or self._size + size > self._limit:
            return
        self._size += size
        self._waiting.append((method, params))
        self._start()

    async def flush(self) -> None:
        """Returns once all that was told is sent."""
        while self._sending is not None:
            await asyncio.wait({self._sending})

    async def finish(self) -> None:
        """The same, and nothing more is told."""
        self._closed = True
        await self.flush()

    def close(self) -> None:
        """Nothing more is told."""
        self._closed = True
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()

    def _start(self) -> None:
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
            self._sending.add_done_callback(self._sent_all)

    async def _send_all(self) -> None:
        while self._waiting:
            if self._open is not None:
                await self._open.wait()
            method, params = self._waiting.popleft()
            self._size -= len(method) + len(params or b"")
            await self._send(method, params)

    def _sent_all(self, task: "asyncio.Task[None]") -> None:
        self._sending = None
        if not task.cancelled() and task.exception() is not None:
            self.close()  # the stream is gone, and with it whoever read it
        if self._waiting:  # told between the end of the task and now
            self._start()


@dataclass(eq=False)
class _Lasting:
    """A legacy session. streaming: set while its client has a stream open."""

    client: Client
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    streaming: asyncio.Event = field(default_factory=asyncio.Event)


class Downstream:
    """The clients of one endpoint over HTTP. server: the SDK's, to be put behind its session manager."""

    def __init__(self, endpoint: Endpoint, seal: Seal, limits: Limits) -> None:
        self._endpoint, self._seal, self._limits = endpoint, seal, limits
        self._lasting: dict[str, _Lasting] = {}
        self._running: set[asyncio.Task[bytes]] = set()
        self._handing_on: set[asyncio.Task[None]] = set()
        self.server: Server[object] = Server(
            "mcpzip", version=__version__, get_tool_input_schema=endpoint.input_schema
        )
        self.server.middleware[:] = [self._meet]

    def stream(self, session: str, open: bool) -> None:
        """The client of ``session`` opened, or lost, the stream on which it hears of things in general."""
        lasting = self._lasting.get(session)
        if lasting is None:
            return
        if open:
            lasting.streaming.set()
        else:
            lasting.streaming.clear()

    async def finish(self, patience: float, letting_go: float) -> None:
        """Requests under way get ``patience`` seconds, then are cancelled and get ``letting_go`` to end."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=patience)
        left = [*self._running, *self._handing_on]
        for each in left:
            each.cancel()
        if left:
            await asyncio.wait(left, timeout=letting_go)

    async def _meet(self, ctx: ServerRequestContext[object], call_next: CallNext) -> HandlerResult:
        """The middleware: every request and notification of every client."""
        request = ctx.request
        received = request.scope.get(RECEIVED) if isinstance(request, HttpRequest) else None
        if not isinstance(received, Received):
            raise MCPError(INVALID_REQUEST, "This message can't be read.")
        if ctx.request_id is not None:
            return await self._answered(ctx, received)
        if received.method == "notifications/initialized":
            await call_next(ctx)  # the SDK counts the session as opened by it
        lasting = ctx.session._connection.state.get(_STATE)
        # The SDK cancels the task that answers, and with it what it began.
        if isinstance(lasting, _Lasting) and received.method != "notifications/cancelled":
            work = self._endpoint.notified(lasting.client, received.method, received.params)
            if work is not None:
                task = asyncio.create_task(work)
                self._handing_on.add(task)
                task.add_done_callback(self._handed_on)
        return None

    async def _answered(self, ctx: ServerRequestContext[object], received: Received) -> HandlerResult:
        channel = ctx.session._request_outbound
        outbox = Outbox(self._notifying(channel), self._limits.untold)
        received.running = True
        try:
            exchange = self._exchange(ctx, received, channel, outbox)
            text = await self._answer(received.method, exchange, outbox)
        except FaultError as fault:
            received.answer = verbatim.error(received.id, fault.error)
            # The SDK tells the HTTP status by the code.
            raise MCPError(fault.error.code, "", self._seal.answer) from None
        finally:
            outbox.close()
            received.running = False
            received.after()
        received.answer = verbatim.result(received.id, text)
        return self._seal.answer

    async def _answer(self, method: str, exchange: Exchange, outbox: Outbox) -> bytes:
        # In a task of its own: the SDK's cancellation comes again at every await, so that nothing that is
        # cancelled by it could still tell its server.
        answering = asyncio.create_task(self._endpoint.answer(method, exchange))
        self._running.add(answering)
        answering.add_done_callback(self._done)
        try:
            await asyncio.wait({answering})
        except asyncio.CancelledError:
            answering.cancel()
            raise
        await outbox.finish()
        if answering.cancelled():
            raise _fault(_STOPPING)
        failure = answering.exception()
        if failure is None:
            return answering.result()
        if isinstance(failure, FaultError):
            raise failure
        # A defect of ours must not leave the client waiting.
        told = f"mcpzip failed: {type(failure).__name__}: {failure}"
        raise FaultError(INTERNAL_ERROR, told) from failure

    def _done(self, task: "asyncio.Task[bytes]") -> None:
        self._running.discard(task)
        looked_at(task)

    def _handed_on(self, task: "asyncio.Task[None]") -> None:
        self._handing_on.discard(task)
        looked_at(task)  # a notification is answered by nothing

    # Who asks

    def _exchange(
        self, ctx: ServerRequestContext[object], received: Received, channel: Outbound, outbox: Outbox
    ) -> Exchange:
        opening = read_opening(received.method, received.params)
        if ctx.protocol_version in MODERN_VERSIONS:
            capabilities = (opening.capabilities if opening else None) or b"{}"
            client = Client(Era.MODERN, capabilities, lasting=False, tell=outbox.tell)
            return Exchange(
                client,
                received.id,
                received.params,
                outbox.tell,
                None,
                capabilities,
                opening.log_level if opening else None,
            )
        opens = received.method == "initialize"
        if opens and (opening is None or opening.version is None):
            raise _fault(_NO_VERSION)
        lasting = self._session(ctx, opens=opens)
        return Exchange(
            lasting.client,
            received.id,
            received.params,
            outbox.tell,
            self._asking(channel, lasting.ids, outbox),
            lasting.client.capabilities,
            lasting.client.log_level,
        )

    def _session(self, ctx: ServerRequestContext[object], *, opens: bool) -> _Lasting:
        connection = ctx.session._connection
        known = connection.state.get(_STATE)
        if isinstance(known, _Lasting):
            return known
        if not opens or connection.session_id is None:
            raise _fault(_NOT_BEGUN)
        lasting = _Lasting(Client(Era.LEGACY))
        outbox = Outbox(self._notifying(connection.outbound), self._limits.untold, lasting.streaming)
        lasting.client.tell = outbox.tell
        lasting.client.ask = self._asking(connection.outbound, lasting.ids, outbox, lasting.streaming)
        connection.state[_STATE] = lasting
        self._lasting[connection.session_id] = lasting
        self._endpoint.joined(lasting.client)
        connection.exit_stack.push_async_callback(self._left, connection.session_id, outbox)
        return lasting

    async def _left(self, session: str, outbox: Outbox) -> None:
        outbox.close()
        await self._endpoint.left(self._lasting.pop(session).client)

    # The ways back

    def _notifying(self, channel: Outbound) -> Send:
        async def notify(method: str, params: bytes | None) -> None:
            await channel.notify(method, self._seal.closed(verbatim.request(None, method, params)))

        return notify

    def _asking(
        self, channel: Outbound, ids: Iterator[int], outbox: Outbox, open: asyncio.Event | None = None
    ) -> Ask:
        async def ask(method: str, params: bytes | None) -> bytes:
            if open is not None:
                await _opened(open)
            await outbox.flush()
            number = next(ids)
            sealed = self._seal.closed(verbatim.request(number, method, params))
            try:
                answer = await channel.send_raw_request(method, sealed, {"request_id": number})
            except MCPError as error:
                told = self._seal.error(error.data) or RpcError(error.code, error.message)
                raise RpcFaultError(told) from error
            return self._seal.opened(answer) or b"{}"

        return ask


def _fault(error: RpcError) -> FaultError:
    return FaultError(error.code, error.message, error.data)


async def _opened(stream: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(STREAM_TIME):
            await stream.wait()
    except TimeoutError:
        raise RpcFaultError(_NO_STREAM) from None
