"""A client of a server that wants a token. Helper processes import it, so it imports little."""

from collections.abc import Callable

import httpx

from mcpzip.auth.oauth import OAuth
from mcpzip.auth.store import Store
from mcpzip.config.schema import ServerConfig

VERSION = "2026-07-28"


class Caller:
    """Asks a server for its tools, as a connection would, signed by an `OAuth` of its own."""

    def __init__(self, store: Store, server: ServerConfig, now: Callable[[], float]) -> None:
        self.server, self.oauth = server, OAuth(server, store, now=now)
        self._client = httpx.AsyncClient(auth=self.oauth, timeout=30, trust_env=False, verify=False)

    async def status(self, method: str = "tools/list", **params: str) -> int:
        """The HTTP status of one more request."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers = {
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": VERSION,
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if "name" in params else {}),
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        return (await self._client.post(self.server.url, headers=headers, json=body)).status_code

    async def __aenter__(self) -> "Caller":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.oauth.close()
        await self._client.aclose()
