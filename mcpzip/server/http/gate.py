"""Who may come in over HTTP.

The rule: who may not is told so before a byte of its body is taken, and a body is whole, in time and of
bounded size before anything is done with it.
"""

import asyncio
import hmac
from collections.abc import Callable

from mcpzip.server.http.access import Access
from mcpzip.server.http.downstream import Downstream
from mcpzip.server.http.head import JSON, Arrival, Head, Scope
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.reply import COMING, Header, Message, Receive, Refusal, Reply, Send
from mcpzip.wire import INTERNAL_ERROR

PATH = "/mcp"

_NO_JSON = Refusal(400, f"A POST carries Content-Type: {JSON}.")
_PAGE = Refusal(403, "Web pages of this origin are not let in; name it with --allow-origin.")
_HOST = Refusal(421, "mcpzip is not reached by this Host; name it with --allow-host.")
_UNKNOWN_PATH = Refusal(404, f"There is nothing here; mcpzip serves {PATH}.")
_NO_TOKEN = Refusal(
    401,
    "A bearer token is required: send it as Authorization: Bearer TOKEN.",
    ((b"www-authenticate", b'Bearer realm="mcpzip"'),),
)
_WRONG_TOKEN = Refusal(
    401,
    "This bearer token is not the one that is required.",
    ((b"www-authenticate", b'Bearer realm="mcpzip", error="invalid_token"'),),
)
# Whoever passed it on may have gone by the other, and have let in what is inside (RFC 9112, 6.3).
_TWO_LENGTHS = Refusal(400, "A request has a Content-Length or a Transfer-Encoding, not both.")
_CROWDED = Refusal(503, "There are too many connections; try again later.", code=INTERNAL_ERROR)
_FULL = Refusal(503, "Too much is being sent already; try again later.", code=INTERNAL_ERROR)
_TOO_SLOW = Refusal(408, "The body of the request did not arrive in time.", patient=False)


class Gate:
    """The ASGI application: who is let in goes on to ``downstream``. warn: is told what fails of ours."""

    def __init__(
        self, downstream: Downstream, access: Access, limits: Limits, warn: Callable[[str], None]
    ) -> None:
        self._downstream, self._access, self._limits, self._warn = downstream, access, limits, warn
        self._held = 0  # bytes of bodies that aren't whole yet, but for small ones
        self._posts: set[asyncio.Task[object]] = set()
        self._too_large = Refusal(413, f"The body is larger than {limits.body:,} bytes.")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        if scope["type"] != "http":  # neither websockets nor lifespan are offered
            return
        head = Head(scope)
        page = self._page(head)
        reply = Reply(_counted(send, head.arrival), _readable_by(page) if page else ())
        try:
            if page and head.verb == "OPTIONS" and head.path == PATH and not head.has_body:
                await reply.empty(204, *_allowed(head.text("Access-Control-Request-Headers")))
            elif refusal := self._refusal(head):
                await reply.refuse(refusal, receive, self._limits.linger)
            else:
                head.arrival.let_in()
                await self._pass(head, reply, receive)
        except Exception as defect:
            self._warn(f"a request over HTTP failed: {type(defect).__name__}: {defect}")
            if not reply.began:
                failure = Refusal(500, f"mcpzip failed: {type(defect).__name__}.", code=INTERNAL_ERROR)
                await reply.refuse(failure, receive, self._limits.linger)

    async def turn_away(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI 3.0, for a connection that is one too many."""
        await Reply(send).refuse(_CROWDED, receive, self._limits.linger)

    def _page(self, head: Head) -> str | None:
        """The origin of a web page that may read what we answer; None for any other."""
        origin = head.text("Origin") if head.repeated is None else None
        return origin if origin and origin.lower() in self._access.pages else None

    async def settle(self, patience: float) -> None:
        """Returns once every POST is answered, after ``patience`` seconds at the latest."""
        if self._posts:
            await asyncio.wait(list(self._posts), timeout=patience)

    async def _pass(self, head: Head, reply: Reply, receive: Receive) -> None:
        if head.verb == "GET":
            await self._downstream.get(head, reply, receive)
        elif head.verb == "DELETE":
            await self._downstream.delete(head, reply, receive)
        else:
            task = asyncio.current_task()
            assert task is not None
            self._posts.add(task)
            try:
                await self._post(head, reply, receive)
            finally:
                self._posts.discard(task)

    async def _post(self, head: Head, reply: Reply, receive: Receive) -> None:
        body = await self._body(head, receive)
        if isinstance(body, Refusal):
            await reply.refuse(body, receive, self._limits.linger)
        elif body is not None:  # its sender isn't gone
            await self._downstream.post(head, body, reply, receive)

    def _refusal(self, head: Head) -> Refusal | None:
        """Why this request is not let in, as far as its head tells."""
        if head.path != PATH:
            return _UNKNOWN_PATH
        if head.all("Transfer-Encoding") and head.all("Content-Length"):
            return _TWO_LENGTHS
        if repeated := head.repeated:
            return Refusal(400, f"A request has one {repeated} header, not several.")
        if head.verb == "POST" and not head.carries_json:
            return _NO_JSON
        if not self._access.knows_host(head.host):
            return _HOST
        if (origin := head.text("Origin")) and not self._access.lets_in(origin):
            return _PAGE
        return self._unauthorized(head) or self._downstream.refusal(head) or self._declared_too_large(head)

    def _unauthorized(self, head: Head) -> Refusal | None:
        if self._access.token is None:
            return None
        given = head.all("Authorization")
        if not given:
            return _NO_TOKEN
        scheme, _, token = given[0].encode("latin-1").partition(b" ")
        right = hmac.compare_digest(token.strip(), self._access.token)
        return None if right and scheme.lower() == b"bearer" and len(given) == 1 else _WRONG_TOKEN

    def _declared_too_large(self, head: Head) -> Refusal | None:
        declared = head.text("Content-Length") or "0"
        return self._too_large if declared.isdecimal() and int(declared) > self._limits.body else None

    async def _body(self, head: Head, receive: Receive) -> bytes | Refusal | None:
        """The whole body; None when its sender left."""
        body = bytearray()
        held = 0  # of what all bodies may have together
        try:
            async with asyncio.timeout(self._limits.body_time):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    body += message.get("body", b"")
                    if max(len(body), head.arrival.raw) > self._limits.body:
                        return self._too_large
                    if len(body) > self._limits.small_body:
                        self._held += len(body) - held
                        held = len(body)
                        if self._held > self._limits.bodies:
                            return _FULL
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            return _TOO_SLOW
        finally:
            self._held -= held


def _counted(send: Send, arrival: Arrival) -> Send:
    """``send``, whose connection knows what waits in it for a client that doesn't read."""

    async def counted(message: Message) -> None:
        blocked = arrival.blocked(message.pop(COMING, 0) or len(message.get("body", b"")))
        if blocked is not None:
            await blocked
        await send(message)

    return counted


def _readable_by(page: str) -> tuple[Header, ...]:
    return (
        (b"access-control-allow-origin", page.encode("latin-1")),
        (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
        (b"vary", b"origin"),
    )


def _allowed(headers: str | None) -> tuple[Header, ...]:
    """The headers of the answer to a page's question whether it may ask (Fetch standard, "CORS-preflight").
    It asks before it sends its token, and learns nothing but that it may.
    """
    return (
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", (headers or "content-type").encode("latin-1")),
        (b"access-control-max-age", b"600"),
    )
