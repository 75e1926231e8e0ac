"""Streamable HTTP, as an ASGI application.

The rule: a request is answered on its own exchange, by one JSON message or, when anything is said before the
answer, by a stream of events. A legacy client has a session and may keep a stream open for the rest; a modern
one has neither, and cancels a request by disconnecting. Only local pages and programs are accepted.

Specification: 2025-11-25 and 2026-07-28, `basic/transports/streamable-http`.
"""

import asyncio
import secrets

from mcpzip.wire import (
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    PARSE_ERROR,
    Era,
    is_json,
    read_opening,
)
from mcpzip_conformance.mutants.relay.exchange import (
    EVENTS,
    JSON,
    Headers,
    Receive,
    Refusal,
    Scope,
    Send,
    agrees,
    body_of,
    encoded,
    reply,
    status_of,
)
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.opening import Opening
from mcpzip_conformance.mutants.relay.session import Config, Servers, Session

PATH = "/mcp"


Line = tuple[bytes, bool]
"""A message, and whether it is the last of its exchange."""


class HttpSession:
    """One client's session and its open exchanges. A line goes to the exchange that it belongs to, otherwise
    to the client's own stream, once that is open. id: the session id."""

    def __init__(self, config: Config, session: type[Session], shared: Servers | None = None) -> None:
        self.id = secrets.token_hex(16)
        self.session = session(config, self.write, shared)
        self.exchanges: dict[bytes, asyncio.Queue[Line]] = {}
        self.stream: asyncio.Queue[Line] = asyncio.Queue()
        self.streaming = False

    def write(self, line: bytes, about: bytes | None, last: bool) -> None:
        """See `Write`."""
        exchange = self.exchanges.get(about) if about is not None else None
        if exchange is not None:
            exchange.put_nowait((line, last))
        elif line:
            self.stream.put_nowait((line, False))


class Web:
    """The ASGI application. session: the class of a client's session; address: where it listens; drains:
    whether calls under way may end when it does."""

    address = "127.0.0.1"
    drains = False
    patience: float = 8.0
    """Seconds that calls under way get then."""

    def __init__(self, config: Config, session: type[Session]) -> None:
        self.config, self.session = config, session
        self.sessions: dict[str, HttpSession] = {}
        self._shared: dict[bytes, Servers] = {}
        """The servers of modern clients, who have no sessions, by what these can be asked."""

    def drain(self) -> None:
        """End what nobody waits for: no new request comes."""

    async def end(self) -> None:
        """End every session."""
        ends = [client.session.end() for client in self.sessions.values()]
        await asyncio.gather(*ends, *(servers.end() for servers in self._shared.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        headers = {key.decode().lower(): value.decode("latin-1") for key, value in scope["headers"]}
        try:
            if scope["path"] != PATH:
                raise Refusal(404, "There is nothing here; MCP is at /mcp.")
            self.check_access(scope, headers)
            match scope["method"]:
                case "POST":
                    await self.post(headers, await body_of(receive), receive, send)
                case "GET" if headers.get("mcp-protocol-version") not in MODERN_VERSIONS:
                    await self.get(headers, receive, send)
                case "DELETE" if headers.get("mcp-protocol-version") not in MODERN_VERSIONS:
                    await self.delete(headers, send)
                case _:
                    raise Refusal(405, "Only POST is taken here.", headers={"allow": "POST"})
        except Refusal as refusal:
            await reply(send, refusal.status, refusal.body, {"content-type": JSON, **refusal.headers})

    def check_access(self, scope: Scope, headers: Headers) -> None:
        """Raises Refusal for a Host that isn't ours, and for an Origin that isn't local."""
        at = scope["server"]
        names = {f"{name}:{at[1]}" for name in ("127.0.0.1", "localhost", "[::1]")}
        if headers.get("host") not in names:
            raise Refusal(421, "This server is not the one you ask for.")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] not in names:
            raise Refusal(403, "Pages of other origins are not let in.")

    # Methods of HTTP

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        """Handle a POST: one message."""
        if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise Refusal(415, "A message is application/json.")
        if not is_json(body):
            raise Refusal(400, "The body is not JSON.", PARSE_ERROR)
        if not body.lstrip().startswith(b"{"):
            raise Refusal(400, "The body is not one message.")
        message = members(body)
        method = text(message.get("method"))
        opened = read_opening(method, message.get("params")) if method else None
        modern = opened is not None and opened.era is Era.MODERN
        if modern or headers.get("mcp-protocol-version") in MODERN_VERSIONS:
            agrees(headers, method, message, (opened.version if opened else None) or "")
            client = self.stateless_session(message)
        else:
            client = self.find_session(headers) if method != "initialize" else self.new_session()
        line = body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        if not method or "id" not in message:
            client.session.received(line)
            await reply(send, 202)
        else:
            await self.exchange(client, message["id"], line, modern, receive, send)

    async def get(self, headers: Headers, receive: Receive, send: Send) -> None:
        """Handle a GET: the stream for messages that belong to no request."""
        client = self.find_session(headers)
        if EVENTS not in headers.get("accept", ""):
            raise Refusal(406, "The stream is text/event-stream.")
        if client.streaming:
            raise Refusal(409, "There is a stream already.")
        await body_of(receive)  # it has none; what comes next is that the client hangs up
        client.streaming = True
        try:
            await self.send_stream(client, client.stream, [], receive, send)
        finally:
            client.streaming = False

    async def delete(self, headers: Headers, send: Send) -> None:
        """Handle a DELETE: the end of a session."""
        client = self.find_session(headers)
        del self.sessions[client.id]
        await reply(send, 204)
        await client.session.end()

    # Sessions

    def new_session(self) -> HttpSession:
        """Create a session."""
        client = HttpSession(self.config, self.session)
        self.sessions[client.id] = client
        return client

    def find_session(self, headers: Headers) -> HttpSession:
        """The session of a request. Raises Refusal if there is none."""
        id = headers.get("mcp-session-id")
        if id is None:
            raise Refusal(400, "A request has the Mcp-Session-Id that initialize was answered with.")
        if id not in self.sessions:
            raise Refusal(404, "There is no such session; initialize again.")
        if headers.get("mcp-protocol-version", LEGACY_VERSIONS[-1]) not in LEGACY_VERSIONS:
            raise Refusal(400, "This MCP-Protocol-Version is not known here.")
        return self.sessions[id]

    def stateless_session(self, message: dict[str, bytes]) -> HttpSession:
        """The session of one modern request. Requests with the same capabilities share the servers."""
        opening = Opening(True, message.get("params", b"{}"), None)
        if opening.capabilities not in self._shared:
            self._shared[opening.capabilities] = Servers(self.config, opening)
            self._shared[opening.capabilities].start()
        return HttpSession(self.config, self.session, self._shared[opening.capabilities])

    # Answers

    async def exchange(
        self, client: HttpSession, id: bytes, line: bytes, modern: bool, receive: Receive, send: Send
    ) -> None:
        """Answer a request, with all messages that belong to it."""
        lines = client.exchanges[id] = asyncio.Queue[Line]()
        client.session.received(line)
        headers = {} if modern or client.id not in self.sessions else {"mcp-session-id": client.id}
        try:
            first, last = await self.next(lines, receive, client if modern else None)
            if last and first:
                await reply(send, status_of(first, modern), first, {"content-type": JSON, **headers})
                return
            await self.send_stream(client, lines, [(first, last)], receive, send, headers, modern)
        except ConnectionError:
            pass  # the client has hung up
        finally:
            del client.exchanges[id]
            if modern:
                client.session.close()

    async def send_stream(
        self,
        client: HttpSession,
        lines: asyncio.Queue[Line],
        begun: list[Line],
        receive: Receive,
        send: Send,
        headers: Headers | None = None,
        modern: bool = False,
    ) -> None:
        """Send an event stream: the lines ``begun``, then those of the queue until the last one, or until the
        client hangs up."""
        all_headers = {"content-type": EVENTS, "cache-control": "no-cache", **(headers or {})}
        await send({"type": "http.response.start", "status": 200, "headers": encoded(all_headers)})
        last = False
        while not last:
            try:
                line, last = begun.pop(0) if begun else await self.next(lines, receive, client)
            except ConnectionError:
                return
            event = b"event: message\ndata: %b\n\n" % line.rstrip(b"\n") if line else b""
            await send({"type": "http.response.body", "body": event, "more_body": not last})

    async def next(self, lines: asyncio.Queue[Line], receive: Receive, client: HttpSession | None) -> Line:
        """The next line. Raises ConnectionError when the client has hung up."""
        coming = asyncio.ensure_future(lines.get())
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((coming, gone), return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                return coming.result()
            raise ConnectionError("the client has hung up")
        finally:
            coming.cancel()
            gone.cancel()
