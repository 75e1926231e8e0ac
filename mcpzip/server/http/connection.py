"""One connection to the HTTP server: asyncio's protocol, with h11 as the parser.

A request is checked when its head is complete, and handled when its body is. If it takes a while to find out
who makes it, nothing more is read until that is known. Each of the two has its time, so
has what the client is to read. A body in chunks is read in turns with other connections, because a chunk of
one byte takes as long to parse as one of a kilobyte. No byte of a refused body is parsed.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Protocol

import h11

from mcpzip.server.http.connections import Connections
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.request import Admission, HttpRequest
from mcpzip.server.http.response import Header, HttpResponse, Refusal
from mcpzip.system.timer import Timer
from mcpzip.wire import INTERNAL_ERROR

LINES = 128
"""Lines in what arrived at once, up to which it is parsed at once: a chunk takes some 20 µs."""
PIECE = 1024
"""Bytes that are parsed at a time of what has more lines: 200 chunks at most."""
SMALL = 64 * 1024
"""Bytes of a body up to which it is copied, to be written together with the head."""

_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_NOT_HTTP = Refusal(400, "This is not HTTP/1.1.")
_TOO_MANY = Refusal(503, "There are too many connections; try again later.", code=INTERNAL_ERROR)
_BODIES_FULL = Refusal(503, "Too much is being sent already; try again later.", code=INTERNAL_ERROR)
_BODY_LATE = Refusal(408, "The body of the request did not arrive in time.")
_HEAD_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

_RECEIVED = bytearray(1 << 16)
"""What arrives on any connection is read into this buffer and copied out before another read: asyncio would
allocate 256 KiB for each read and return what was not filled, which fragments memory."""


class Application(Protocol):
    """What serves the requests."""

    too_large: Refusal

    @property
    def headers(self) -> Sequence[Header]:
        """Of every response, also to what was no request."""

    def check(self, request: HttpRequest, response: HttpResponse) -> Refusal | None:
        """Why the request is refused, judging by its head; None when its body may come."""

    def handle(self, request: HttpRequest, response: HttpResponse) -> None:
        """Answers a request whose body is complete."""

    def warn(self, sentence: str) -> None:
        """Reports a defect of ours."""


class Connection(asyncio.BufferedProtocol):
    """One connection. Its requests are served one after the other."""

    def __init__(self, application: Application, connections: Connections, limits: Limits) -> None:
        self._application, self._connections, self._limits = application, connections, limits
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.SERVER, limits.head)
        self._crowded = self._closing = False
        self._address = ""
        self._request = HttpRequest("", "", ())
        self._response: HttpResponse | None = None
        self._body = bytearray()
        self._body_size = 0  # bytes that the body took so far, with the framing of its chunks
        self._counted = 0  # bytes of it that are counted in `Connections.bodies`
        self._rest = b""  # what arrived and waits for its turn
        self._admitting: asyncio.Task[None] | None = None
        self._held_back = 0  # bytes of the response that wait for the client to read what was sent before
        self._timer = Timer()
        self._unread_timer: asyncio.TimerHandle | None = None

    # The transport's events

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        address = transport.get_extra_info("peername")
        self._address = str(address[0]) if isinstance(address, tuple) else ""
        self._crowded = not self._connections.add(self)
        self._expect(self._limits.head_time, self._head_late)

    def get_buffer(self, sizehint: int) -> bytearray:
        return _RECEIVED

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(memoryview(_RECEIVED)[:nbytes])
        if self._rest or self._has_many_lines(data):
            self._rest += data
            self.transport.pause_reading()
            self._connections.request_turn(self)
        else:
            self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.close()
        self._resume()
        self._connections.remove(self)
        if self._admitting is not None:
            self._admitting.cancel()
        self._end_body()
        if self._response is not None:
            self._response.client_left()

    def pause_writing(self) -> None:
        self.writable = False
        if self._unread_timer is None:
            self._unread_timer = self._loop.call_later(self._limits.unread, self.abort)
            self._connections.client_stalls(self)

    def resume_writing(self) -> None:
        self._resume()
        self._connections.client_reads(self)
        if self._response is not None:
            self._response.pump()

    def _resume(self) -> None:
        self.writable, self._held_back = True, 0
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def abort(self) -> None:
        """Closes it at once."""
        self.transport.abort()

    def shutdown(self) -> None:
        """Closes it once the request under way, if there is one, is answered."""
        self._closing = True
        if self._response is None:
            self.transport.close()

    # Reading

    def read_more(self) -> bool:
        """Reads some of what arrived. Returns whether there is more."""
        data, self._rest = self._rest[:PIECE], self._rest[PIECE:]
        if self.transport.is_closing():
            self._rest = b""
        elif data:
            self._receive(data)
        if not (self._rest or self._admitting or self.transport.is_closing()):
            self.transport.resume_reading()
        return bool(self._rest)

    def _has_many_lines(self, data: bytes) -> bool:
        """Whether ``data`` may have so many chunks, or requests, that they take long to parse."""
        in_one_piece = self._http.their_state is h11.SEND_BODY and not self._request.is_chunked
        return not in_one_piece and data.count(b"\n") > LINES

    def _receive(self, data: bytes) -> None:
        state = self._http.their_state
        if state is h11.SEND_BODY:
            if self._request.is_chunked and self._answered:
                self._skip_chunks(data)
                return
            self._body_size += len(data) if self._request.is_chunked else 0
        elif state is not h11.IDLE:
            self._pipelined(data)
            return
        self._http.receive_data(data)
        self._parse()

    @property
    def _answered(self) -> bool:
        """Whether the response is sent already, while the body still arrives: the request was refused."""
        return self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE)

    def _skip_chunks(self, data: bytes) -> None:
        """Looks for the end of a refused body, as far as it can be seen without parsing."""
        data, self._rest = data + self._rest, b""
        if data.endswith(b"0\r\n\r\n"):
            self.transport.close()

    def _pipelined(self, data: bytes) -> None:
        """Keeps what arrived ahead of the response to the request before it."""
        if data.strip(b"\r\n"):  # some clients send a line after the body (RFC 9112, 2.2)
            self._http.receive_data(data)
            if len(self._http.trailing_data[0]) > self._limits.head:
                self.abort()

    def _parse(self) -> None:
        """Acts on what was received, up to the end of one request."""
        http = self._http
        while not (self._admitting or self.transport.is_closing()) and (
            http.their_state in (h11.IDLE, h11.SEND_BODY)
        ):
            try:
                event = http.next_event()
            except h11.RemoteProtocolError:
                self._not_http()
                return
            if isinstance(event, h11.Request):
                self._begin(event)
            elif isinstance(event, h11.Data):
                self._add_to_body(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._handle()
                return  # the next request has its own turn
            elif http.their_state is h11.IDLE:
                if http.trailing_data[0]:
                    self._expect(self._limits.head_time, self._head_late)
                return
            else:
                if not self._answered:
                    self._expect(self._limits.body_time, self._body_late)
                return
            if self._answered and self._request.is_chunked:
                self._skip_chunks(http.trailing_data[0])
                return

    def _begin(self, head: h11.Request) -> None:
        self._timer.clear()
        self._connections.asks(self)
        target = head.target.decode("latin-1")
        self._request = HttpRequest(head.method.decode("ascii"), target, head.headers, self._address)
        self._response = response = HttpResponse(self, self._application.headers)
        self._body_size = 0
        if self._crowded:
            response.refuse(_TOO_MANY)
            return
        if refusal := self._application.check(self._request, response):
            response.refuse(refusal)
            return
        if self._request.admission is None:
            self._admitted()
        else:
            self.transport.pause_reading()
            self._admitting = self._loop.create_task(self._admit(self._request.admission), name="admit")

    async def _admit(self, admission: Admission) -> None:
        """Goes on with the request once it is known who makes it, or that nobody may."""
        response = self._response
        try:
            refusal = await admission()
        except Exception as defect:
            self._admitting = None
            self.failed(defect)
            return
        self._admitting = None
        if response is None or response is not self._response or self.transport.is_closing():
            return
        if refusal is None:
            self._admitted()
        else:
            response.refuse(refusal)
        if not self._rest and not self.transport.is_closing():
            self.transport.resume_reading()
        if refusal is not None and self._request.is_chunked:
            self._skip_chunks(self._http.trailing_data[0])
        else:
            self._parse()

    def _admitted(self) -> None:
        """Its body may come."""
        request = self._request
        if not (
            request.is_preflight
            or request.is_health_check
            or request.is_anonymous
            or request.document is not None
        ):
            self._connections.unauthenticated.pop(self, None)
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self.transport.write(self._http.send(go_on))

    def _add_to_body(self, data: bytes) -> None:
        if self._response is None or self._answered:
            return
        self._body += data
        size = len(self._body)
        refusal = None
        if max(size, self._body_size) > self._limits.body:
            refusal = self._application.too_large
        elif size > self._limits.small_body:
            self._connections.bodies += size - self._counted
            self._counted = size
            refusal = _BODIES_FULL if self._connections.bodies > self._limits.bodies else None
        if refusal is not None:
            self._end_body()
            self._response.refuse(refusal)

    def _end_body(self) -> None:
        self._connections.bodies -= self._counted
        self._counted = 0
        self._body = bytearray()

    def _handle(self) -> None:
        """The request is complete."""
        self._timer.clear()
        response = self._response
        if response is None:  # it was refused
            self.transport.close()
            return
        self._request.body = bytes(self._body)
        self._end_body()
        try:
            self._application.handle(self._request, response)
        except Exception as defect:
            self.failed(defect)
        finally:
            self._connections.has_asked(self)

    def failed(self, defect: Exception) -> None:
        """Reports a defect of ours, and ends the response."""
        self._application.warn(f"a request over HTTP failed: {type(defect).__name__}: {defect}")
        response = self._response
        if response is None or response.started:
            self.abort()
        else:
            reason = f"mcpzip failed: {type(defect).__name__}."
            response.refuse(Refusal(500, reason, code=INTERNAL_ERROR))

    def _not_http(self) -> None:
        if self._answered:
            self.abort()
        else:
            self._end_body()
            (self._response or HttpResponse(self, self._application.headers)).refuse(_NOT_HTTP)

    # Writing, for `HttpResponse`

    writable = True

    @property
    def mid_body(self) -> bool:
        """Whether the body of the request isn't complete, so that no other request can follow it."""
        return self._http.their_state in (h11.IDLE, h11.SEND_BODY, h11.ERROR)

    @property
    def unread(self) -> int:
        """Bytes that were sent, or are to be, and that the client has not read."""
        return self.transport.get_write_buffer_size() + self._held_back

    def hold_back(self, size: int) -> None:
        """Counts ``size`` bytes that are ready but can't be written yet."""
        if size != self._held_back:
            self._held_back = size
            self._connections.check_unread()

    def start(self, status: int, headers: Sequence[Header], body: bytes, *, more: bool) -> None:
        """Sends status and headers, and the beginning of the body, or all of it."""
        if self.transport.is_closing():
            return
        sent = [(b"date", _date()), *headers]
        if not more and status != 204:  # RFC 9110, 8.6
            sent.append((b"content-length", b"%d" % len(body)))
        head = self._http.send(h11.Response(status_code=status, headers=sent, reason=_REASONS[status]))
        self._write(head, b"" if self._request.method == "HEAD" else body, more)

    def write(self, body: bytes, *, more: bool) -> None:
        """Sends more of the body."""
        if not self.transport.is_closing():
            self._write(b"", body, more)

    def _write(self, head: bytes, body: bytes, more: bool) -> None:
        http, parts = self._http, [head]
        if body:
            parts += http.send_with_data_passthrough(h11.Data(data=body)) or []
        if not more:
            parts.append(http.send(h11.EndOfMessage()))
        if len(body) <= SMALL:
            parts = [b"".join(parts)]
        for part in parts:
            if part:
                self.transport.write(part)
        if not more:
            self._end_response()

    def _end_response(self) -> None:
        http, self._response = self._http, None
        self._connections.has_asked(self)
        if self._closing or self.transport.is_closing():
            self.transport.close()
        elif http.their_state is h11.SEND_BODY:
            # Closed at once, the client might never read why its request was refused.
            self._expect(self._limits.linger, self.transport.close)
        elif http.our_state is h11.DONE and http.their_state is h11.DONE:
            http.start_next_cycle()
            self._expect(self._limits.keep_alive, self.transport.close)
            if http.trailing_data[0]:
                self._loop.call_soon(self._parse)
        else:
            self.transport.close()

    # Time limits

    def _expect(self, seconds: float, late: Callable[[], None]) -> None:
        """Calls ``late`` after so many seconds, unless the timer is cleared or something else is expected."""
        if self._timer.callback != late:
            self._timer.set(seconds, late)

    def _head_late(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_HEAD_LATE)
            self.transport.close()

    def _body_late(self) -> None:
        self._end_body()
        if self._response is not None:
            self._response.refuse(_BODY_LATE)


_dated = (0, b"")


def _date() -> bytes:
    """The value of the Date header (RFC 9110, 6.6.1)."""
    global _dated
    now = int(time.time())
    if _dated[0] != now:
        _dated = now, http_date(now)
    return _dated[1]


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def http_date(at: int) -> bytes:
    """The Unix time ``at`` as a date of HTTP (RFC 9110, 5.6.7). `email.utils` does the same, but importing it
    takes 6 ms of a start."""
    t = time.gmtime(at)
    day, month = _DAYS[t.tm_wday], _MONTHS[t.tm_mon - 1]
    return b"%b, %02d %b %04d %02d:%02d:%02d GMT" % (
        day.encode(),
        t.tm_mday,
        month.encode(),
        t.tm_year,
        t.tm_hour,
        t.tm_min,
        t.tm_sec,
    )
