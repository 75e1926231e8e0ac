"""What a page sees of a proxy: all of it, or what one person may see.

The rule: whatever is shown to a person is asked of a `Seen`, never of the proxy itself, so that nothing that
they may not use can be on a page.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import msgspec

from mcpzip.catalog import Catalog
from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.principal import Principal
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.search_request import SearchReport, SearchRequest
from mcpzip.proxy.status import ServerStatus
from mcpzip.server.daemon.call_report import CallReport

if TYPE_CHECKING:
    from mcpzip.search import Searcher


class Seen:
    """A proxy, as ``principal`` sees it. principal: None for whoever uses this machine."""

    def __init__(self, proxy: Proxy, principal: Principal | None) -> None:
        """principal: see the class."""
        self.proxy, self.principal = proxy, principal

    @property
    def config(self) -> Config:
        """With the servers of which they may use anything."""
        if self.principal is None:
            return self.proxy.config
        return self.proxy.views.of(self.principal).config

    @property
    def catalog(self) -> Catalog:
        """What they may use."""
        if self.principal is None:
            return self.proxy.catalog
        return self.proxy.views.of(self.principal).catalog

    def status(self) -> list[ServerStatus]:
        """That of their servers."""
        return self.proxy.status(self.principal)

    async def search(self, request: SearchRequest) -> SearchReport:
        """See `Proxy.search`."""
        return await self.proxy.search(request, self.principal)

    async def searcher(self) -> "Searcher":
        """The search over what they may use."""
        return await self.proxy.views.searcher(self.principal)

    def note(self, entry: Entry) -> str:
        """What there is to say of calls of ``entry``; "" for nothing."""
        return self.proxy.tool_caller.note(entry)


class Calls(msgspec.Struct, frozen=True):
    """The last calls, the oldest first. by_daemon: whether they are those of the daemon; else those that were
    made from here.
    """

    found: Sequence[CallReport]
    by_daemon: bool


class Window(Protocol):
    """Where the pages for everybody look: at a proxy, at calls, and to make calls."""

    def seen(self) -> AbstractAsyncContextManager[Seen]:
        """The proxy. Raises ConfigError."""

    async def calls(self) -> Calls:
        """The last calls. Raises McpzipError."""

    async def call(self, seen: Seen, entry: Entry, arguments: bytes) -> bytes:
        """The result of a call of ``entry``. arguments, result: JSON texts. Raises JsonRpcError,
        McpzipError.
        """

    async def kept(self, handle: str, part: bytes) -> bytes:
        """A part of a kept result, as `execute_tool` has it. part, result: JSON texts. Raises JsonRpcError,
        McpzipError.
        """
