"""The real server over HTTP behind a cassette: answers what wasn't recorded, and is recorded doing so.

The rules:

- A session of a client has a session of the server from the first request that isn't in the cassette. If the
  cassette answered the client's `initialize`, the server gets the same one first, which isn't recorded; the
  client keeps the session id that it knows.
- From then on what the server sends reaches the client: in the responses to its requests, and in the event
  stream that it has opened.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable

import httpx
from starlette.types import Message as AsgiMessage
from starlette.types import Receive, Scope, Send

from mcpzip.cassettes.cassette import Event
from mcpzip.cassettes.environment_secrets import header_secrets, known_secrets
from mcpzip.cassettes.http_observer import SESSION_ID, Body
from mcpzip.cassettes.tape import Tape
from mcpzip.model.errors import McpzipError
from mcpzip.model.limits import MESSAGE
from mcpzip.wire import INTERNAL_ERROR
from mcpzip_fakes.recording.http import Recorder, headers_of, http_client, raw_headers
from mcpzip_fakes.replay.asgi_exchange import Again, respond
from mcpzip_fakes.replay.messages import CANCELLED, Message, id_key, read
from mcpzip_fakes.replay.session import Happening, cancelled_id, error_line
from mcpzip_fakes.scenario import Replay

_PATH = "/mcp"
_OF_A_MESSAGE = ("mcp-method", "mcp-name", "content-length", "last-event-id")
"""Headers that say which message a request has, or how long it is."""
_SET_HERE = ("date", "server")
"""Headers that the HTTP server adds to each response."""
_HANDSHAKE = 30.0
"""Seconds that the server gets to answer the handshake."""


class RealServerError(McpzipError):
    """The real server can't be used. The text says why."""


class RealHttpServer:
    """The server at the URL of ``replay``."""

    def __init__(self, replay: Replay, tell: Callable[[str], None]) -> None:
        """tell: gets what the user is to be told."""
        self._replay, self._tell = replay, tell
        self._tape: Tape | None = None
        self._recorder: Recorder | None = None
        self._client: httpx.AsyncClient | None = None

    def is_elsewhere(self, scope: Scope) -> bool:
        """Whether a request is for another path than that of the messages, such as OAuth metadata."""
        return bool(scope["path"].rstrip("/") != _PATH)

    def recorder(self) -> Recorder:
        """What passes requests on to the server, and records them. Raises McpzipError if the cassette can't
        be written."""
        if self._recorder is None:
            replay = self._replay
            secrets = known_secrets(os.environ, replay.secret) | header_secrets(replay.headers)
            tape = Tape(replay.cassette, "http", secrets, replay.mask, self._tell)
            tape.begin(url=replay.url)
            self._tape, self._client = tape, http_client()
            self._recorder = Recorder(replay.url, replay.headers, tape, _PATH, self._client, sse=False)
        return self._recorder

    async def pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that belongs to no session."""
        recorder = self.recorder()
        recorder.origin = f"http://{dict(scope['headers']).get(b'host', b'').decode('latin-1')}"
        await recorder(scope, receive, send)

    async def close(self) -> None:
        """Write what was recorded, and close the connections."""
        if self._recorder is not None:
            self._recorder.close()
        if self._client is not None:
            await self._client.aclose()
        if self._tape is not None:
            await asyncio.to_thread(self._tape.close)

    def session(self) -> "RealHttpSession":
        """What there is of the server for one session of a client."""
        return RealHttpSession(self, self._tell)


class RealHttpSession:
    """A client's session with the server, begun or not. id: the server's session id, or "" without one."""

    def __init__(self, server: RealHttpServer, tell: Callable[[str], None]) -> None:
        self.id = ""
        self.begun = False
        self._server, self._tell = server, tell
        self._opening: Message | None = None
        self._initialized: Message | None = None
        self._pending: set[bytes] = set()
        self._questions: set[bytes] = set()
        self._beginning = asyncio.Lock()
        self._listener: tuple[Scope, Callable[[Happening], None]] | None = None
        self._listening: asyncio.Task[None] | None = None

    async def met(self, message: Message, scope: Scope) -> None:
        """The client sent ``message``, and the cassette answers it."""
        if message.method == "initialize":
            self._opening = message
        elif message.method == "notifications/initialized":
            self._initialized = message
            if self.begun:
                await self._tell_initialized(scope)

    def takes(self, message: Message) -> bool:
        """Whether a message that the cassette doesn't play is for the server: all but answers to questions it
        didn't ask, and cancellations of requests that it didn't get."""
        if message.kind == "response":
            return message.id_key in self._questions
        if message.kind == "notification":
            return self.begun and (
                message.method != CANCELLED or (cancelled_id(message) or b"") in self._pending
            )
        return True

    async def message(
        self,
        message: Message,
        scope: Scope,
        receive: Receive,
        send: Send,
        opened: Callable[[str], None] | None = None,
    ) -> None:
        """Pass on the POST of ``message``. opened: gets the session id when the server has accepted an
        `initialize`."""
        if message.kind == "request":
            self._pending.add(message.id_key)
        else:
            self._questions.discard(message.id_key)
        started = False

        async def noting(part: AsgiMessage) -> None:
            nonlocal started
            started = True
            await send(part)

        try:
            if opened is None:
                await self._begin(scope)
            else:
                self.begun = True
            await self._pass_on(scope, receive, noting, opened)
        except (McpzipError, httpx.HTTPError, TimeoutError) as error:
            if started:
                raise  # the HTTP server breaks the client's connection, as the real one did
            why = f"the real server can't be used: {error or type(error).__name__}"
            self._tell(why)
            body = error_line(message.id or b"null", INTERNAL_ERROR, why)
            await respond(send, 200, body, {"content-type": "application/json"})
        finally:
            self._pending.discard(message.id_key)

    async def without_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a GET or DELETE."""
        await self._pass_on(scope, receive, send, None)

    def listens(self, scope: Scope, hear: Callable[[Happening], None]) -> None:
        """The client has opened an event stream, which the cassette plays: ``hear`` gets what the server
        sends outside responses. scope: of the stream's request."""
        if self._listener is not None:
            self.stops_listening(self._listener[1])
        self._listener = (scope, hear)
        if self.begun:
            self._listen()

    def stops_listening(self, hear: Callable[[Happening], None]) -> None:
        """That event stream has ended."""
        if self._listener is not None and self._listener[1] == hear:
            self._listener = None
            if self._listening is not None:
                self._listening.cancel()
                self._listening = None

    async def end(self, scope: Scope) -> None:
        """The client has ended its session, which the cassette answered."""
        if self.begun and self.id:
            with contextlib.suppress(httpx.HTTPError):
                response = await self._server.recorder().send_unrecorded(self._own(scope), b"")
                await response.aclose()

    # The session with the server

    async def _begin(self, scope: Scope) -> None:
        """Make the handshake, if the cassette answered the client's. scope: of a POST of the client."""
        async with self._beginning:
            if self.begun:
                return
            if self._opening is not None:
                async with asyncio.timeout(_HANDSHAKE):
                    self.id = await self._initialize(self._opening, scope)
            self.begun = True
            if self._initialized is not None:
                await self._tell_initialized(scope)
            if self._listener is not None:
                await asyncio.wait((self._listen(),), timeout=_HANDSHAKE)

    async def _initialize(self, opening: Message, scope: Scope) -> str:
        """The id of the new session. Raises RealServerError if the server refuses."""
        bare = _with_headers(scope, {}, but=("mcp-protocol-version", SESSION_ID, *_OF_A_MESSAGE))
        response = await self._server.recorder().send_unrecorded(bare, opening.raw)
        try:
            body, reply, size = Body(dict(response.headers)), read(b""), 0
            async for part in response.aiter_raw():
                events = [read(event) for event, _ in body.feed(part)]
                reply = next((each for each in events if each.id_key == opening.id_key), reply)
                size += len(part)
                if reply.kind == "response" or size > MESSAGE:
                    break
            if body.whole:
                reply = read(body.whole)
        finally:
            await response.aclose()
        if response.status_code != 200 or reply.kind != "response" or reply.failed:
            raise RealServerError(f"it refused the handshake (HTTP status {response.status_code})")
        return str(response.headers.get(SESSION_ID, ""))

    async def _tell_initialized(self, scope: Scope) -> None:
        assert self._initialized is not None
        its = self._own(_with_headers(scope, {}, but=_OF_A_MESSAGE))
        response = await self._server.recorder().send_unrecorded(its, self._initialized.raw)
        await response.aclose()

    def _listen(self) -> asyncio.Future[None]:
        """Open an event stream of the server. Returns what is done when the server has answered."""
        assert self._listener is not None
        scope, hear = self._listener
        body, answered = Body(), asyncio.get_running_loop().create_future()

        async def send(message: AsgiMessage) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                body = Body(dict(headers_of(message["headers"])))
                answered.set_result(None)
            else:
                for data, fields in body.feed(message.get("body", b"")):
                    happening = Event(kind="send", after=0.0, data=data, fields=fields)
                    hear(Happening(event=happening, data=data))

        passing = self._pass_on(
            _with_headers(scope, {}, but=("last-event-id",)), Again(b"", _never), send, None
        )

        async def listen() -> None:
            try:
                with contextlib.suppress(httpx.HTTPError, McpzipError):
                    await passing
            finally:
                if not answered.done():
                    answered.set_result(None)

        self._listening = asyncio.get_running_loop().create_task(listen())
        return answered

    async def _pass_on(
        self, scope: Scope, receive: Receive, send: Send, opened: Callable[[str], None] | None
    ) -> None:
        client_id = dict(headers_of(scope["headers"])).get(SESSION_ID, "")
        body = Body()

        async def relay(message: AsgiMessage) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                headers = dict(headers_of(message["headers"]))
                body = Body(headers)
                if opened is not None and 200 <= message["status"] < 300:
                    self.id = headers.get(SESSION_ID, "")
                    opened(self.id)
                kept = [(name, value) for name, value in headers.items() if name not in _SET_HERE]
                if SESSION_ID in headers:
                    id = self.id if opened is not None else client_id
                    kept = [(name, id if name == SESSION_ID else value) for name, value in kept]
                message = {**message, "headers": raw_headers(kept)}
            else:
                for data, _ in body.feed(message.get("body", b"")):
                    heard = read(data)
                    if heard.kind == "request":
                        self._questions.add(id_key(heard.id))
            await send(message)

        own = self._own(scope) if opened is None else _with_headers(scope, {}, but=("accept-encoding",))
        await self._server.pass_on(own, receive, relay)

    def _own(self, scope: Scope) -> Scope:
        """A request of the client as one in the server's session, whose answer must not be compressed."""
        ours = {SESSION_ID: self.id} if self.id else {}
        return _with_headers(scope, ours, but=(SESSION_ID, "accept-encoding"))


def _with_headers(scope: Scope, headers: dict[str, str], *, but: tuple[str, ...]) -> Scope:
    """``scope`` as one of messages, with these headers, and without those named ``but``."""
    kept = [(name, value) for name, value in headers_of(scope["headers"]) if name not in but]
    whole = raw_headers([*kept, *headers.items()])
    return {**scope, "path": _PATH, "raw_path": _PATH.encode(), "headers": whole}


async def _never() -> AsgiMessage:
    """What a client sends that doesn't leave."""
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}
