"""A client talking to a session in process: what goes in, and every line that came out."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from mcpzip.catalog import Catalog
from mcpzip.config import Config, ServerConfig
from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.endpoint import Endpoint
from mcpzip.server.session import Session

Json = dict[str, Any]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    *range(-32600, -32604, -1),
)
UNSUPPORTED = -32022
META = "io.modelcontextprotocol/"
STAMP = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Upstreams(Proxy):
    """A proxy whose one tool does what the test says, and that notes what it was asked."""

    def __init__(self, behave: "Callable[[bytes | None, Exchange], Any] | None" = None) -> None:
        servers = {"shop": ServerConfig(name="shop", transport="stdio", command="never-run")}
        super().__init__(Config(path="/nowhere/config.json", servers=servers), Catalog())
        self.asked: list[tuple[str, bytes | None, Exchange]] = []
        self.behave = behave

    async def call(self, name: str, arguments: bytes | None, exchange: Exchange) -> bytes:
        self.asked.append((name, arguments, exchange))
        if self.behave is None:
            return await super().call(name, arguments, exchange)
        return await self.behave(arguments, exchange)


class Talk:
    """A client talking to a session: what goes in, and every line that came out."""

    def __init__(self, proxy: Proxy | None = None) -> None:
        proxy = proxy or Upstreams()
        self.lines: list[bytes] = []
        self.session = Session(Endpoint(proxy), self.lines.append)

    def says(self, data: bytes) -> list[Json]:
        """The messages that these bytes bring about at once."""
        before = len(self.lines)
        self.session.receive(data)
        return [json.loads(line) for line in self.lines[before:] if line]

    def asks(self, method: str, params: object = None, id: object = 1) -> Json:
        """The one answer to a request."""
        message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        (answer,) = self.says(json.dumps(message).encode() + b"\n")
        assert answer["id"] == id
        return answer

    def calls(self, id: object, params: Json) -> None:
        """tools/call, to be answered later."""
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        self.session.receive(json.dumps(message).encode() + b"\n")

    def cancels(self, id: object) -> None:
        params = {"requestId": id, "reason": "no longer wanted"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        self.session.receive(json.dumps(message).encode() + b"\n")

    def goes_on(self) -> None:
        """It still answers, in the era it was opened in."""
        answer = self.asks("tools/list", {"_meta": STAMP} if self.modern else {}, id="still there?")
        assert [tool["name"] for tool in answer["result"]["tools"]] == [
            "search_tools",
            "describe_tool",
            "execute_tool",
        ]

    modern = False

    def begun(self) -> "Talk":
        """After the legacy handshake."""
        assert self.asks("initialize", HELLO)["result"]["protocolVersion"] == "2025-11-25"
        assert self.says(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n') == []
        return self

    def begun_modern(self) -> "Talk":
        """After a first modern request."""
        assert "result" in self.asks("server/discover", {"_meta": STAMP})
        self.modern = True
        return self


async def comes_true(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not look():  # noqa: ASYNC110 - what is looked at has no event
            await asyncio.sleep(0)


async def settled(talk: Talk, lines: int) -> None:
    await comes_true(lambda: len(talk.lines) >= lines)
