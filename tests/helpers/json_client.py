"""An MCP client that hides nothing: JSON in, JSON out, over the SDK's own transports.

The rule: it is the referee. It stands on the SDK's transports and dispatcher, not on `mcpzip.wire`, and hands
over results as they came, unknown fields included, which the SDK's typed `Client` would drop.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from mcp import MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from mcpzip.system.network import tls_context

Json = dict[str, Any]
Transport = AbstractAsyncContextManager[tuple[Any, Any]]

_INFO = {"name": "mcpzip-e2e", "version": "1"}
_STAMP = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _INFO,
}
_PATIENCE = 60.0  # s; what takes this long is broken


@dataclass
class Answer:
    """What came back: ``result``, or ``error`` (code, message, maybe data), and the progress before it."""

    result: Json | None = None
    error: Json | None = None
    progress: list[Json] = field(default_factory=list)


class JsonClient:
    """One connection. era: ``legacy`` or ``modern``, as the handshake found it."""

    def __init__(self, dispatcher: "JSONRPCDispatcher[Any]") -> None:
        self.era = ""
        self.greeting: Json = {}
        self._dispatcher = dispatcher
        self._progress: dict[str, list[Json]] = {}
        self._tokens = 0

    async def greet(self, era: str | None = None) -> None:
        """Opens the conversation in ``era``; None asks for the modern one and falls back."""
        if era != "legacy":
            self.era = "modern"
            try:
                self.greeting = await self._send("server/discover", {})
                return
            except MCPError:
                if era == "modern":
                    raise
        self.era = "legacy"
        hello = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": _INFO}
        self.greeting = await self._send("initialize", hello)
        await self._dispatcher.notify("notifications/initialized", None, {"headers": self._headers("", {})})

    async def tools(self) -> list[Json]:
        """Every page of `tools/list`."""
        found: list[Json] = []
        cursor = None
        while True:
            page = await self._send("tools/list", {} if cursor is None else {"cursor": cursor})
            found += page["tools"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def call(self, tool: str, arguments: Json, *, progress: bool = False) -> Answer:
        """`tools/call`, told without its progress token."""
        params: Json = {"name": tool, "arguments": arguments}
        heard: list[Json] = []
        if progress:
            self._tokens += 1
            token = f"progress-{self._tokens}"
            params["_meta"] = {"progressToken": token}
            self._progress[token] = heard
        try:
            return Answer(result=await self._send("tools/call", params), progress=heard)
        except MCPError as error:
            return Answer(error=error.error.model_dump(exclude_unset=True), progress=heard)

    async def _send(self, method: str, params: Json) -> Json:
        if self.era == "modern":
            params = {**params, "_meta": {**params.get("_meta", {}), **_STAMP}}
        options: CallOptions = {"headers": self._headers(method, params), "timeout": _PATIENCE}
        return await self._dispatcher.send_raw_request(method, params, options)

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        if self.era == "legacy":
            version = self.greeting.get("protocolVersion")
            return {MCP_PROTOCOL_VERSION_HEADER: version} if version else {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: LATEST_MODERN_VERSION, MCP_METHOD_HEADER: method}
        return headers | ({MCP_NAME_HEADER: params["name"]} if "name" in params else {})

    def arrived(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Keeps progress, in wire order; part of the dispatcher's contract."""
        heard = self._progress.get(str((params or {}).get("progressToken")))
        if method != "notifications/progress" or params is None or heard is None:
            return False
        heard.append({key: value for key, value in params.items() if key != "progressToken"})
        return True

    async def told(self, _context: object, _method: str, _params: Mapping[str, Any] | None) -> None:
        """Other notifications don't matter here."""

    async def asked(self, _context: object, method: str, _params: Mapping[str, Any] | None) -> Json:
        """It offers nothing to servers but an answer to ping."""
        if method == "ping":
            return {}
        raise MCPError(-32601, f"the tests offer no {method}")


@asynccontextmanager
async def connected(transport: Transport, era: str | None = None) -> AsyncIterator[JsonClient]:
    """A client that has shaken hands over ``transport``; see `JsonClient.greet` for ``era``."""
    async with transport as (read, write):
        dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(read, write)
        client = JsonClient(dispatcher)
        async with anyio.create_task_group() as group:
            await group.start(dispatcher.run, client.asked, client.told, client.arrived)
            with anyio.fail_after(_PATIENCE):
                await client.greet(era)
            yield client
            group.cancel_scope.cancel()


def transport_of(entry: Mapping[str, Any], errors: Any) -> Transport:
    """The SDK's transport for an ``mcpServers`` entry. errors: the file that takes a process's stderr."""
    if "command" in entry:
        params = StdioServerParameters(
            command=entry["command"], args=entry.get("args", []), env=entry.get("env")
        )
        return stdio_client(params, errlog=errors)
    if entry["type"] == "sse":
        return sse_client(entry["url"], httpx_client_factory=_direct_http)
    return _streamable(entry["url"])


@asynccontextmanager
async def _streamable(url: str) -> AsyncIterator[tuple[Any, Any]]:
    async with (
        _direct_http(timeout=httpx2.Timeout(_PATIENCE)) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def _direct_http(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers=headers, timeout=timeout, auth=auth, trust_env=False, verify=tls_context()
    )
