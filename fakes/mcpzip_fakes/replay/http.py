"""A cassette as an HTTP server: the recorded responses, with their status, headers, bodies and events.

The rule: a request that was recorded in its era and transport gets the recorded response; any other one is
passed to the application ``other``, which knows what is in the cassette. `asgi.Gate` stands before this
application: it records the messages, and plays the faults of HTTP itself.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from mcpzip.cassettes.cassette import MASK, Cassette, Response
from mcpzip_fakes.asgi import FIRING, TRANSPORT
from mcpzip_fakes.engine import Note
from mcpzip_fakes.faults import NOTHING, Fault, Firing
from mcpzip_fakes.replay.asgi_exchange import Again, gone, raw, respond, whole_body
from mcpzip_fakes.replay.faulty_answers import changed
from mcpzip_fakes.replay.messages import Message as Recorded
from mcpzip_fakes.replay.messages import read
from mcpzip_fakes.replay.played import Played
from mcpzip_fakes.replay.run import Run
from mcpzip_fakes.replay.session import LAST_EVENT_ID, Happening
from mcpzip_fakes.replay.streams import HttpSession, event_text
from mcpzip_fakes.scenario import Scenario

if TYPE_CHECKING:
    from mcpzip_fakes.replay.real_http_server import RealHttpServer, RealHttpSession

_SESSION_ID = "mcp-session-id"
_OURS = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "date",
        "keep-alive",
        "server",
        "transfer-encoding",
    }
)
"""The headers that say how this server sends a response."""
_LAST = ("reply", "end")
_MASK_START = MASK.partition("{")[0]


class HttpPlayer:
    """The ASGI application around ``other``.

    doomed: by request id, the fault that breaks the reply (`asgi.Gate`).
    """

    def __init__(
        self,
        scenario: Scenario,
        cassette: Cassette,
        other: ASGIApp,
        run: int,
        note: Note,
        real: "RealHttpServer | None",
    ) -> None:
        """run: the number of this process on its record, from 1. note: records an event. real: answers what
        wasn't recorded."""
        self._other, self._note, self._real = other, note, real
        self._played = Played(scenario, cassette, "http")
        self._origin = cassette.url
        self._run = run - 1
        self._sessions: dict[str, HttpSession] = {}
        self._opening: HttpSession | None = None
        """The newest session while its `initialize` wasn't accepted."""
        self._elsewhere = False
        """Whether requests were passed on."""
        self._ids = {""}
        self.doomed: dict[object, Fault] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        if self._real is not None and self._real.is_elsewhere(scope):
            await self._real.pass_on(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        body = await whole_body(receive) if scope["method"] == "POST" else b""
        message = read(body) if scope["method"] == "POST" else None
        session = self._session(message, headers.get(_SESSION_ID, ""))
        if session is None:
            if headers.get(_SESSION_ID) and not self._elsewhere and self._played.eras.usable:
                await respond(send, 404, b"Session not found")
                return
            self._elsewhere = True
            await self._other(scope, Again(body, receive), send)
            return
        if message is None:
            exchange = _Exchange(self, session, scope, receive, send)
            await exchange.without_body(scope["method"], headers.get(LAST_EVENT_ID, ""))
        else:
            exchange = _Exchange(self, session, scope, Again(body, receive), send)
            await exchange.message(message, scope.get(FIRING, NOTHING))

    # Sessions

    def _session(self, message: Recorded | None, id: str) -> HttpSession | None:
        """The session that a request belongs to; None if no recorded one answers it."""
        if id:
            return self._sessions.get(id)
        if message is not None and not self._played.eras.has(message):
            return None
        if message is None and not self._played.eras.usable:
            return None
        if message is not None and message.method == "initialize":
            if self._opening is None:
                self._opening = self._begin()
            return self._opening
        if "" not in self._sessions:
            self._sessions[""] = self._begin()
        return self._sessions[""]

    def _begin(self) -> HttpSession:
        self._run += 1
        now = asyncio.get_running_loop().time()
        session = HttpSession(self._played.session(self._run, now), self._note)
        if self._real is not None:
            session.real = self._real.session()
            session.pass_beyond()
        return session

    def opened_elsewhere(self, session: HttpSession, id: str) -> None:
        """The real server has accepted the session's `initialize`, and gave it this id."""
        session.opened, session.id = True, id
        self._opening = None
        self._ids.add(id)
        self._sessions[id] = session

    def opened(self, session: HttpSession, response: Response) -> str:
        """The session's id in the response to `initialize`; "" if it has none."""
        recorded = response.headers.get(_SESSION_ID, "")
        if session.opened or not 200 <= response.status < 300:
            return session.id if recorded else ""
        session.opened = True
        self._opening = None
        if recorded and (recorded in self._ids or _MASK_START in recorded):
            recorded = secrets.token_hex(16)
        session.id = recorded
        self._ids.add(recorded)
        self._sessions[recorded] = session
        return recorded

    def ended(self, session: HttpSession) -> None:
        """The client ended the session."""
        session.close()
        self._sessions.pop(session.id, None)

    def location(self, recorded: str, scope: Scope) -> str:
        """The target of a recorded redirect: this server, if it was the recorded one."""
        there, origin = urlsplit(recorded), urlsplit(self._origin)
        if (there.scheme, there.netloc) != (origin.scheme, origin.netloc):
            return recorded
        query = f"?{there.query}" if there.query else ""
        return f"{there.path}{query}"


class _Exchange:
    """One HTTP request and its response."""

    def __init__(
        self, player: HttpPlayer, session: HttpSession, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._player, self._session = player, session
        self._scope, self._receive, self._send = scope, receive, send
        self._queue: asyncio.Queue[Happening] = asyncio.Queue()

    async def message(self, message: Recorded, firing: Firing) -> None:
        """Answer the POST of a message."""
        if firing.get("silence"):
            await gone(self._receive)
            return
        if firing.get("error"):
            await self._answer(changed(b"{}", message, firing), message, firing)
            return
        real = self._session.real
        if real is not None and message.kind == "response" and real.takes(message):
            await real.message(message, self._scope, self._receive, self._send)
            return
        run = self._session.receive(message, self._queue.put_nowait)
        try:
            if run is not None:
                if real is not None:
                    await real.met(message, self._scope)
                await self._play(run, message, firing)
            elif real is not None and self._is_beyond(message, real):
                self._doom(message, firing)
                await real.message(message, self._scope, self._receive, self._send, self._opened(message))
            elif message.kind == "request":
                await self._answer((await self._queue.get()).data, message, firing)
            else:
                await respond(self._send, 202, b"")
        finally:
            self._session.leave(message, run)

    def _is_beyond(self, message: Recorded, real: "RealHttpSession") -> bool:
        """Whether ``message``, which the cassette doesn't play, is for the real server."""
        if message.kind == "request":
            return self._session.beyond is message
        return real.takes(message)

    def _opened(self, message: Recorded) -> "Callable[[str], None] | None":
        """What is called when the real server has accepted ``message``, if that opens the session."""
        if message.method != "initialize":
            return None
        return lambda id: self._player.opened_elsewhere(self._session, id)

    async def without_body(self, verb: str, last_event: str) -> None:
        """Answer a GET or DELETE."""
        real = self._session.real
        begun = real is not None and real.begun
        run = self._session.request(verb, last_event, self._queue.put_nowait, exactly=begun)
        if verb == "GET" and run is not None:
            self._session.rest = self._queue.put_nowait
            if real is not None:
                real.listens(self._scope, self._queue.put_nowait)
        try:
            if real is not None and run is None and (begun or verb == "GET"):
                await real.without_body(self._scope, self._receive, self._send)
            elif run is not None:
                if verb == "DELETE" and real is not None:
                    await real.end(self._scope)
                await self._play(run, None, NOTHING)
            else:
                await respond(self._send, 200 if verb == "DELETE" else 405, b"")
        finally:
            self._session.leave(run)
            if self._session.rest == self._queue.put_nowait:
                self._session.rest = None
            if real is not None:
                real.stops_listening(self._queue.put_nowait)
            if verb == "DELETE":
                self._player.ended(self._session)

    async def _answer(self, body: bytes, message: Recorded, firing: Firing) -> None:
        """An answer that wasn't recorded."""
        self._doom(message, firing)
        await respond(self._send, 200, body, {"content-type": "application/json"})

    def _doom(self, message: Recorded, firing: Firing) -> None:
        """A fault that breaks the reply is played by the gate, which looks for the reply's id."""
        if broken := firing.get("crash") or firing.get("cut"):
            self._player.doomed[msgspec.json.decode(message.id)] = broken

    async def _play(self, run: Run, message: Recorded | None, firing: Firing) -> None:
        """Send the recorded response."""
        response = run.recorded.exchange.response
        if response is None:
            await self._break_off(run)
            return
        if message is not None:
            self._doom(message, firing)
        headers = self._headers(response, message)
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            start = {"type": "http.response.start", "status": response.status, "headers": raw(headers)}
            await self._send(start)
            await self._send({"type": "http.response.body", "body": b"", "more_body": True})
            await self._stream(run, message, firing)
            return
        body = b""
        if any(event.kind in _LAST for event in run.events):
            while (happening := await self._next()) is not None and happening.event.kind not in _LAST:
                pass
            if happening is None:
                return
            if happening.event.kind == "end":
                await self._half(response.status, headers, happening.data)
                return
            body = happening.data if message is None else changed(happening.data, message, firing)
        await respond(self._send, response.status, body, headers)

    async def _half(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        """Send the part of a body that came before its connection broke; the HTTP server breaks it too."""
        await self._send({"type": "http.response.start", "status": status, "headers": raw(headers)})
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    def _headers(self, response: Response, message: Recorded | None) -> dict[str, str]:
        headers = {name: value for name, value in response.headers.items() if name not in _OURS}
        if message is not None and message.method == "initialize":
            headers[_SESSION_ID] = self._player.opened(self._session, response)
        elif _SESSION_ID in headers:
            headers[_SESSION_ID] = self._session.id
        if "location" in headers:
            headers["location"] = self._player.location(headers["location"], self._scope)
        return {name: value for name, value in headers.items() if value}

    async def _break_off(self, run: Run) -> None:
        """There was no response: the connection was broken, or the client left."""
        if any(event.kind == "end" for event in run.events):
            await self._next()
            self._scope[TRANSPORT].abort()
        await gone(self._receive)

    async def _stream(self, run: Run, message: Recorded | None, firing: Firing) -> None:
        """Send the events until the stream ends, or the client has left."""
        while run.next is not None or not self._queue.empty() or not self._closes(run):
            happening = await self._next()
            if happening is None:
                return
            event, data = happening.event, happening.data
            if event.kind == "end":
                if event.cut:
                    return  # the HTTP server breaks the connection
                break
            if event.kind == "reply" and message is not None:
                data = changed(data, message, firing)
            body = event_text(event, data)
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            if happening.run is None and event.kind == "reply":  # an error instead of the answer
                break
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _closes(self, run: Run) -> bool:
        """Whether the server closed the stream after its last event."""
        return any(event.kind in _LAST for event in run.events)

    async def _next(self) -> Happening | None:
        """What comes next; None if the client has left before."""
        if not self._queue.empty():
            return self._queue.get_nowait()
        leaving = asyncio.ensure_future(gone(self._receive))
        coming = asyncio.ensure_future(self._queue.get())
        try:
            await asyncio.wait((leaving, coming), return_when=asyncio.FIRST_COMPLETED)
            return coming.result() if coming.done() else None
        finally:
            leaving.cancel()
            coming.cancel()
