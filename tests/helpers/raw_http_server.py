"""A server over HTTP that says what it is told to, byte for byte: what no fake of good manners would."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from helpers.driver import Json
from helpers.loopback_server import accepting

Say = Callable[[bytes], Awaitable[None]]
"""Sends bytes; raises ConnectionError once the other side is gone."""
Turn = Callable[["Asked", Say], Awaitable[None]]

LISTED: Json = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("pay", "odd")]}
OPENING: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}
PAID: Json = {"content": [{"type": "text", "text": "paid"}]}


@dataclass(frozen=True)
class Asked:
    """A request. message: the JSON-RPC in it, or {}."""

    method: str
    path: str
    message: Json
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def call(self) -> str:
        """What it is, in a word: a tool's name, a JSON-RPC method, or an HTTP method."""
        name = self.message.get("params", {}).get("name") if "params" in self.message else None
        return name or self.message.get("method") or self.method


def reply(result: object, id: object, *more: str) -> bytes:
    """A JSON answer."""
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    return head(200, "content-type: application/json", f"content-length: {len(body)}", *more) + body


def head(status: int, *fields: str, phrase: str = "So") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} {phrase}", *fields, "", ""]).encode()


def event(message: object) -> bytes:
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"


async def polite(asked: Asked, say: Say) -> None:
    """What an honest legacy server answers."""
    match asked.call:
        case "initialize":
            await say(reply(OPENING, asked.message["id"], "mcp-session-id: s1"))
        case "tools/list":
            await say(reply(LISTED, asked.message["id"]))
        case "pay":
            await say(reply(PAID, asked.message["id"]))
        case "server/discover":
            error = {"jsonrpc": "2.0", "id": asked.message["id"], "error": {"code": -32601, "message": "no"}}
            body = json.dumps(error).encode()
            await say(head(200, "content-type: application/json", f"content-length: {len(body)}") + body)
        case "GET":
            await say(head(405, "content-length: 0"))
        case _:
            await say(head(202, "content-length: 0"))


class Raw:
    """What it saw. url: where it is. sent: bytes, of which those are not counted that nobody took.
    connections: how many are open.
    """

    def __init__(self, turns: dict[str, Turn]) -> None:
        self.asked: list[Asked] = []
        self.sent = self.connections = 0
        self.url = ""
        self._turns = turns

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1

        async def say(data: bytes) -> None:
            writer.write(data)
            self.sent += len(data)
            await writer.drain()
            await asyncio.sleep(0)
            if writer.is_closing():
                raise ConnectionResetError

        try:
            while True:
                asked = await _read(reader)
                self.asked.append(asked)
                await self._turns.get(asked.call, polite)(asked, say)
        except (OSError, asyncio.IncompleteReadError, ConnectionError):
            pass
        except asyncio.CancelledError:
            pass
        finally:
            self.connections -= 1
            writer.transport.abort()

    def count(self, call: str) -> int:
        return sum(one.call == call for one in self.asked)


@asynccontextmanager
async def raw_server(**turns: Turn) -> AsyncIterator[Raw]:
    """turns: how requests are answered, by `Asked.call`; others politely."""
    raw = Raw({name.replace("__", "/"): turn for name, turn in turns.items()})
    async with accepting(raw.serve, limit=1 << 20) as port:
        raw.url = f"http://127.0.0.1:{port}/mcp"
        yield raw


async def _read(reader: asyncio.StreamReader) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, path, json.loads(body) if body else {}, headers)
