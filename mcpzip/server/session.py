"""One downstream client on a stream of its own: its messages in, ours out (sans I/O but for the tasks that
run its requests).

The rules: the client's first request decides the era (spec: basic/versioning); whatever arrives, every
request gets exactly one answer or none because the client cancelled it; requests run concurrently and the
reader never waits for one.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

from mcpzip.model import limits
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.server.batch import NOT_IN_A_BATCH, Gathering
from mcpzip.server.endpoint import BUSY, Endpoint, FaultError, fault_of
from mcpzip.server.questions import NOT_READ, Questions
from mcpzip.system.tasks import retrieve_exception
from mcpzip.transport.base import RpcFaultError
from mcpzip.wire import (
    BATCHED_VERSION,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MODERN_VERSION,
    MODERN_VERSIONS,
    Batch,
    Cancelled,
    Closed,
    Era,
    Error,
    Event,
    Invalid,
    Notification,
    Opening,
    Peer,
    Request,
    Result,
    Role,
    negotiate,
    opening_of,
    unsupported_version_error,
)

LETTING_GO = 0.5
"""Seconds a cancelled call may take to tell its server."""


class Session:
    """A client's conversation, from its first byte to its last.

    client: what it has said of itself so far.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        send: Callable[[bytes], None],
        tell: Callable[[bytes], None] | None = None,
        full: Callable[[], bool] = lambda: False,
    ) -> None:
        """send: takes the frames for the client, in order. tell: takes those that may be missed (default:
        as ``send``). full: whether so much waits for the client that it is asked nothing.
        """
        self._endpoint, self._send, self._full = endpoint, send, full
        self._send_if_room = tell or send
        self._peer = Peer(role=Role.SERVER)
        self._questions = Questions(self._peer)
        self.client = Client(tell=self._tell, ask=self._ask, alone=True)
        self._calls: dict[bytes, asyncio.Task[None]] = {}
        self._under_way = 0
        self._passing_on: set[asyncio.Task[None]] = set()
        self._opened = asyncio.Event()

    async def opened(self, patience: float) -> None:
        """Waits for the client's first request, ``patience`` seconds at most."""
        try:
            async with asyncio.timeout(patience):
                await self._opened.wait()
        except TimeoutError:
            pass  # what it will say of itself is not worth any more waiting

    def replay(self, data: bytes) -> None:
        """Takes note of what the front desk has already answered."""
        ways = self._send, self._send_if_room
        self._send = self._send_if_room = lambda frame: None
        try:
            self.receive(data)
        finally:
            self._send, self._send_if_room = ways

    def receive(self, data: bytes) -> None:
        """Acts on bytes from the client."""
        # Line by line: an id is free again once its request was answered, also within one piece.
        start = 0
        while end := data.find(b"\n", start) + 1:
            self._handle(self._peer.receive(data[start:end]))
            start = end
        if start < len(data):
            self._handle(self._peer.receive(data[start:]))

    def end(self) -> None:
        """The client sends no more; a last line without its newline counts."""
        self._handle(self._peer.eof())

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Request():
                    self._request(event)
                case Result() | Error():
                    self._questions.answered(event)
                case Cancelled(id=id):
                    if (call := self._calls.get(id)) is not None:
                        call.cancel()
                case Invalid(id=id, code=code, message=message):
                    self._send(self._peer.error(id, code, message))
                case Notification(method=method, params=params):
                    self._notified(method, params)
                case Batch(events=batch):
                    self._batch(batch)
                case Closed():
                    self._questions.end()
                case _:
                    pass  # an answer nobody waits for

    def _batch(self, events: Sequence[Event]) -> None:
        answers = Gathering(self._send)
        send, before = self._send, set(self._calls.values())
        self._send = answers.put
        try:
            for event in events:
                if isinstance(event, Request) and event.method == "initialize":
                    error = NOT_IN_A_BATCH
                    self._send(self._peer.error(event.id, error.code, error.message))
                else:
                    self._handle([event])
        finally:
            self._send = send
        for call in self._calls.values():
            if call not in before:
                answers.awaits()
                call.add_done_callback(answers.ended)
        answers.ended()

    async def finish(self, patience: float) -> None:
        """What the client still waits for gets ``patience`` seconds, then is cancelled."""
        calls = list(self._calls.values())
        if calls:
            await asyncio.wait(calls, timeout=patience)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls, timeout=LETTING_GO)
        for task in self._passing_on:
            task.cancel()

    def _notified(self, method: str, params: bytes | None) -> None:
        if len(self._passing_on) >= limits.NOTICES:
            return
        if (work := self._endpoint.notified(self.client, method, params)) is not None:
            task = asyncio.create_task(work)
            self._passing_on.add(task)
            task.add_done_callback(self._passing_on.discard)
            task.add_done_callback(retrieve_exception)

    def _request(self, request: Request) -> None:
        try:
            if self._under_way >= limits.CALLS:
                raise FaultError(BUSY.code, BUSY.message)
            exchange = self._exchange(request)
            result = self._endpoint.begin(request.method, exchange)
            self._opened.set()
            if isinstance(result, bytes):
                result = self._endpoint.finished(request.method, exchange, result)
        except Exception as failure:
            error = fault_of(failure).error
            self._send(self._peer.error(request.id, error.code, error.message, error.data, error.more))
            return
        if isinstance(result, bytes):
            self._send(self._peer.result(request.id, result))
        else:
            task = asyncio.create_task(self._answer(request, exchange, result, self._send))
            self._calls[request.id] = task
            self._under_way += 1
            task.add_done_callback(partial(self._done, request.id, result))

    def _exchange(self, request: Request) -> Exchange:
        client = self.client
        exchange = Exchange(client, request.id, request.params, self._tell)
        opening = opening_of(request.method, exchange.fields, exchange.meta_fields)
        self._settle_era(request.method, opening)
        if opening is not None and opening.era is Era.MODERN:
            client.capabilities = opening.capabilities or b"{}"
        exchange.ask = None if client.era is Era.MODERN else self._ask
        exchange.capabilities = client.capabilities
        exchange.log_level = client.log_level if opening is None else opening.log_level
        return exchange

    def _done(self, id: bytes, work: Coroutine[None, None, bytes], task: "asyncio.Task[None]") -> None:
        self._under_way -= 1
        work.close()  # a request that was cancelled in the same breath has not begun
        if self._calls.get(id) is task:  # the id of a cancelled call may be another's by now
            del self._calls[id]

    def _settle_era(self, method: str, opening: Opening | None) -> None:
        era = self.client.era
        if opening is not None and opening.era is Era.LEGACY:
            self._peer.batches = negotiate(opening.version or "") == BATCHED_VERSION
        if opening is None:
            if era is None and method != "ping":
                raise FaultError(INVALID_REQUEST, "The conversation has not begun: send initialize first.")
            if era is Era.MODERN:
                raise FaultError(
                    INVALID_PARAMS, "The request lacks its _meta of protocol version 2026-07-28."
                )
            return
        if opening.era is Era.LEGACY and opening.version is None:
            raise FaultError(INVALID_PARAMS, "initialize needs a 'protocolVersion'.")
        if opening.era is Era.MODERN:
            if opening.version is None or not (opening.capabilities or b"").startswith(b"{"):
                raise FaultError(
                    INVALID_PARAMS,
                    "_meta lacks io.modelcontextprotocol/protocolVersion or …/clientCapabilities.",
                )
            if opening.version not in MODERN_VERSIONS:
                error = unsupported_version_error(opening.version)
                raise FaultError(error.code, error.message, error.data, error.more)
        if era not in (None, opening.era):
            raise FaultError(INVALID_REQUEST, f"This connection already speaks {self._spoken()}.")
        if era is None:
            self.client.era = opening.era
            if opening.era is Era.MODERN:
                self.client.ask = None
            self._endpoint.joined(self.client)

    def _spoken(self) -> str:
        return MODERN_VERSION if self.client.era is Era.MODERN else "a version negotiated with initialize"

    async def _answer(
        self,
        request: Request,
        exchange: Exchange,
        work: Coroutine[None, None, bytes],
        send: Callable[[bytes], None],
    ) -> None:
        peer, id = self._peer, request.id
        try:
            result = self._endpoint.finished(request.method, exchange, await work)
        except asyncio.CancelledError:
            raise  # a cancelled request gets no answer (spec: basic/utilities/cancellation)
        except Exception as failure:
            error = fault_of(failure).error
            send(peer.error(id, error.code, error.message, error.data, error.more))
        else:
            send(peer.result(id, result))

    def _tell(self, method: str, params: bytes | None) -> None:
        self._send_if_room(self._peer.notify(method, params))

    async def _ask(self, method: str, params: bytes | None) -> bytes:
        if self._full():
            raise RpcFaultError(NOT_READ)
        return await self._questions.ask(self._send, method, params)
