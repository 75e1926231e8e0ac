"""Single requests to a fake over HTTP."""

from typing import Any

import httpx
from mcpzip_fakes.launch import FakeServer

ACCEPT = {"accept": "application/json, text/event-stream"}
KEY = "io.modelcontextprotocol/"


def request(method: str, *, id: object = 1, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


INITIALIZE = request(
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "t", "version": "1"},
)


async def modern(server: FakeServer, method: str, **params: object) -> httpx.Response:
    """One modern exchange; ``name`` in params goes into the header it belongs in."""
    meta = {KEY + "protocolVersion": "2026-07-28", KEY + "clientCapabilities": {}}
    headers = {**ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = str(params["name"])
    async with httpx.AsyncClient(timeout=10) as client:
        return await client.post(server.url, json=request(method, **params, _meta=meta), headers=headers)
