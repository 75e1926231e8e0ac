"""A client that knows how to reach tools: one connection, opened in one version of the protocol.

The same player plays straight to a server and through a subject; only its `Route` differs.
"""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from conformance.client import Client, Reply
from conformance.errors import Finding
from conformance.route import Route
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    MODERN_VERSIONS,
    NotAnObject,
    initialize_params,
    join_object,
    quote,
    split_object,
    stamp_request,
)

CLIENT_INFO = join_object({"name": quote("conformance"), "version": quote("1")})
_PAGES = 100


class Player:
    """client: the connection; version: what it is opened in; opening: what `initialize` was answered."""

    def __init__(self, client: Client, route: Route, version: str = LATEST_LEGACY_VERSION) -> None:
        self.client, self.route, self.version = client, route, version
        self.opening = Reply()

    @property
    def modern(self) -> bool:
        """Whether it speaks the stateless era."""
        return self.version in MODERN_VERSIONS

    async def open(self) -> Reply:
        """The handshake of its era: the answer to `initialize` or `server/discover`. Finding when that is an
        error."""
        if self.modern:
            self.opening = await self.request("server/discover")
        else:
            params = initialize_params(self.version, CLIENT_INFO, b"{}")
            self.opening = await self.request("initialize", params)
        if self.opening.error is not None:
            raise Finding(f"The handshake in version {self.version} was refused: {self.opening.text}")
        if not self.modern:
            self.client.notify("notifications/initialized")
        return self.opening

    async def ready(self, tools: Sequence[tuple[str, str]]) -> None:
        """Wait until the subject shows ``tools`` (server, tool), at most as long as for an answer: it may
        answer before its servers do."""
        deadline = time.monotonic() + self.client.patience
        wanted = {self.route.subject.shown(server, tool) for server, tool in tools}
        while wanted and time.monotonic() < deadline:
            if not self.route.meta:
                wanted -= {str(name_of(tool)) for tool in await self.list_tools()}
            elif self.route.subject.tools.search is not None:
                wanted -= set(await self.search(next(iter(wanted))))
            else:
                return
            if wanted:
                await asyncio.sleep(0.05)

    def send(self, method: str, params: bytes | None = None) -> int:
        """Ask without waiting; the id for `Client.reply`."""
        if self.modern:
            params = stamp_request(params, self.version, CLIENT_INFO, b"{}")
        return self.client.send(method, params)

    async def request(self, method: str, params: bytes | None = None) -> Reply:
        """Ask, and wait. NoAnswerError, GoneError."""
        return await self.client.reply(self.send(method, params))

    def begin(
        self,
        server: str,
        tool: str,
        arguments: bytes | None = b"{}",
        meta: bytes | None = None,
        *,
        flat: bool = False,
    ) -> int:
        """Start a tool call without waiting; the id for `Client.reply`."""
        return self.send("tools/call", self.route.call(server, tool, arguments, meta, flat=flat))

    async def call(
        self,
        server: str,
        tool: str,
        arguments: bytes | None = b"{}",
        meta: bytes | None = None,
        *,
        flat: bool = False,
    ) -> Reply:
        """Run a tool. arguments, meta, flat: see `Route.call`. NoAnswerError, GoneError."""
        return await self.client.reply(self.begin(server, tool, arguments, meta, flat=flat))

    async def search(self, query: str, limit: int | None = None) -> list[str]:
        """The names found, best first."""
        return self.route.found(await self.search_reply(query, limit))

    async def search_reply(self, query: str, limit: int | None = None) -> Reply:
        """The answer to a search."""
        return await self.request("tools/call", self.route.search(query, limit))

    async def list_tools(self) -> list[bytes]:
        """The definitions in `tools/list`, all pages, each as JSON text. Finding when it fails."""
        tools: list[bytes] = []
        cursor: bytes | None = None
        for _ in range(_PAGES):
            params = None if cursor is None else join_object({"cursor": cursor})
            reply = await self.request("tools/list", params)
            try:
                page = split_object(reply.result or b"")
                tools += map(bytes, msgspec.json.decode(page["tools"], type=list[msgspec.Raw]))
            except (NotAnObject, KeyError, msgspec.DecodeError):
                raise Finding(f"tools/list gave no list of tools: {reply.text or reply.result!r}") from None
            cursor = page.get("nextCursor")
            if cursor in (None, b"null"):
                return tools
        raise Finding(f"tools/list still had a next page after {_PAGES} pages.")

    async def definition(self, server: str, tool: str) -> bytes | None:
        """The definition of ``tool`` as the subject shows it, as JSON text; None when it shows none."""
        params = self.route.describe(server, tool)
        if params is not None:
            return self.route.definition(await self.request("tools/call", params))
        shown = self.route.subject.shown(server, tool)
        return next((raw for raw in await self.list_tools() if name_of(raw) == shown), None)


def name_of(definition: bytes) -> str | None:
    """The name in a tool's definition; None when it has none."""
    value = msgspec.json.decode(definition)
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None
