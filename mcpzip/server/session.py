"""One client on a stream: parses its messages and sends ours. It does no I/O of its own, but runs tasks.

The client's first request decides the era (spec: basic/versioning). Every request gets exactly one response,
or none if the client cancelled it. Requests run concurrently, and reading never waits for one.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from mcpzip.model import limits
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.workers import Requester
from mcpzip.server.batch import NOT_IN_A_BATCH, BatchResponse
from mcpzip.server.client_requests import CLIENT_STALLED, ClientRequests
from mcpzip.server.endpoint import BUSY, Endpoint
from mcpzip.server.task_tracker import Outcome, TaskTracker
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
    JsonRpcError,
    Notification,
    Opening,
    Peer,
    Request,
    Result,
    Role,
    RpcError,
    negotiate,
    opening_of,
    unsupported_version_error,
)

HELD = 1 << 20
"""Bytes of requests that are held back at most; with more, all are handled."""
LETTING_GO = 0.5
"""Seconds a cancelled call may take to tell its server."""


class Session:
    """A client's connection, from its first byte to its last. client: what is known of it so far. calls: the
    number of its tool calls.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        send: Callable[[bytes], None],
        tell: Callable[[bytes], None] | None = None,
        full: Callable[[], bool] = lambda: False,
        *,
        is_only_client: bool = True,
        first_id: int = 1,
        folder: str | None = None,
    ) -> None:
        """send: sends a frame to the client. tell: the same for notifications, which may be dropped (default:
        ``send``). full: whether so much waits for the client that it is sent no requests. is_only_client:
        whether the proxy serves nobody else. first_id: of the requests to the client. folder: see `Client`.
        """
        self._endpoint, self._send, self._full = endpoint, send, full
        self._send_if_room = tell or send
        self._peer = Peer(role=Role.SERVER, first_id=first_id)
        self._client_requests = ClientRequests(self._peer)
        self.client = Client(
            notify=self._tell, request=self._ask, is_only_client=is_only_client, folder=folder
        )
        self._requester = None if is_only_client else Requester(self)
        self.calls = 0
        self._lasting: set[asyncio.Task[None]] = set()
        self._tasks = TaskTracker(endpoint, limits.CALLS)
        self._calls: dict[bytes, tuple[Exchange, asyncio.Task[None]]] = {}
        self._batches = 0
        self._opened, self._has_begun = asyncio.Event(), False
        self._held: list[Request] | None = None
        self._held_size = 0

    @property
    def under_way(self) -> int:
        """How many of its requests are being processed."""
        return len(self._calls) - len(self._lasting)

    @property
    def busy(self) -> bool:
        """Whether a request is under way, apart from those that last as long as the session. A batch is until
        it is answered, which is after its last request.
        """
        return self._batches > 0 or len(self._calls) > len(self._lasting)

    async def opened(self, patience: float) -> None:
        """Waits for the client's first request, ``patience`` seconds at most."""
        try:
            async with asyncio.timeout(patience):
                await self._opened.wait()
        except TimeoutError:
            pass  # servers are listed without knowing what the client supports

    def replay(self, data: bytes) -> None:
        """Takes note of the messages that the early handshake has answered."""
        sends = self._send, self._send_if_room
        self._send = self._send_if_room = lambda frame: None
        try:
            self.receive(data)
        finally:
            self._send, self._send_if_room = sends

    def receive(self, data: bytes) -> None:
        """Handles bytes from the client."""
        start = data.find(b"\n") + 1
        if start == len(data):  # one line, which is usual
            self._handle(self._peer.receive(data), alone=True)
            return
        # Line by line, because a request may reuse the id of one that was answered at once.
        start = 0
        while end := data.find(b"\n", start) + 1:
            self._handle(self._peer.receive(data[start:end]))
            start = end
        if start < len(data):
            self._handle(self._peer.receive(data[start:]))

    def end(self, *, cut: bool = False) -> None:
        """The client sends no more. A last line without a newline is handled, too, unless the input was
        ``cut``.
        """
        self.release()
        events = self._peer.eof()
        self._handle([event for event in events if isinstance(event, Closed) or not cut])

    # --- on the way to another session

    @property
    def holds(self) -> bool:
        """Whether new requests are held back."""
        return self._held is not None

    def hold(self) -> None:
        """From now on new requests are held back. What belongs to those under way is handled: notifications,
        responses, the requests with which a modern client resumes a call; and batches, because they are not
        repeated elsewhere.
        """
        self._held, self._held_size = [], 0

    def release(self) -> None:
        """Handles the requests that were held back, and new ones again."""
        held, self._held = self._held or [], None
        for request in held:
            self._request(request)

    def _held_back(self, request: Request, held: list[Request]) -> bool:
        params = request.params or b""
        if b'"requestState"' in params:
            return False
        self._held_size += len(params)
        if self._held_size > HELD:
            self.release()
            return False
        held.append(request)
        return True

    def _handle(self, events: list[Event], *, alone: bool = False) -> None:
        """alone: whether nothing came with them that could be about them, as a cancellation is."""
        for event in events:
            match event:
                case Request():
                    if self._held is None or not self._held_back(event, self._held):
                        self._request(event, at_once=alone)
                case Result() | Error():
                    self._client_requests.responded(event)
                case Cancelled(id=id):
                    if (call := self._calls.get(id)) is not None:
                        call[1].cancel()
                    if self._held:
                        self._held = [request for request in self._held if request.id != id]
                case Invalid(id=id, code=code, message=message):
                    self._send(self._peer.error(id, code, message))
                case Notification(method=method, params=params):
                    self._tasks.notified(self.client, method, params)
                case Batch(events=batch):
                    self._batch(batch)
                case Closed():
                    self._client_requests.end()
                case _:
                    pass  # a response that nothing waits for

    def _batch(self, events: Sequence[Event]) -> None:
        send, before, held = self._send, set(self._calls.values()), self._held

        def answered(line: bytes) -> None:
            self._batches -= 1
            send(line)

        self._batches += 1
        answers = BatchResponse(answered)
        self._send, self._held = answers.add, None
        try:
            for event in events:
                if isinstance(event, Request) and event.method == "initialize":
                    error = NOT_IN_A_BATCH
                    self._send(self._peer.error(event.id, error.code, error.message))
                else:
                    self._handle([event])
        finally:
            self._send, self._held = send, held
        for call in self._calls.values():
            if call not in before:
                answers.expect()
                call[1].add_done_callback(answers.done)
        answers.done()

    async def finish(self, patience: float) -> None:
        """Requests under way get ``patience`` seconds, then are cancelled."""
        await self._tasks.settle(patience, LETTING_GO)
        await self._tasks.finish(0)

    def _request(self, request: Request, *, at_once: bool = False) -> None:
        id, send = request.id, self._send
        try:
            if self._tasks.full:
                raise JsonRpcError(BUSY)
            exchange = self._exchange(request)
        except JsonRpcError as failure:
            self._settled(id, None, send, failure.error)
            return
        if not self._has_begun:  # who waits for the first request has to go on before that is begun
            self._has_begun, at_once = True, False
            self._opened.set()
        self.calls += request.method == "tools/call"
        settled = partial(self._settled, id, exchange, send)
        task = self._tasks.run(request.method, exchange, settled, self._requester, at_once=at_once)
        if task is not None:
            self._calls[id] = exchange, task
            if request.method == "subscriptions/listen":
                self._lasting.add(task)
                task.add_done_callback(self._lasting.discard)

    def _settled(
        self, id: bytes, exchange: Exchange | None, send: Callable[[bytes], None], outcome: Outcome
    ) -> None:
        call = self._calls.get(id)
        if call is not None and call[0] is exchange:  # the id of a cancelled call may be another's by now
            del self._calls[id]
        if isinstance(outcome, bytes):
            send(self._peer.result(id, outcome))
        elif outcome is not None:  # a cancelled request gets no answer (spec: basic/utilities/cancellation)
            send(self._peer.error(id, outcome.code, outcome.message, outcome.data, outcome.more))

    def _exchange(self, request: Request) -> Exchange:
        client = self.client
        exchange = Exchange(client, request.id, request.params, self._tell)
        opening = opening_of(request.method, exchange.fields, exchange.meta_fields)
        self._settle_era(request.method, opening)
        if opening is not None and opening.era is Era.MODERN:
            client.capabilities = opening.capabilities or b"{}"
        exchange.request = None if client.era is Era.MODERN else self._ask
        exchange.capabilities = client.capabilities
        exchange.log_level = client.log_level if opening is None else opening.log_level
        return exchange

    def _settle_era(self, method: str, opening: Opening | None) -> None:
        era = self.client.era
        if opening is not None and opening.era is Era.LEGACY:
            self._peer.batches = negotiate(opening.version or "") == BATCHED_VERSION
        if opening is None:
            if era is None and method != "ping":
                raise JsonRpcError(
                    RpcError(INVALID_REQUEST, "The conversation has not begun: send initialize first.")
                )
            if era is Era.MODERN:
                raise JsonRpcError(
                    RpcError(INVALID_PARAMS, "The request lacks its _meta of protocol version 2026-07-28.")
                )
            return
        if opening.era is Era.LEGACY and opening.version is None:
            raise JsonRpcError(RpcError(INVALID_PARAMS, "initialize needs a 'protocolVersion'."))
        if opening.era is Era.MODERN:
            if opening.version is None or not (opening.capabilities or b"").startswith(b"{"):
                raise JsonRpcError(
                    RpcError(
                        INVALID_PARAMS,
                        "_meta lacks io.modelcontextprotocol/protocolVersion or …/clientCapabilities.",
                    )
                )
            if opening.version not in MODERN_VERSIONS:
                error = unsupported_version_error(opening.version)
                raise JsonRpcError(error)
        if era not in (None, opening.era):
            raise JsonRpcError(
                RpcError(INVALID_REQUEST, f"This connection already speaks {self._negotiated()}.")
            )
        if era is None:
            self.client.era = opening.era
            if opening.era is Era.MODERN:
                self.client.request = None
            self._endpoint.joined(self.client)

    def _negotiated(self) -> str:
        return MODERN_VERSION if self.client.era is Era.MODERN else "a version negotiated with initialize"

    def _tell(self, method: str, params: bytes | None) -> None:
        self._send_if_room(self._peer.notify(method, params))

    async def _ask(self, method: str, params: bytes | None) -> bytes:
        if self._full():
            raise JsonRpcError(CLIENT_STALLED)
        return await self._client_requests.request(self._send, method, params)
