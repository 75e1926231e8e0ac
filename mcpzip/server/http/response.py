"""An HTTP response: plain JSON, or a stream of server-sent events.

Which of the two is decided as late as possible. A stream begins with the first message before the final
one, or with the first ping after a silence that a proxy in between might take for the end. A final message
that nothing preceded is plain JSON with the HTTP status that its error calls for, or an event where clients
of that era expect one.

Nothing here waits. What can't be written, because the client doesn't read, is written when `pump` is called
again: by the connection when the client has read, by the `SendQueue` when there is more to send.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from mcpzip.model.principal import Principal
from mcpzip.server.http.event_store import PING, PLAIN_EVENTS, Events, EventStream, sse_event
from mcpzip.server.http.send_queue import FinalMessage, SendQueue
from mcpzip.wire import INVALID_REQUEST, RpcError, quote

Header = tuple[bytes, bytes]
ScopesChallenge = Callable[[Sequence[str], Principal | None], Header]
"""The header of a refusal because the token of somebody lacks some of these scopes."""

_JSON = (b"content-type", b"application/json")
_EVENT_STREAM = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_CLOSE = (b"connection", b"close")
_COMMENT = b": ping\r\n\r\n"
_FRAMING = 64
"""Bytes that an event adds to its message, and some."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a request isn't served. code: of the JSON-RPC error."""

    status: int
    reason: str
    headers: tuple[Header, ...] = ()
    code: int = INVALID_REQUEST


class Channel(Protocol):
    """The connection, as far as a response needs it."""

    @property
    def writable(self) -> bool:
        """Whether the client has read what was sent before."""

    @property
    def mid_body(self) -> bool:
        """Whether the body of the request isn't complete, so that no other request can follow it."""

    def start(self, status: int, headers: Sequence[Header], body: bytes, *, more: bool) -> None:
        """Sends status and headers, and the beginning of the body, or all of it."""

    def write(self, body: bytes, *, more: bool) -> None:
        """Sends more of the body."""

    def hold_back(self, size: int) -> None:
        """Counts ``size`` bytes that are ready but can't be written yet."""

    def failed(self, defect: Exception) -> None:
        """Reports a defect of ours, and ends the response."""


class HttpResponse:
    """A response. headers: sent whatever it becomes; headers_of_success: not sent with an error that nothing
    preceded; on_end: called once, when it is complete or the client has left. started: whether anything was
    sent; streams: whether it is an event stream; ended: whether nothing more is sent.
    """

    def __init__(self, channel: Channel, headers: Sequence[Header] = ()) -> None:
        self._channel = channel
        self.headers = list(headers)
        self.headers_of_success: list[Header] = []
        self.on_end: Callable[[], object] = lambda: None
        self.started = self.streams = self.ended = False
        self._blocked: Callable[[], None] | None = None  # the start, as long as it can't be written
        self._queue: SendQueue | None = None
        self._delivered: Callable[[bool], object] = lambda delivered: None
        self._events: Events = PLAIN_EVENTS
        self._event_limit = -1
        self._replay: Iterator[bytes] = iter(())
        self._timer: asyncio.TimerHandle | None = None
        self._drained: asyncio.Future[None] | None = None

    def empty(self, status: int, *headers: Header) -> None:
        """The whole response, without a body."""
        self._start(status, headers, b"", more=False)

    def send(self, status: int, body: bytes, *headers: Header) -> None:
        """The whole response, with this body, of whose type the headers tell."""
        self._start(status, headers, body, more=False)

    def json(self, body: bytes, status: int = 200, *headers: Header) -> None:
        """The whole response, with this line as its body."""
        self._start(status, (_JSON, *headers), body.removesuffix(b"\n"), more=False)

    def refuse(self, refusal: Refusal) -> None:
        """The whole response: why the request isn't served."""
        self.headers_of_success.clear()
        body = error_message(RpcError(refusal.code, refusal.reason))
        # What is left of the body must not be taken for another request.
        close = (_CLOSE,) if self._channel.mid_body else ()
        self.json(body, refusal.status, *close, *refusal.headers)

    def stream(self) -> None:
        """Begins an event stream now."""
        if not self.streams:
            self._send_events(b"")

    def begin(self, status: int, *headers: Header) -> None:
        """Begins a response whose body another server makes: what follows are `pass_on` and `finish`."""
        self.streams = True
        self._start(status, headers, b"", more=True)

    def pass_on(self, data: bytes) -> None:
        """Sends more of such a body."""
        if not self.ended:
            self._channel.write(data, more=True)

    def finish(self) -> None:
        """Ends such a body."""
        if not self.ended:
            self._end_stream()

    async def drained(self) -> None:
        """Waits until the client has read what was sent."""
        while not (self.ended or self._channel.writable):
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained

    def failed(self, defect: Exception) -> None:
        """Reports a defect of ours, and ends the response."""
        if not self.ended:
            self._channel.failed(defect)

    def deliver(
        self,
        queue: SendQueue,
        delivered: Callable[[bool], object] = lambda delivered: None,
        events: Events = PLAIN_EVENTS,
        *,
        event_limit: int = -1,
        replay: Iterator[bytes] | None = None,
    ) -> None:
        """Sends the messages of ``queue`` up to the final one, or until it is closed.

        delivered: called with True when all is sent, with False when the client has left before; not called
        when another response takes over. events: what the messages become. event_limit: a final message of up
        to so many bytes is an event even if nothing preceded it. replay: events that are sent first.
        """
        self._queue, self._delivered, self._events = queue, delivered, events
        self._event_limit, self._replay = event_limit, replay or iter(())
        queue.attach(self)

    def pump(self) -> None:
        """Sends what there is to send, as far as the client reads it."""
        self._wake()
        if self.ended:
            return
        try:
            self._pump()
        except Exception as defect:
            if self._queue is not None:
                self._queue.reader, self._queue = None, None
                self._delivered(False)
            self._channel.failed(defect)

    def _pump(self) -> None:
        channel, queue = self._channel, self._queue
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while not self.ended:
            if not channel.writable:
                if queue is not None:
                    channel.hold_back(queue.next_size)
                return
            if self._blocked is not None:
                start, self._blocked = self._blocked, None
                start()
            elif queue is None:
                return
            elif event := next(self._replay, b""):
                self._send_events(event)
            elif isinstance(self._events, EventStream) and self._events.over:
                self._end_stream()
            elif lines := queue.take():
                self._send_events(b"".join(map(self._events.add, lines)), first=True)
            elif queue.final is not None:
                self._send_final(queue.final)
            elif queue.closed:
                self.stream()
                self._end_stream()
            else:
                patience = PING if self.streams else self._events.patience
                if patience is not None:
                    self._timer = asyncio.get_running_loop().call_later(patience, self._ping)
                return

    def _ping(self) -> None:
        self._timer = None
        if self._channel.writable:
            # A stream with ids begins with an event of its own.
            begins = isinstance(self._events, EventStream) and not self.streams
            self._send_events(b"" if begins else _COMMENT, first=True)
        self.pump()

    def _send_final(self, final: FinalMessage) -> None:
        line, limit, events = final.line, self._event_limit, self._events
        if final.failed:
            self.headers_of_success.clear()
        # An error with a header of its own is no event, which would have none.
        if self.streams or (
            not final.headers and len(line) <= limit and len(sse_event(line)) <= limit + _FRAMING
        ):
            self._send_events(events.add(line, last=True), first=True, more=False)
        else:
            self.json(line, final.status, *final.headers)

    def _end_stream(self) -> None:
        self._channel.write(b"", more=False)
        self._end(delivered=True)

    def _send_events(self, data: bytes, *, first: bool = False, more: bool = True) -> None:
        """first: whether what precedes the first event is sent if nothing was."""
        if self.streams:
            self._channel.write(data, more=more)
            if not more:
                self._end(delivered=True)
            return
        if first:
            data = self._events.first(only=not more) + data
        self.streams = True
        self._start(200, _EVENT_STREAM, data, more=more)

    def _start(self, status: int, headers: Sequence[Header], body: bytes, *, more: bool) -> None:
        if not self._channel.writable and not more:
            self._blocked = lambda: self._start(status, headers, body, more=more)
            self._channel.hold_back(len(body))
            return
        self.started = True
        self._channel.start(status, [*headers, *self.headers, *self.headers_of_success], body, more=more)
        if not more:
            self._end(delivered=True)

    def detach(self) -> None:
        """Another response sends the messages from now on; this one ends."""
        self._queue = None
        if self.streams:
            self._channel.write(b"", more=False)
        self._end()

    def client_left(self) -> None:
        """The connection is gone."""
        self._end(delivered=False)

    def _wake(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _end(self, delivered: bool | None = None) -> None:
        if self.ended:
            return
        self.ended = True
        self._wake()
        if self._timer is not None:
            self._timer.cancel()
        if self._queue is not None and self._queue.reader is self:
            self._queue.reader = None
            self._delivered(bool(delivered))
        self.on_end()


def error_message(error: RpcError, id: bytes = b"null") -> bytes:
    """The message that answers request ``id`` with ``error``."""
    data = b"" if error.data is None else b',"data":%b' % error.data
    more = b"" if error.more is None else b",%b" % error.more[1:-1]
    members = b'{"code":%d,"message":%b%b%b}' % (error.code, quote(error.message), data, more)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, members)
