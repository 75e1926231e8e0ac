"""What `search_tools`, `describe_tool` and `execute_tool` do.

The rule: an argument is read, mended where it can mean one thing only, and what was mended is named in the
answer; the work itself is the proxy's.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from mcpzip.catalog import Catalog
from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.limits import ASKED_NAME, READ_AT_ONCE
from mcpzip.model.names import folded
from mcpzip.proxy import metatools
from mcpzip.proxy.argument_repair import repair_arguments, repair_meta
from mcpzip.proxy.arguments import ARROW, Call, read_call, read_name
from mcpzip.proxy.describe import described
from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.owners import may_mean
from mcpzip.proxy.reply import text_result
from mcpzip.proxy.search import ADMIN_TOOLS, Question, SearchReport, read_question, reply
from mcpzip.proxy.status import ServerStatus, as_text
from mcpzip.proxy.workers import computed

REFRESHING = 10.0
"""Seconds `proxy_refresh` waits for servers, where it isn't told otherwise; the listings go on."""

_OURS = {folded(name): name for name in (metatools.STATUS, metatools.REFRESH)}
"""Our own tools by their folded names."""

T = TypeVar("T")
Handler = Callable[[bytes | None, Exchange], Awaitable[bytes]]
"""Answers a call of a meta-tool: from its arguments (JSON text, or None) to a `CallToolResult`."""


class Tools(Protocol):
    """What the meta-tools stand on; `mcpzip.proxy.proxy.Proxy` says what each does."""

    config: Config

    @property
    def catalog(self) -> Catalog: ...

    async def search(self, question: Question) -> SearchReport: ...

    async def find(self, name: str) -> Entry: ...

    async def meant(self, name: str, timeout: float | None = None) -> tuple[Entry, str | None]: ...

    async def execute(
        self, entry: Entry, arguments: bytes, timeout: float | None, exchange: Exchange
    ) -> bytes: ...

    def status(self) -> list[ServerStatus]: ...

    def start_listing(self) -> "list[asyncio.Task[Any]]": ...


def handlers(proxy: Tools) -> Mapping[str, Handler]:
    """The handler of each meta-tool, by its name."""
    found = _Handlers(proxy)
    return {
        metatools.SEARCH: found.search_tools,
        metatools.DESCRIBE: found.describe_tool,
        metatools.EXECUTE: found.execute_tool,
    }


class _Handlers:
    def __init__(self, proxy: Tools) -> None:
        self._proxy = proxy

    async def search_tools(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        proxy, search = self._proxy, self._proxy.config.search
        question = read_question(arguments, search.default_limit)
        found = await proxy.search(question)
        # In a thread: how long the schemas are that the reply shows is up to the servers.
        return await computed(
            lambda: reply(
                question,
                found.results,
                found.catalog,
                found.troubles,
                time.time(),
                search.max_tokens,
                found.pending,
            ),
            "reply",
        )

    async def describe_tool(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        name = read_name(arguments)
        for admin in ADMIN_TOOLS:
            if self._ours(name) == admin.tool:
                return text_result(f"{admin.tool}: {admin.description}. It takes no arguments.")
        entry = await self._proxy.find(name)
        record = self._proxy.catalog.servers[entry.server]
        return await _aside(entry, lambda: described(entry, record, time.time()))

    async def execute_tool(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        proxy, call = self._proxy, read_call(arguments)
        if (ours := self._ours(call.name)) is not None:
            return await self._administer(ours, call)
        entry, renamed = await proxy.meant(call.name, call.timeout)
        fitted = await _aside(entry, lambda: repair_arguments(call, entry), call)
        repairs = (renamed, *fitted.repairs) if renamed else fitted.repairs
        result = await proxy.execute(entry, fitted.arguments, fitted.timeout, exchange)
        return repair_meta(result, repairs) if repairs else result

    async def _administer(self, ours: str, call: Call) -> bytes:
        """`proxy_status` and `proxy_refresh`."""
        if ours == metatools.REFRESH and (listings := self._proxy.start_listing()):
            await asyncio.wait(listings, timeout=call.timeout or REFRESHING)
        told = () if ours == call.name else (f"name: {call.name} {ARROW} {ours}",)
        return repair_meta(text_result(as_text(self._proxy.status(), time.time())), told)

    def _ours(self, name: str) -> str | None:
        """Which of our own tools is called ``name``, case and separators aside; None where that may be a
        server's. What a server calls its tools is no evidence that it was meant.
        """
        if name in _OURS.values():
            return name
        own = _OURS.get(folded(name)) if len(name) <= ASKED_NAME else None
        return None if own is None or may_mean(name, self._proxy.config.servers) else own


async def _aside(entry: Entry, work: Callable[[], T], call: Call | None = None) -> T:
    """``work()``, which reads what ``entry`` says, or what ``call`` does: in a thread, where that is long."""
    size = len(entry.raw) + (0 if call is None else len(call.arguments))
    if size <= READ_AT_ONCE and (call is None or not call.fault):
        return work()
    return await computed(work, "aside")
