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


class Room:
    """One client's session and the exchanges that are open: each line goes to the one it belongs to, else to
    the client's own stream, for which it waits if need be. id: the session's."""

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
    """The application. session: what each client gets; address: where it listens."""

    address = "127.0.0.1"

    def __init__(self, config: Config, session: type[Session]) -> None:
        self.config, self.session = config, session
        self.rooms: dict[str, Room] = {}
        self._shared: dict[bytes, Servers] = {}
        """The servers of modern clients, who have no sessions, by what these can be asked."""

    async def end(self) -> None:
        """End every session."""
        ends = [room.session.end() for room in self.rooms.values()]
        await asyncio.gather(*ends, *(servers.end() for servers in self._shared.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        headers = {key.decode().lower(): value.decode("latin-1") for key, value in scope["headers"]}
        try:
            if scope["path"] != PATH:
                raise Refusal(404, "There is nothing here; MCP is at /mcp.")
            self.let_in(scope, headers)
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

    def let_in(self, scope: Scope, headers: Headers) -> None:
        """Refusal for who comes by a name that isn't ours, or from a page that isn't local."""
        at = scope["server"]
        names = {f"{name}:{at[1]}" for name in ("127.0.0.1", "localhost", "[::1]")}
        if headers.get("host") not in names:
            raise Refusal(421, "This server is not the one you ask for.")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] not in names:
            raise Refusal(403, "Pages of other origins are not let in.")

    # Methods of HTTP

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        """A message."""
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
            room = self.passing(message)
        else:
            room = self.entered(headers) if method != "initialize" else self.made()
        line = body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        if not method or "id" not in message:
            room.session.received(line)
            await reply(send, 202)
        else:
            await self.exchange(room, message["id"], line, modern, receive, send)

    async def get(self, headers: Headers, receive: Receive, send: Send) -> None:
        """The stream of what belongs to no request."""
        room = self.entered(headers)
        if EVENTS not in headers.get("accept", ""):
            raise Refusal(406, "The stream is text/event-stream.")
        if room.streaming:
            raise Refusal(409, "There is a stream already.")
        await body_of(receive)  # it has none; what comes next is that the client hangs up
        room.streaming = True
        try:
            await self.streamed(room, room.stream, [], receive, send)
        finally:
            room.streaming = False

    async def delete(self, headers: Headers, send: Send) -> None:
        """The end of a session."""
        room = self.entered(headers)
        del self.rooms[room.id]
        await reply(send, 204)
        await room.session.end()

    # Sessions

    def made(self) -> Room:
        """A new session."""
        room = Room(self.config, self.session)
        self.rooms[room.id] = room
        return room

    def entered(self, headers: Headers) -> Room:
        """The session of a request. Refusal when there is none."""
        id = headers.get("mcp-session-id")
        if id is None:
            raise Refusal(400, "A request has the Mcp-Session-Id that initialize was answered with.")
        if id not in self.rooms:
            raise Refusal(404, "There is no such session; initialize again.")
        if headers.get("mcp-protocol-version", LEGACY_VERSIONS[-1]) not in LEGACY_VERSIONS:
            raise Refusal(400, "This MCP-Protocol-Version is not known here.")
        return self.rooms[id]

    def passing(self, message: dict[str, bytes]) -> Room:
        """A modern request stands alone; what those of the same capabilities share are the servers."""
        opening = Opening(True, message.get("params", b"{}"), None)
        if opening.capabilities not in self._shared:
            self._shared[opening.capabilities] = Servers(self.config, opening)
            self._shared[opening.capabilities].start()
        return Room(self.config, self.session, self._shared[opening.capabilities])

    # Answers

    async def exchange(
        self, room: Room, id: bytes, line: bytes, modern: bool, receive: Receive, send: Send
    ) -> None:
        """A request and all that belongs to it."""
        said = room.exchanges[id] = asyncio.Queue[Line]()
        room.session.received(line)
        headers = {} if modern or room.id not in self.rooms else {"mcp-session-id": room.id}
        try:
            first, last = await self.next(said, receive, room if modern else None)
            if last and first:
                await reply(send, status_of(first, modern), first, {"content-type": JSON, **headers})
                return
            await self.streamed(room, said, [(first, last)], receive, send, headers, modern)
        except ConnectionError:
            pass  # the client has hung up
        finally:
            del room.exchanges[id]
            if modern:
                room.session.close()

    async def streamed(
        self,
        room: Room,
        said: asyncio.Queue[Line],
        begun: list[Line],
        receive: Receive,
        send: Send,
        headers: Headers | None = None,
        modern: bool = False,
    ) -> None:
        """A stream of events: ``begun``, then ``said`` until its last, or until the client hangs up."""
        told = {"content-type": EVENTS, "cache-control": "no-cache", **(headers or {})}
        await send({"type": "http.response.start", "status": 200, "headers": encoded(told)})
        last = False
        while not last:
            try:
                line, last = begun.pop(0) if begun else await self.next(said, receive, room)
            except ConnectionError:
                return
            event = b"event: message\ndata: %b\n\n" % line.rstrip(b"\n") if line else b""
            await send({"type": "http.response.body", "body": event, "more_body": not last})

    async def next(self, said: asyncio.Queue[Line], receive: Receive, room: Room | None) -> Line:
        """The next line. ConnectionError when the client has hung up."""
        coming = asyncio.ensure_future(said.get())
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((coming, gone), return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                return coming.result()
            raise ConnectionError("the client has hung up")
        finally:
            coming.cancel()
            gone.cancel()
