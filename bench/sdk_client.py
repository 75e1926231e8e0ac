"""An MCP client on the official SDK, signed in by the SDK's own OAuth provider.

    python sdk_client.py URL TOOL

For every line of its input, a number, it makes that many concurrent calls and prints the seconds until the
last was answered. The authorization server at URL must approve without a person.
"""

import asyncio
import sys
import time
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl


class Memory:
    """The SDK's `TokenStorage`."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """Follows no redirect."""


def visit(url: str) -> AuthorizationCodeResult:
    """The parameters of the browser's redirect."""
    try:
        with build_opener(ProxyHandler({}), _Stay()).open(url, timeout=60) as answer:
            raise SystemExit(f"{url} asks a person: {answer.read(300)!r}")
    except HTTPError as sent_back:
        with sent_back:
            query = parse_qs(urlsplit(sent_back.headers["Location"]).query)
    state, iss = (query.get(name, [None])[0] for name in ("state", "iss"))
    return AuthorizationCodeResult(code=query["code"][0], state=state, iss=iss)


async def main(url: str, tool: str) -> None:
    shown: list[str] = []

    async def show(address: str) -> None:
        shown.append(address)

    async def answer() -> AuthorizationCodeResult:
        return await asyncio.to_thread(visit, shown[-1])

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1/callback")])
    auth = OAuthClientProvider(url, metadata, Memory(), show, answer)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        while line := await asyncio.to_thread(sys.stdin.readline):
            begun = time.perf_counter()
            await asyncio.gather(*(client.call_tool(tool, {}) for _ in range(int(line))))
            print(time.perf_counter() - begun, flush=True)


asyncio.run(main(*sys.argv[1:]))
