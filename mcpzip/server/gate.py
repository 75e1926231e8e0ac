"""What stands between the HTTP server and the SDK's app.

The rule: who may not come in is told so before a byte of its body is taken, and a body is whole, in time and
of bounded size before anything is done with it. What the SDK answers goes out untouched, but for stand-ins
(`verbatim`).
"""

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcpzip.server import verbatim
from mcpzip.server.access import Access
from mcpzip.server.outgoing import Header, Outgoing
from mcpzip.server.verbatim import Received, Seal
from mcpzip.wire import INTERNAL_ERROR, INVALID_REQUEST, LEGACY_VERSIONS, MAX_FRAME, RpcError, is_json
from mcpzip.wire.envelope import peer_id

PATH = "/mcp"
RECEIVED = "mcpzip.received"
"""Where in the scope of a POST the message is, as it came (`verbatim.Received`)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may take of us. Sizes in bytes, times in seconds."""

    body: int = MAX_FRAME
    """A POSTed message: as long as a line over stdio may be."""
    body_time: float = 60.0
    """Until a body is there: a client on this machine needs milliseconds, 64 MiB over 10 Mbit/s 54 s."""
    head: int = 64 * 1024
    """The request line and headers: tokens and mirrored parameters are some hundred bytes each."""
    head_time: float = 20.0
    """Until the head of a request is there, from the connection's or its own first byte on."""
    keep_alive: float = 75.0
    """A connection without a request: longer than a reverse proxy keeps its own (nginx: 60)."""
    event: int = 1_000_000
    """An answer in an event stream: the SDK's clients take 2**20. A longer one goes as plain JSON where it
    still can, which is when nothing was said on the stream before it."""
    sessions: int = 1_000
    """Legacy sessions at once: each may have upstream connections of its own."""
    session_idle: float = 3_600.0
    """A session without a request or an open stream: clients are told 404 then and begin anew."""
    connections: int = 2_000
    """Open at once; a session has one for its stream and one for each of its calls."""
    backlog: int = 512
    """Connections that wait to be taken."""
    untold: int = 16 * 1024 * 1024
    """What is told to a client that doesn't read, per stream; past that it is told no more on it."""
    linger: float = 2.0
    """For what a client still sends after it was refused: closed at once, it might never read why."""


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    reason: str
    headers: tuple[Header, ...] = ()
    patient: bool = True
    """Whether what still arrives of the request is waited for."""


_SAID_OF = {
    400: "A POST carries Content-Type: application/json.",
    403: "Web pages of this origin are not let in; name it with --allow-origin.",
    421: "mcpzip is not reached by this Host; name it with --allow-host.",
}
"""What the SDK's checks of a request's head come to, by their HTTP status."""
_NO_MESSAGE = _Refusal(
    400,
    'The body is no JSON-RPC message: one object with "jsonrpc": "2.0" and a method, a result or an error.',
    patient=False,
)
_NO_SESSION = _Refusal(400, "There is no Mcp-Session-Id: begin with initialize.", patient=False)
_UNKNOWN_PATH = _Refusal(404, f"There is nothing here; mcpzip serves {PATH}.")
_NO_TOKEN = _Refusal(
    401,
    "A bearer token is required: send it as Authorization: Bearer TOKEN.",
    ((b"www-authenticate", b'Bearer realm="mcpzip"'),),
)
_WRONG_TOKEN = _Refusal(
    401,
    "This bearer token is not the one that is required.",
    ((b"www-authenticate", b'Bearer realm="mcpzip", error="invalid_token"'),),
)
_NO_ID = _Refusal(400, "An id is a string or an integer.", patient=False)
_SAME_ID = _Refusal(400, "Another request of this session is open under this id.", patient=False)
_TOO_SLOW = _Refusal(408, "The body of the request did not arrive in time.", patient=False)


class Gate:
    """The ASGI application around the SDK's ``app``.

    on_stream: is told the session's id when the stream of a session opens (True) and when it ends (False).
    warn: is told what went wrong on our side.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        seal: Seal,
        *,
        limits: Limits,
        on_stream: Callable[[str, bool], None],
        warn: Callable[[str], None],
    ) -> None:
        self._app, self._token, self._seal = app, access.token, seal
        self._pages = {origin.encode() for origin in access.pages}
        self._limits, self._on_stream, self._warn = limits, on_stream, warn
        self._security = TransportSecurityMiddleware(
            TransportSecuritySettings(allowed_hosts=list(access.hosts), allowed_origins=list(access.origins))
        )
        self._open: dict[tuple[bytes, bytes], tuple[Received, asyncio.Event]] = {}
        self._posts: set[asyncio.Task[object]] = set()
        self._too_large = _Refusal(413, f"The body is larger than {limits.body:,} bytes.")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        if scope["type"] != "http":  # neither websockets nor lifespan are offered
            return
        page = self._page(scope)
        outgoing = Outgoing(send, self._seal, self._limits.event, _readable_by(page) if page else ())
        try:
            if page and scope["method"] == "OPTIONS" and scope["path"] == PATH:
                await outgoing.plain(_allowed(_header(scope, b"access-control-request-headers")))
                await outgoing.plain({"type": "http.response.body", "body": b""})
            else:
                await self._pass(scope, receive, outgoing)
        except Exception as defect:
            self._warn(f"a request over HTTP failed: {type(defect).__name__}: {defect}")
            if not outgoing.started:
                failure = _Refusal(500, f"mcpzip failed: {type(defect).__name__}.")
                await self._refuse(failure, receive, outgoing.plain, INTERNAL_ERROR)

    def _page(self, scope: Scope) -> bytes | None:
        """The origin of a web page that may read what we answer; None for any other."""
        origin = _header(scope, b"origin")
        return origin if origin and origin.lower() in self._pages else None

    async def settle(self, patience: float) -> None:
        """Returns once every POST is answered, after ``patience`` seconds at the latest."""
        if self._posts:
            await asyncio.wait(list(self._posts), timeout=patience)

    async def _pass(self, scope: Scope, receive: Receive, outgoing: Outgoing) -> None:
        refusal = await self._refusal(scope)
        if refusal is not None:
            await self._refuse(refusal, receive, outgoing.plain)
            return
        scope["headers"] = [header for header in scope["headers"] if header[0] != b"authorization"]
        session = _header(scope, b"mcp-session-id")
        if scope["method"] == "POST":
            task = asyncio.current_task()
            assert task is not None
            self._posts.add(task)
            try:
                await self._post(session, scope, receive, outgoing)
            finally:
                self._posts.discard(task)
        elif scope["method"] == "GET" and session is not None:
            await self._stream(session.decode("latin-1"), scope, receive, outgoing)
        else:
            await self._app(scope, receive, outgoing)

    async def _post(self, session: bytes | None, scope: Scope, receive: Receive, outgoing: Outgoing) -> None:
        body = await self._body(receive)
        if body is None:
            return  # its sender is gone
        if isinstance(body, _Refusal):
            await self._refuse(body, receive, outgoing.plain)
            return
        version = _header(scope, b"mcp-protocol-version")
        legacy = version is None or version.decode("latin-1") in LEGACY_VERSIONS
        given, received = self._seal.received(body, legacy=legacy)
        scope[RECEIVED] = outgoing.received = received
        outgoing.may_change = legacy
        if legacy and received is None and given is body and _is_json(body):
            await self._refuse(_NO_MESSAGE, receive, outgoing.plain)
            return
        if legacy and session is None and received is not None and received.method != "initialize":
            await self._refuse(_NO_SESSION, receive, outgoing.plain)
            return
        if received and received.id and peer_id(received.id) is None:
            await self._refuse(_NO_ID, receive, outgoing.plain)  # the SDK takes it for a notification
            return
        # Within a session the SDK tells requests by their ids, and 7 is "7" to it.
        key = (session, received.id.strip(b'"')) if legacy and session and received and received.id else None
        if key is None or received is None:
            await self._app(scope, _Replay(given, receive), outgoing)
            return
        while earlier := self._open.get(key):
            if not earlier[0].answer:
                await self._refuse(_SAME_ID, receive, outgoing.plain)
                return
            await earlier[1].wait()  # it is answered; what the SDK kept for it is about to go
        ended = asyncio.Event()
        self._open[key] = received, ended
        try:
            await self._app(scope, _Replay(given, receive), outgoing)
        finally:
            if received.running:  # a legacy client that hangs up hasn't cancelled
                received.after = partial(self._free, key)
            else:
                self._free(key)

    def _free(self, key: tuple[bytes, bytes]) -> None:
        _, ended = self._open.pop(key)
        ended.set()

    async def _stream(self, session: str, scope: Scope, receive: Receive, outgoing: Outgoing) -> None:
        outgoing.on_stream = lambda: self._on_stream(session, True)
        try:
            await self._app(scope, receive, outgoing)
        finally:
            if outgoing.streams:
                self._on_stream(session, False)

    async def _refusal(self, scope: Scope) -> _Refusal | None:
        """Why this request is not let in, as far as its head tells."""
        if scope["path"] != PATH:
            return _UNKNOWN_PATH
        lower = [(name, value.lower()) for name, value in scope["headers"]]
        request = Request({**scope, "headers": lower})
        # Names of hosts are the same in any case (RFC 9110, 4.2.3); the SDK compares letters.
        refused = await self._security.validate_request(request, is_post=scope["method"] == "POST")
        if refused is not None:
            status = refused.status_code
            return _Refusal(status, _SAID_OF.get(status) or bytes(refused.body).decode())
        return self._unauthorized(scope) or self._declared_too_large(scope)

    def _unauthorized(self, scope: Scope) -> _Refusal | None:
        if self._token is None:
            return None
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            return _NO_TOKEN
        scheme, _, token = given[0].partition(b" ")
        right = hmac.compare_digest(token.strip(), self._token)
        return None if right and scheme.lower() == b"bearer" and len(given) == 1 else _WRONG_TOKEN

    def _declared_too_large(self, scope: Scope) -> _Refusal | None:
        declared = _header(scope, b"content-length") or b"0"
        return self._too_large if declared.isdigit() and int(declared) > self._limits.body else None

    async def _body(self, receive: Receive) -> bytes | _Refusal | None:
        """The whole body; None when its sender left."""
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_time):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    pieces.append(message.get("body", b""))
                    size += len(pieces[-1])
                    if size > self._limits.body:
                        return self._too_large
                    if not message.get("more_body", False):
                        return b"".join(pieces)
        except TimeoutError:
            return _TOO_SLOW

    async def _refuse(
        self, refusal: _Refusal, receive: Receive, send: Send, code: int = INVALID_REQUEST
    ) -> None:
        body = verbatim.error(b"null", RpcError(code, refusal.reason))
        headers: list[Header] = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),  # what is left of the request is not to be taken for another
            *refusal.headers,
        ]
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        if refusal.patient:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await self._discard(receive)
            body = b""
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _discard(self, receive: Receive) -> None:
        try:
            async with asyncio.timeout(self._limits.linger):
                while (await receive()).get("more_body", False):
                    pass
        except TimeoutError:
            pass  # it was told; the connection goes


class _Replay:
    """``receive`` as it was before the body was taken."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _is_json(body: bytes) -> bool:
    try:
        return is_json(body)
    except RecursionError:
        return False  # for all that the SDK can tell


def _readable_by(page: bytes) -> tuple[Header, ...]:
    return (
        (b"access-control-allow-origin", page),
        (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
        (b"vary", b"origin"),
    )


def _allowed(headers: bytes | None) -> Message:
    """The beginning of the answer to a page's question whether it may ask (Fetch standard, "CORS-preflight").
    It asks before it sends its token, and learns nothing but that it may.
    """
    told = [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", headers or b"content-type"),
        (b"access-control-max-age", b"600"),
    ]
    return {"type": "http.response.start", "status": 204, "headers": told}


def _header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)
