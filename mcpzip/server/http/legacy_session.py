"""One legacy client over HTTP: its requests, ours to it, and the HTTP responses that carry both.

A client that closes its connection has cancelled nothing: its requests go on for some minutes. It may resume
the stream of a response if it knows an event id of it; on any other it is asked nothing more. A request id is
in use until the request is answered.
"""

import asyncio
import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from mcpzip.model.principal import Principal
from mcpzip.proxy.exchange import Client, Exchange, Notify, SendRequest
from mcpzip.proxy.workers import Requester
from mcpzip.server.batch import BatchResponse
from mcpzip.server.client_requests import CLIENT_STALLED, ClientRequests
from mcpzip.server.endpoint import BUSY, STOPPED
from mcpzip.server.http.event_store import (
    NO_EVENTS_BEFORE_END,
    PLAIN_EVENTS,
    EventStore,
    EventStream,
    sse_event,
)
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.response import HttpResponse, ScopesChallenge, error_message
from mcpzip.server.http.send_queue import FinalMessage, QueueBudget, SendQueue
from mcpzip.server.task_tracker import Outcome, TaskTracker
from mcpzip.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    Batch,
    Cancelled,
    Era,
    Error,
    Event,
    Invalid,
    JsonRpcError,
    Notification,
    Peer,
    Request,
    Result,
    RpcError,
    ScopeError,
)

STREAM_TIME = 5.0
"""Seconds a client may take to open the stream on which it is to be asked something outside its requests."""

_NO_STREAM = RpcError(INVALID_REQUEST, "The client has no stream open on which it could be asked.")
_BEGUN = RpcError(INVALID_REQUEST, "The session has begun already; a new one begins without Mcp-Session-Id.")
_NO_OBJECT = RpcError(INVALID_PARAMS, "params is an object")
_NOT_KEPT = RpcError(INTERNAL_ERROR, "The answer was too long to be kept for a client that had hung up.")
_WITHDRAWN = "The request was cancelled."
_UNHEARD = "The client hung up long ago."
_ENDED = "The session has ended."


class _Call:
    """A request under way, or one whose response may be resumed. principal: who made it. batch: what it is
    answered in, if it came in one; events: the events of its stream, if they have ids; withdrawn: why it was
    cancelled, if it was; timers: what ends it, and what is asked in it, after its client hung up.
    """

    def __init__(
        self,
        id: bytes,
        queue: SendQueue,
        batch: BatchResponse | None = None,
        principal: Principal | None = None,
    ) -> None:
        self.id, self.queue, self.batch, self.principal = id, queue, batch, principal
        self.events: EventStream | None = None
        self.withdrawn: str | None = None
        self.cancel: Callable[[], object] = lambda: None
        self.timers: list[asyncio.TimerHandle] = []

    def release(self) -> None:
        """Frees its result, if that was sent or kept as an event."""
        if self.events is not None and self.events.over:
            self.cancel = lambda: None
            self.queue.final = None
            self.queue.close()

    def stop_timers(self) -> None:
        """It is answered, or its client is back."""
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()


class LegacySession:
    """One client. id: its Mcp-Session-Id; listens: set while its own stream is open; uses: open HTTP requests
    of it; began: whether its `initialize` succeeded; did_something: whether it asked anything after that;
    address: the IP address it came from; last_used: when there was a request, by the loop's clock;
    idle_timer: what ends it then.
    """

    def __init__(
        self,
        tasks: TaskTracker,
        peer: Peer,
        limits: Limits,
        budget: QueueBudget,
        address: str = "",
        store: EventStore | None = None,
        principal: Principal | None = None,
        challenge: ScopesChallenge | None = None,
    ) -> None:
        """store: the streams that can be resumed, if its client can do that. principal: whose it is; None
        where nobody signs in. challenge: the header of a refusal because a token lacks scopes.
        """
        self.id, self.address = secrets.token_hex(16), address
        self.client = Client(Era.LEGACY, principal=principal)
        self._challenge = challenge
        self._person = None if principal is None else principal.id
        self.listens = asyncio.Event()
        self.uses = 0
        self.last_used = 0.0
        self.did_something = self.began = False
        self.idle_timer: asyncio.TimerHandle | None = None
        self._tasks, self._peer, self._limits = tasks, peer, limits
        self._client_requests = ClientRequests(peer)
        self._calls: dict[bytes, _Call] = {}
        self._store = store
        self._budget, self._queue = budget, SendQueue(budget)
        self.client.notify = self._notifier(self._queue)
        self.client.request = self._asker(self._queue, self.listens)

    @property
    def busy(self) -> bool:
        """Whether a request of it is under way."""
        return bool(self._calls)

    @property
    def used_until(self) -> float:
        """When it was last used; infinity while it is."""
        return math.inf if self.uses or self.busy else self.last_used

    def is_of(self, principal: Principal | None) -> bool:
        """Whether it is the session of ``principal``."""
        return self._person == (None if principal is None else principal.id)

    def post(self, body: bytes, response: HttpResponse) -> None:
        """Answers a message of the client."""
        match event := self._peer.message(body):
            case Request(id=id):
                if error := self._refusal(event):
                    status = 400 if error is _NO_OBJECT else 200
                    response.json(self._peer.error(id, error.code, error.message), status)
                else:
                    self.did_something = True
                    self.answer(event, response)
            case Batch(events=events):
                self._answer_batch(events, response)
            case Invalid(id=id, code=code, message=message):
                response.json(self._peer.error(id, code, message), 400)
            case _:
                self._receive(event)
                response.empty(202)

    def _refusal(self, request: Request) -> RpcError | None:
        if request.params is not None and not request.params.startswith(b"{"):
            return _NO_OBJECT
        if request.method == "initialize":
            return _BEGUN
        # A ping asks whether we are there; that takes no time.
        full = self._tasks.full if request.method == "ping" else self._tasks.full_for(self.id)
        return BUSY if full else None

    def _answer_batch(self, events: Sequence[Event], response: HttpResponse) -> None:
        """Answers a batch: on one stream, with one array as the final message."""
        queue, calls = SendQueue(self._budget), list[_Call]()
        answers = BatchResponse(lambda line: queue.finish(FinalMessage(line)) if line else None)
        for event in events:
            match event:
                case Request(id=id):
                    if error := self._refusal(event):
                        answers.add(self._peer.error(id, error.code, error.message))
                    else:
                        answers.expect()
                        calls.append(_Call(id, queue, answers))
                        self._run(calls[-1], event)
                case Invalid(id=id, code=code, message=message):
                    answers.add(self._peer.error(id, code, message))
                case _:
                    self._receive(event)
        answers.done()
        if queue.final is None and not calls:
            response.empty(202)
            return
        self.did_something = True

        def delivered(complete: bool) -> None:
            if not complete:
                for call in calls:
                    self._hung_up(call)

        response.deliver(queue, delivered, event_limit=self._limits.event)

    def answer(
        self, request: Request, response: HttpResponse, done: Callable[[bool], object] = lambda success: None
    ) -> None:
        """Answers a request. done: called with whether the client got a result."""
        call = _Call(request.id, SendQueue(self._budget), principal=self.client.principal)
        if self._store is not None and request.method != "initialize":  # whose client knows no session yet
            call.events = self._store.new(call)
        self._run(call, request)
        self._deliver(call, response, done)

    def _run(self, call: _Call, request: Request) -> None:
        self._calls[call.id] = call
        loop, client, queue = asyncio.get_running_loop(), self.client, call.queue
        exchange = Exchange(
            client,
            request.id,
            request.params,
            self._notifier(queue),
            self._asker(queue),
            client.capabilities,
            client.log_level,
        )
        requester = Requester(self.id, lambda: queue.closed)
        # What the server asked before its result is asked within this turn of the loop, on the same stream.
        task = self._tasks.run(
            request.method, exchange, lambda outcome: loop.call_soon(self._settled, call, outcome), requester
        )
        if task is not None:
            call.cancel = task.cancel

    def resume(self, event_id: str, response: HttpResponse) -> bool:
        """Resumes the stream of a request after an event. Returns whether that is known."""
        found = self._store and self._store.find(event_id)
        if not found:
            return False
        events, number = found
        call = events.owner
        assert isinstance(call, _Call), "streams belong to requests"
        call.stop_timers()
        if events.lost_after(number):
            frames = self._client_requests.unanswered(call.queue.put)
            call.queue.put_first([frame for frame in frames if not events.keeps(frame)])
        lost = [sse_event(error_message(_NOT_KEPT, call.id))] if events.lost_final else []
        replay = chain([events.empty_event(number)], events.after(number), lost)
        self._deliver(call, response, replay=replay)
        return True

    def _deliver(
        self,
        call: _Call,
        response: HttpResponse,
        done: Callable[[bool], object] = lambda success: None,
        replay: Iterator[bytes] | None = None,
    ) -> None:
        # Who began in vain is given no session, and what isn't answered yet may fail.
        plain = PLAIN_EVENTS if self.began else NO_EVENTS_BEFORE_END

        def delivered(complete: bool) -> None:
            final = call.queue.final
            success = complete and final is not None and not final.failed
            if not complete:
                self._hung_up(call)
            call.release()
            self.began = self.began or success
            done(success)

        response.deliver(
            call.queue, delivered, call.events or plain, event_limit=self._limits.event, replay=replay
        )

    def _hung_up(self, call: _Call) -> None:
        loop, limits = asyncio.get_running_loop(), self._limits
        if call.events is not None and call.events.resumable:
            call.timers.append(loop.call_later(limits.away, self._abandon, call))
            self._keep(call)
        else:
            self._abandon(call)
            call.queue.close()
        if self._calls.get(call.id) is call:  # its result may reach nobody
            call.timers.append(loop.call_later(limits.unheard, self._give_up, call))

    def _abandon(self, call: _Call) -> None:
        call.queue.abandoned = True
        self._client_requests.end(call.queue.put)

    def _keep(self, call: _Call) -> None:
        """Keeps the rest of a response for a client that may resume its stream."""
        events, queue = call.events, call.queue
        if events is not None and events.resumable and not events.over and queue.final is not None:
            for line in chain.from_iterable(iter(queue.take, [])):
                events.add(line)
            events.add(queue.final.line, last=True)
            call.release()

    def listen(self, response: HttpResponse) -> None:
        """Sends what belongs to no request, until the client leaves or the session ends."""
        self.listens.set()
        self.did_something = True
        response.stream()
        # What was asked on the stream before, and not answered, may have been lost with it.
        self._queue.put_first(self._client_requests.unanswered(self._queue.put))
        response.deliver(self._queue, lambda complete: self.listens.clear())

    def end(self) -> None:
        """The client is gone."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        self._peer.eof()
        self._client_requests.end()
        for call in list(self._calls.values()):
            self._withdraw(call, _ENDED)
        self._queue.close()
        if self._store is not None:
            self._store.end()

    def _receive(self, event: Event) -> None:
        match event:
            case Result() | Error():
                self._client_requests.responded(event)
            case Cancelled(id=id):
                if call := self._calls.get(id):
                    self._withdraw(call, _WITHDRAWN)
            case Notification(method=method, params=params):
                self._tasks.notified(self.client, method, params)
            case _:
                pass  # progress, or a response nobody waits for

    def _give_up(self, call: _Call) -> None:
        self._peer.error(call.id, REQUEST_CANCELLED, _UNHEARD)  # it is answered, though to nobody
        self._withdraw(call, _UNHEARD)

    def _withdraw(self, call: _Call, reason: str) -> None:
        del self._calls[call.id]  # whose id is free from now on
        call.stop_timers()
        call.withdrawn = reason
        call.cancel()

    def _settled(self, call: _Call, outcome: Outcome) -> None:
        call.stop_timers()
        if self._calls.get(call.id) is call:
            del self._calls[call.id]
        if call.withdrawn is not None:
            # An HTTP response needs a body, though the specification wants no answer to a cancelled request.
            outcome = RpcError(REQUEST_CANCELLED, call.withdrawn)
            line = error_message(outcome, call.id)
        elif isinstance(outcome := outcome or STOPPED, RpcError):
            line = self._peer.error(call.id, outcome.code, outcome.message, outcome.data, outcome.more)
        else:
            line = self._peer.result(call.id, outcome)
        if call.batch is not None:
            call.batch.add(line)
            call.batch.done()
            return
        if isinstance(outcome, ScopeError) and self._challenge is not None:
            header = self._challenge(outcome.scopes, call.principal)
            call.queue.finish(FinalMessage(line, 403, failed=True, headers=(header,)))
        else:
            call.queue.finish(FinalMessage(line, failed=isinstance(outcome, RpcError)))
        if call.queue.reader is None:
            self._keep(call)

    def _notifier(self, queue: SendQueue) -> Notify:
        return lambda method, params: queue.put_if_room(self._peer.notify(method, params))

    def _asker(self, queue: SendQueue, opened: asyncio.Event | None = None) -> SendRequest:
        def send_cancellation(line: bytes) -> None:
            # The stream of a call ends with its result, but a request to the client may outlive that.
            if queue.open:
                queue.put(line)
            else:
                self._queue.put_if_room(line)

        async def ask(method: str, params: bytes | None) -> bytes:
            if opened is not None:
                await _is_set(opened)
            if not queue.open or queue.abandoned:
                raise JsonRpcError(_NO_STREAM)
            if queue.full:
                raise JsonRpcError(CLIENT_STALLED)
            return await self._client_requests.request(queue.put, method, params, send_cancellation)

        return ask


async def _is_set(opened: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(STREAM_TIME):
            await opened.wait()
    except TimeoutError:
        raise JsonRpcError(_NO_STREAM) from None
