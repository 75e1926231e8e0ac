"""A client over HTTP at its plainest: bytes on a socket, so that nothing of a library hides what is sent and
what comes back. And an `HttpServer` to meet, whose endpoint is a script.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from helpers.driver import INITIALIZE, LEGACY, MODERN, PATIENCE, nothing_unheard

from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.server.http.access import Access, access_to, read_address, take
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.people import People
from mcpzip.server.http.server import HttpServer
from mcpzip.wire import JsonRpcError, RpcError

Json = dict[str, Any]
Headers = dict[str, str]

JSON_HEADERS: Headers = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
MODERN_STAMP: Json = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(method: str, params: Json | None = None, id: object = None) -> bytes:
    """A request; a notification when it has no id."""
    told = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps({key: value for key, value in told.items() if value is not None}).encode()


@dataclass
class Reply:
    """An HTTP response. ``messages``: the JSON-RPC messages in it, as text."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def messages(self) -> list[bytes]:
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return [line[6:] for line in self.body.split(b"\r\n") if line.startswith(b"data: ")]
        return [self.body] if self.body else []

    @property
    def last(self) -> Json:
        """The last message: the answer."""
        return json.loads(self.messages[-1])

    @property
    def raw_result(self) -> bytes:
        """The bytes of the answer's result."""
        head, found, rest = self.messages[-1].partition(b'"result":')
        assert found, self.messages
        assert b'"error"' not in head
        return rest[:-1]


class Connection:
    """One TCP connection, closed by whoever opened it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._chunked = False
        self._events: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self) -> Reply:
        """Status and headers."""
        async with asyncio.timeout(PATIENCE):
            text = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._chunked = headers.get("transfer-encoding") == "chunked"
        return Reply(int(first.split()[1]), headers)

    async def piece(self) -> bytes:
        """The next chunk of a chunked body, b"" at its end."""
        async with asyncio.timeout(PATIENCE):
            size = int(await self._reader.readline(), 16)
            return (await self._reader.readexactly(size + 2))[:-2]

    async def event(self) -> Json:
        """The next message on an event stream; {} at its end."""
        told = await self.raw_event()
        return json.loads(told) if told else {}

    async def raw_event(self) -> bytes:
        """Its bytes."""
        while not self._events:
            piece = await self.piece()
            if not piece:
                return b""
            self._events += [line[6:] for line in piece.split(b"\r\n") if line.startswith(b"data: ")]
        return self._events.pop(0)

    async def reply(self) -> Reply:
        """The whole response."""
        reply = await self.head()
        if self._chunked:
            while piece := await self.piece():
                reply.body += piece
        else:
            async with asyncio.timeout(PATIENCE):
                reply.body = await self._reader.readexactly(int(reply.headers.get("content-length", 0)))
        return reply

    async def ended(self) -> bool:
        """Whether the other side has closed it, once it has."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.read(1) == b""
            except ConnectionError:
                return True

    def close(self) -> None:
        self._writer.close()


@dataclass
class Web:
    """Where a site is, and what every request to it carries."""

    port: int
    host: str = "127.0.0.1"
    headers: Headers = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://{self.authority}/mcp"

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        connection = Connection(reader, writer)
        try:
            yield connection
        finally:
            connection.close()

    def request(
        self, verb: str, body: bytes | None = None, path: str = "/mcp", **headers: str | None
    ) -> bytes:
        """The bytes of a request; a header that is None is left out, ``_`` in a name stands for ``-``."""
        given: dict[str, str | None] = {"Host": self.authority, **self.headers}
        if body is not None:
            given |= {**JSON_HEADERS, "Content-Length": str(len(body))}
        elif verb == "GET":
            given["Accept"] = "text/event-stream"
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{name}: {value}\r\n" for name, value in given.items() if value is not None]
        return f"{verb} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin-1") + (body or b"")

    async def ask(
        self, verb: str, body: bytes | None = None, path: str = "/mcp", **headers: str | None
    ) -> Reply:
        """One request on a connection of its own, answered."""
        async with self.connected() as connection:
            await connection.write(self.request(verb, body, path, **headers))
            return await connection.reply()

    async def session(self, **params: object) -> "SessionOf":
        """A legacy session, opened."""
        reply = await self.ask("POST", message("initialize", {**INITIALIZE, **params}, 1))
        assert "result" in reply.last, reply
        session = SessionOf(
            self.port, self.host, {**self.headers, "Mcp-Session-Id": reply.headers["mcp-session-id"]}
        )
        session.headers["MCP-Protocol-Version"] = LEGACY
        assert (await session.ask("POST", message("notifications/initialized"))).status == 202
        return session

    async def modern(self, method: str, params: Json | None = None, id: object = 1, **headers: str) -> Reply:
        """A request of the modern era."""
        body, named = modern_message(method, params, id)
        return await self.ask("POST", body, **{**named, **headers})


class SessionOf(Web):
    """`Web` within a legacy session."""

    @property
    def id(self) -> str:
        return self.headers["Mcp-Session-Id"]

    async def call(self, name: str, id: object = 1, /, **params: object) -> Reply:
        return await self.ask("POST", message("tools/call", {**params, "name": name}, id))

    @asynccontextmanager
    async def calling(self, name: str, id: object = 1, /, **params: object) -> AsyncIterator[Connection]:
        """A call that is not waited for: its connection."""
        async with self.connected() as connection:
            await connection.write(self.request("POST", message("tools/call", {**params, "name": name}, id)))
            yield connection

    async def reply_to(self, question: Json, result: bytes) -> None:
        """The client's answer to what it was asked."""
        body = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (question["id"], result)
        assert (await self.ask("POST", body)).status == 202

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Connection]:
        """The session's stream."""
        async with self.connected() as connection:
            await connection.write(self.request("GET"))
            assert (await connection.head()).status == 200
            yield connection

    @asynccontextmanager
    async def listening_again(self, **headers: str) -> AsyncIterator[Connection]:
        """The same, once it is noticed that the stream before it was left."""
        while True:
            async with self.connected() as connection:
                await connection.write(self.request("GET", **headers))
                if (await connection.head()).status != 409:
                    yield connection
                    return


def modern_message(method: str, params: Json | None = None, id: object = 1) -> tuple[bytes, Headers]:
    """A request of the modern era, and the headers it needs."""
    params = {**(params or {}), "_meta": {**MODERN_STAMP, **(params or {}).get("_meta", {})}}
    headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method}
    if "name" in params:
        headers["Mcp_Name"] = params["name"]
    return message(method, params, id), headers


# A site whose endpoint is a script

Tool = Callable[[Exchange], Awaitable[bytes]]
GREETING = b'{"protocolVersion":"%b","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'


async def greeted(exchange: Exchange) -> bytes:
    return GREETING % LEGACY.encode()


class Script:
    """An endpoint with these tools. seen: what it was asked and told, and who came and went; clients: the
    lasting ones; cancelled, ended: the names of tools that were, or came to their end."""

    recorder = None

    def __init__(self, **tools: Tool) -> None:
        self.tools = tools
        self.seen: list[tuple[object, ...]] = []
        self.clients: list[Client] = []
        self.cancelled: list[str] = []
        self.ended: list[str] = []
        self.initialize: Tool = greeted

    def mirrored(self, name: str, principal: object = None) -> Json | None:
        return None

    def joined(self, client: Client) -> None:
        self.clients.append(client)

    async def left(self, client: Client) -> None:
        self.clients.remove(client)

    def notified(self, client: Client, method: str, params: bytes | None) -> None:
        self.seen.append((client, method, params))

    def finished(self, method: str, exchange: Exchange, result: bytes) -> bytes:
        return result

    async def begin(self, method: str, exchange: Exchange) -> bytes:
        self.seen.append((exchange.client, method, exchange.params))
        if method == "initialize":
            return await self.initialize(exchange)
        if method != "tools/call":
            raise JsonRpcError(RpcError(-32601, f"no {method}"))
        name = json.loads(exchange.fields["name"])
        try:
            result = await self.tools[name](exchange)
            self.ended.append(name)
            return result
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise


async def echo(exchange: Exchange) -> bytes:
    return exchange.params or b"{}"


def progress(exchange: Exchange, step: int) -> None:
    token = exchange.progress_token or b"null"
    exchange.notify("notifications/progress", b'{"progressToken":%b,"progress":%d.0}' % (token, step))


async def asking(exchange: Exchange) -> bytes:
    progress(exchange, 1)
    assert exchange.request is not None
    return b'{"said":%b}' % await exchange.request("sampling/createMessage", exchange.fields["arguments"])


LOCAL = access_to(read_address("0"), None, (), ())


@asynccontextmanager
async def site(
    script: Script,
    access: Access = LOCAL,
    warned: list[str] | None = None,
    people: People | None = None,
    **limits: Any,
) -> AsyncIterator[Web]:
    """A site with this endpoint. warned: gets its warnings; there must be none where it isn't given. people:
    who may ask.
    """
    listening = take(read_address("127.0.0.1:0"))
    warnings: list[str] = [] if warned is None else warned
    served = HttpServer(script, access, warnings.append, Limits(**limits), people)  # type: ignore[arg-type]
    done, ready = asyncio.Event(), asyncio.Event()
    with nothing_unheard():
        serving = asyncio.create_task(served.serve(listening, done, ready.set, lambda: None))
        try:
            await ready.wait()
            yield Web(listening.getsockname()[1])
        finally:
            done.set()
            async with asyncio.timeout(PATIENCE):
                await serving
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert [task for task in left if "_shutdown_watcher" not in repr(task)] == []
    assert script.clients == []
    if warned is None:
        assert warnings == []
