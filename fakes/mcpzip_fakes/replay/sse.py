"""A cassette as a server of the older transport HTTP+SSE (2024-11-05 `basic/transports`).

The rule: one event stream is one session, and gets all messages of the server; what answers the POST of a
message is the recorded status. A client whose era wasn't recorded is passed to the application ``other``.
"""

import asyncio
import secrets
from urllib.parse import parse_qs

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from mcpzip.cassettes.cassette import Cassette, Response
from mcpzip_fakes.asgi import FIRING
from mcpzip_fakes.engine import Note
from mcpzip_fakes.faults import NOTHING, Fault, Firing
from mcpzip_fakes.replay.asgi_exchange import Again, gone, raw, respond, whole_body
from mcpzip_fakes.replay.faulty_answers import changed
from mcpzip_fakes.replay.messages import read
from mcpzip_fakes.replay.played import Played
from mcpzip_fakes.replay.run import Run
from mcpzip_fakes.replay.session import Happening, Session
from mcpzip_fakes.replay.streams import HttpSession, event_text
from mcpzip_fakes.scenario import Scenario

_MESSAGES = "/messages/"
_ENDPOINT = "event: endpoint"
_ACCEPTED = Response(status=202)


class SsePlayer:
    """The ASGI application around ``other``. doomed: see `http.HttpPlayer`."""

    def __init__(self, scenario: Scenario, cassette: Cassette, other: ASGIApp, run: int, note: Note) -> None:
        """run: the number of this process on its record, from 1. note: records an event."""
        self._other, self._note = other, note
        self._played = Played(scenario, cassette, "sse")
        self._run = run - 1
        self._streams: dict[str, _Stream] = {}
        self.doomed: dict[object, Fault] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        if scope["type"] != "http" or not self._played.eras.any:
            await self._other(scope, receive, send)
        elif scope["method"] == "GET":
            await self._listen(receive, send)
        else:
            (key,) = parse_qs(scope["query_string"].decode("latin-1")).get("session_id", [""])[:1]
            stream = self._streams.get(key)
            if stream is None:
                await self._other(scope, Again(await whole_body(receive), receive), send)
            else:
                await self._post(stream, await whole_body(receive), scope.get(FIRING, NOTHING), send)

    async def _listen(self, receive: Receive, send: Send) -> None:
        self._run += 1
        key = secrets.token_hex(16)
        now = asyncio.get_running_loop().time()
        session = self._played.session(self._run, now)
        stream = self._streams[key] = _Stream(session, self._note, f"{_MESSAGES}?session_id={key}")
        headers = {"content-type": "text/event-stream", "cache-control": "no-store"}
        leaving = asyncio.ensure_future(gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": raw(headers)})
            while True:
                coming = asyncio.ensure_future(stream.queue.get())
                await asyncio.wait((leaving, coming), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    return
                body = coming.result()
                if body is None:
                    return  # the HTTP server breaks the connection
                await send({"type": "http.response.body", "body": body, "more_body": bool(body)})
                if not body:
                    return
        finally:
            leaving.cancel()
            stream.session.close()
            del self._streams[key]

    async def _post(self, stream: "_Stream", body: bytes, firing: Firing, send: Send) -> None:
        message = read(body)
        if message.id:
            stream.firing[message.id_key] = firing
            if broken := firing.get("crash") or firing.get("cut"):
                self.doomed[msgspec.json.decode(message.id)] = broken
        run = stream.session.receive(message, None)
        if run is not None and firing.get("silence"):
            stream.session.stop(run)
        response = (run.recorded.exchange.response if run is not None else None) or _ACCEPTED
        await respond(send, response.status, _body_of(run) or b"Accepted")


class _Stream:
    """The event stream of one client. queue: the text of its events; b"" at its end, None if it breaks."""

    def __init__(self, session: Session, note: Note, endpoint: str) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.firing: dict[bytes, Firing] = {}
        self._endpoint = endpoint.encode()
        self.queue.put_nowait(b"event: endpoint\r\ndata: %b\r\n\r\n" % self._endpoint)
        self.session = HttpSession(session, note, rest=self._happens)
        self.session.request("GET", "", self._happens)

    def _happens(self, happening: Happening) -> None:
        event, message, data = happening.event, happening.message, happening.data
        if event.kind == "end":
            self.queue.put_nowait(None if event.cut else b"")
            return
        if _ENDPOINT in event.fields or (event.kind == "reply" and _is_body(happening.run, data)):
            return
        if message is not None:
            firing = self.firing.get(message.id_key, NOTHING)
            if firing.get("silence"):
                return
            if event.kind == "reply":
                data = changed(data, message, firing)
        self.queue.put_nowait(event_text(event, data))


def _is_body(run: Run | None, data: bytes) -> bool:
    """Whether a recorded answer is the body of the POST's response, and not on the stream."""
    response = run.recorded.exchange.response if run is not None else None
    return response is not None and (response.status >= 400 or read(data).kind == "other")


def _body_of(run: Run | None) -> bytes:
    """The recorded body of the response to a POST."""
    for event in run.recorded.exchange.events if run is not None else ():
        if event.kind == "reply" and _is_body(run, event.data):
            return event.data
    return b""
