"""What goes out on one HTTP response.

The rule: what it will be is left open as long as can be. A stream is begun by the first message before the
answer, or by the first ping of a silence that a proxy in between might take for the end; an answer before
which nothing was said is plain JSON, with the status that its error calls for, or an event where that is what
clients are used to.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpzip.server.http.outbox import Answer, Outbox
from mcpzip.wire import INVALID_REQUEST, RpcError, quote

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
"""See ASGI 3.0, "HTTP & WebSocket ASGI Message Format"."""
Header = tuple[bytes, bytes]

PING = 15.0
"""Seconds of silence on a stream after which it is pinged: proxies close one that is idle for 30 and more."""

_JSON = (b"content-type", b"application/json")
_EVENTS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_AROUND = 64
"""Bytes that an event has around its message, and some."""
_LINE_ENDS = {"\u0085".encode(): rb"\u0085", "\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request isn't served, in HTTP's terms and JSON-RPC's.

    unread: whether its body wasn't taken, so that the connection can't go on. patient: whether what still
    arrives of it is waited for.
    """

    status: int
    reason: str
    headers: tuple[Header, ...] = ()
    code: int = INVALID_REQUEST
    unread: bool = True
    patient: bool = True


class Reply:
    """A response. began: whether anything was sent; streams: whether it is an event stream; headers: what it
    has besides its own; unless_failed: what it has besides those, but not with an error and nothing else.
    """

    def __init__(self, send: Send, headers: Sequence[Header] = ()) -> None:
        self._send = send
        self.headers: list[Header] = list(headers)
        self.unless_failed: list[Header] = []
        self.began = self.streams = False

    async def empty(self, status: int, *headers: Header) -> None:
        """The whole response, without a body."""
        size = () if status == 204 else ((b"content-length", b"0"),)
        await self._begin(status, (*size, *headers))
        await self._body(b"")

    async def json(self, body: bytes, status: int = 200, *headers: Header, more: bool = False) -> None:
        """The response with this body, a line; with ``more`` it is still to be ended by `end`."""
        body = body.removesuffix(b"\n")
        await self._begin(status, (_JSON, (b"content-length", b"%d" % len(body)), *headers))
        await self._body(body, more=more)

    async def refuse(self, refusal: Refusal, receive: Receive, linger: float) -> None:
        """Says why, and takes what still arrives for ``linger`` seconds, so that it is read."""
        body = error_message(RpcError(refusal.code, refusal.reason))
        # What is left of the request is not to be taken for another.
        close = ((b"connection", b"close"),) if refusal.unread else ()
        waits = refusal.unread and refusal.patient
        await self.json(body, refusal.status, *close, *refusal.headers, more=waits)
        if waits:
            await _discard(receive, linger)
            await self.end()

    async def stream(self) -> None:
        """Begins an event stream, unless it has."""
        if not self.streams:
            self.streams = True
            await self._begin(200, _EVENTS)

    async def deliver(self, outbox: Outbox, receive: Receive, event_up_to: int = -1) -> bool:
        """Says what comes into ``outbox``, up to its answer or end; False when the client left before.

        event_up_to: the bytes of an answer that is an event though nothing was said before it.
        """
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(outbox.stir)
        try:
            while not gone.done():
                if lines := outbox.take():
                    await self.stream()
                    await self._body(b"".join(map(event, lines)), more=True)
                elif outbox.answer is not None:
                    await self._answer(outbox.answer, event_up_to)
                    return True
                elif outbox.closed:
                    await self.stream()
                    await self.end()
                    return True
                elif not await outbox.stirred(PING):
                    await self.stream()
                    await self._body(b": ping\r\n\r\n", more=True)
            return False
        finally:
            gone.cancel()

    async def end(self) -> None:
        """Nothing more comes."""
        await self._body(b"")

    async def _answer(self, answer: Answer, event_up_to: int) -> None:
        if answer.failed:
            self.unless_failed.clear()
        if self.streams or len(answer.line) <= event_up_to:
            said = event(answer.line)
            if self.streams or len(said) <= event_up_to + _AROUND:
                await self.stream()
                await self._body(said)
                return
        await self.json(answer.line, answer.status)

    async def _begin(self, status: int, headers: Sequence[Header]) -> None:
        self.began = True
        told = [*headers, *self.headers, *self.unless_failed]
        await self._send({"type": "http.response.start", "status": status, "headers": told})

    async def _body(self, body: bytes, *, more: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def event(line: bytes) -> bytes:
    """A message as a server-sent event.

    Those characters are escaped that some clients take for the end of a line (httpx does): they can only
    stand in strings.
    """
    for character, escaped in _LINE_ENDS.items():
        if character in line:
            line = line.replace(character, escaped)
    return b"event: message\r\ndata: %b\r\n\r\n" % line.removesuffix(b"\n")


def error_message(error: RpcError, id: bytes = b"null") -> bytes:
    """The message that answers request ``id`` with ``error``."""
    data = b"" if error.data is None else b',"data":%b' % error.data
    more = b"" if error.more is None else b",%b" % error.more[1:-1]
    told = b'{"code":%d,"message":%b%b%b}' % (error.code, quote(error.message), data, more)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, told)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _discard(receive: Receive, linger: float) -> None:
    try:
        async with asyncio.timeout(linger):
            while (await receive()).get("more_body", False):
                pass
    except TimeoutError:
        pass  # it was told; the connection goes
