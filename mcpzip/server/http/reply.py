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
from mcpzip.server.http.track import PING, UNTRACKED, Track, Untracked, event
from mcpzip.wire import INVALID_REQUEST, RpcError, quote

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
"""See ASGI 3.0, "HTTP & WebSocket ASGI Message Format"."""
Header = tuple[bytes, bytes]

COMING = "mcpzip.coming"
"""How many bytes of a body follow the head of a response: of our own making, and looked at by the gate."""

_JSON = (b"content-type", b"application/json")
_EVENTS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_PING = b": ping\r\n\r\n"
_AROUND = 64
"""Bytes that an event has around its message, and some."""


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
        await self._begin(status, (_JSON, (b"content-length", b"%d" % len(body)), *headers), len(body))
        await self._body(body, more=more)

    async def refuse(self, refusal: Refusal, receive: Receive, linger: float) -> None:
        """Says why, and takes what still arrives for ``linger`` seconds, so that it is read."""
        self.unless_failed.clear()
        body = error_message(RpcError(refusal.code, refusal.reason))
        # What is left of the request is not to be taken for another.
        close = ((b"connection", b"close"),) if refusal.unread else ()
        waits = refusal.unread and refusal.patient
        await self.json(body, refusal.status, *close, *refusal.headers, more=waits)
        if waits:
            await _discard(receive, linger)
            await self.end()

    async def stream(self, size: int = 0) -> None:
        """Begins an event stream, unless it has. size: bytes of what is said on it first."""
        if not self.streams:
            self.streams = True
            await self._begin(200, _EVENTS, size)

    async def deliver(
        self,
        outbox: Outbox,
        receive: Receive,
        event_up_to: int = -1,
        track: Track | Untracked = UNTRACKED,
    ) -> bool:
        """Says what comes into ``outbox``, up to its answer or end; False when the client left before, or
        resumed the stream on another response.

        event_up_to: the bytes of an answer that is an event though nothing was said before it. track: where
        the events have ids.
        """
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(outbox.stir)
        if outbox.reader is None:
            outbox.read_by(self)
        try:
            while not gone.done() and outbox.reader is self:
                if lines := outbox.take():
                    await self._say(b"".join(map(track.event, lines)), track)
                elif outbox.answer is not None:
                    await self._answer(outbox.answer, event_up_to, track)
                    return True
                elif outbox.closed:
                    await self.stream()
                    await self.end()
                    return True
                elif await outbox.stirred(PING if self.streams else track.patience):
                    pass
                else:
                    begins = isinstance(track, Track) and not self.streams  # which says something by itself
                    await self._say(b"" if begins else _PING, track)
            if not gone.done() and self.streams:
                await self.end()
            return False
        finally:
            gone.cancel()
            if outbox.reader is self:
                outbox.reader = None

    async def say_again(self, track: Track, number: int, instead: bytes) -> None:
        """Begins an event stream with what was said on ``track`` behind event ``number``. instead: what is
        said for an answer that isn't kept.
        """
        kept = track.after(number)
        lost = track.answer_lost
        await self.stream()
        await self._body(track.primed(number), more=True)
        for each in kept:
            await self._body(each, more=True)
        if lost:
            await self._body(event(instead), more=True)

    async def end(self) -> None:
        """Nothing more comes."""
        await self._body(b"")

    async def _answer(self, answer: Answer, event_up_to: int, track: Track | Untracked) -> None:
        line = answer.line
        if answer.failed:
            self.unless_failed.clear()
        fits = len(line) <= event_up_to and len(event(line)) <= event_up_to + _AROUND
        if self.streams or fits:
            await self._say(track.event(line, last=True), track, more=False)
        else:
            await self.json(line, answer.status)

    async def _say(self, said: bytes, track: Track | Untracked, *, more: bool = True) -> None:
        """Sends these events, behind the beginning of the stream if they are the first."""
        if not self.streams:
            said = track.opening(whole=not more) + said
        await self.stream(len(said))
        await self._body(said, more=more)

    async def _begin(self, status: int, headers: Sequence[Header], size: int = 0) -> None:
        self.began = True
        told = [*headers, *self.headers, *self.unless_failed]
        await self._send({"type": "http.response.start", "status": status, "headers": told, COMING: size})

    async def _body(self, body: bytes, *, more: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


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
