"""Ways to meet a protected fake: the SDK's own OAuth client, as a third party, and single requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.controls import AuthControls
from pydantic import AnyUrl

CALLBACK = "http://127.0.0.1:9/callback"
"""Nobody listens there: `AuthControls.visit` stops before it."""


class Memory:
    """The SDK's `TokenStorage`, in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def provider(
    url: str, auth: AuthControls, memory: Memory, *, decision: str = "allow", **options: Any
) -> OAuthClientProvider:
    """The SDK's client for the MCP server at ``url``, with ``auth`` to press the buttons."""
    shown: list[str] = []

    async def show(authorization_url: str) -> None:
        shown.append(authorization_url)

    async def answer() -> AuthorizationCodeResult:
        back = await asyncio.to_thread(auth.visit, shown[-1], decision)
        return AuthorizationCodeResult(
            code=back.get("code", ""), state=back.get("state"), iss=back.get("iss")
        )

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(CALLBACK)], client_name="third party")
    return OAuthClientProvider(url, metadata, memory, show, answer, **options)


@asynccontextmanager
async def signed_in(
    server: FakeServer, mode: str, memory: Memory | None = None, **options: Any
) -> AsyncIterator[Client]:
    """The SDK's MCP client, signed in to ``server`` as it needs to be."""
    assert server.auth is not None
    own = provider(server.url, server.auth, memory or Memory(), **options)
    if server.transport == "sse":
        async with Client(sse_client(server.url, auth=own), mode=mode, cache=None) as client:
            yield client
        return
    async with (
        httpx2.AsyncClient(auth=own, timeout=20) as http,
        Client(streamable_http_client(server.url, http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


def origin(server: FakeServer) -> str:
    """Where its well-known paths hang."""
    return server.url.removesuffix(urlsplit(server.url).path)


def controls(server: FakeServer) -> AuthControls:
    """Its authorization server's."""
    assert server.auth is not None
    return server.auth


def called(server: FakeServer, token: str = "", tool: str = "echo") -> httpx.Response:
    """A modern call of a tool, with this bearer token."""
    key = "io.modelcontextprotocol/"
    meta = {key + "protocolVersion": "2026-07-28", key + "clientCapabilities": {}}
    params = {"name": tool, "arguments": {}, "_meta": meta}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
        **({"authorization": f"Bearer {token}"} if token else {}),
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx.post(server.url, json=message, headers=headers)
