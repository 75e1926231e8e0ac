"""The proxy: a catalog, a search over it, and the connections behind it.

The rules: nothing waits for an upstream that the request at hand doesn't need; the catalog is replaced, never
changed; what is on disk follows what is in memory.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mcpzip.catalog import Catalog, Failed, Update, allowed, merge, retain, snapshot
from mcpzip.config import Config, paths
from mcpzip.model.entry import Entry
from mcpzip.model.errors import (
    McpzipError,
    UnknownToolError,
    UpstreamRpcError,
    UpstreamUnavailableError,
)
from mcpzip.model.names import split
from mcpzip.proxy import execute, metatools
from mcpzip.proxy.arguments import read_call, read_name
from mcpzip.proxy.describe import described
from mcpzip.proxy.refresh import Refresher
from mcpzip.proxy.reply import error_result, text_result
from mcpzip.proxy.search import ADMIN_TOOLS, Question, read_question, reply
from mcpzip.proxy.status import ServerStatus, as_text, statuses
from mcpzip.search import Results, Searcher
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import ProgressSink
from mcpzip.transport.pool import Pool

FIRST_LISTING = 5.0
"""Seconds a server's first listing may take before a request that needs this server gives up on it."""
OTHERS_LISTING = 2.0
"""The same where other servers' tools are there to answer with."""
REFRESHING = 10.0
"""Seconds `proxy_refresh` waits for servers, where it isn't told otherwise; the listings go on."""
SAVE_AFTER = 0.5
"""Seconds the catalog may differ from its snapshot."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a call brings with it: its ``_meta`` (JSON text) and where its progress goes, if anywhere."""

    meta: bytes | None = None
    on_progress: ProgressSink | None = None


class Proxy:
    """All of mcpzip behind the downstream protocol. Everything runs on one event loop."""

    def __init__(
        self, config: Config, catalog: Catalog, warn: Callable[[str], None] = lambda warning: None
    ) -> None:
        """catalog: as the snapshot had it. warn: is told, once each, what is wrong with keeping it."""
        self.config = config
        self._warn = warn
        self._warned: set[str] = set()
        self._enabled = {name: server for name, server in config.servers.items() if not server.disabled}
        self._catalog = retain(catalog, {name: server.fingerprint for name, server in config.servers.items()})
        self._visible = allowed(self._catalog, config.servers)
        protocols = {
            name: record.protocol for name, record in self._catalog.servers.items() if record.protocol
        }
        self._pool = Pool(
            config.servers.values(),
            idle_timeout=config.idle_timeout,
            protocols=protocols,
            on_list_changed=lambda server: self._refresher.changed(server),
        )
        self._refresher = Refresher(config.servers.values(), self._pool, self._merged)
        self._handlers = {
            metatools.SEARCH: self._search_tools,
            metatools.DESCRIBE: self._describe_tool,
            metatools.EXECUTE: self._execute_tool,
        }
        self._searcher = Searcher()
        self._indexed = ""
        self._indexing: asyncio.Task[None] | None = None
        self._saving: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    @property
    def catalog(self) -> Catalog:
        """What a client may see of the catalog."""
        return self._visible

    def start(self) -> None:
        """Begins indexing what is already known, and listing every server in the background."""
        self._index_soon()
        self._refresher.keep_trying()
        for name in self._enabled:
            if self._never_listed(name):
                self._refresher.start(name)
        # A first search waits for the index: the processes of servers it knows already would only delay it.
        if self._indexing is None:
            self._list_all()
        else:
            self._indexing.add_done_callback(lambda task: None if task.cancelled() else self._list_all())

    def _list_all(self) -> None:
        for name in self._enabled:
            self._refresher.start(name)

    async def close(self) -> None:
        """Ends every connection and process; the catalog is on disk afterwards. Takes about a second."""
        for name in self._enabled:
            if (
                taken := self._refresher.taken(name)
            ) > FIRST_LISTING:  # remembered: no search waits for it again
                self._merged(Failed(name, f"it had not listed its tools after {taken:.0f} s", at=time.time()))
        if self._indexing is not None:
            self._indexing.cancel()
            await asyncio.wait({self._indexing})
        await self._refresher.close()
        await self._pool.close()
        if self._writing is not None:
            await asyncio.wait({self._writing})
        if self._saving is not None:
            self._saving.cancel()
            self._tell(self.save())

    async def call(self, name: str, arguments: bytes | None, context: Context) -> bytes:
        """The `CallToolResult` (JSON text) of `tools/call`.

        What went wrong is a result the model can read. Raises only what must be a JSON-RPC error:
        UpstreamRpcError (the upstream's own, passed on) and UnknownToolError for a ``name`` that isn't one of
        our tools.
        """
        handler = self._handlers.get(name)
        if handler is None:
            known = self._visible.get(name) is not None
            hint = f"{metatools.EXECUTE} with name {name!r}" if known else ""
            raise UnknownToolError(name, (hint,) if hint else tuple(self._handlers))
        try:
            return await handler(arguments, context)
        except UpstreamRpcError:
            raise
        except McpzipError as error:
            return error_result(str(error))

    async def search(self, question: Question) -> Results:
        """Searches the catalog, waiting a moment for servers that were never listed."""
        if question.filters.server is None:
            await self._first_listings(
                self._enabled, lambda: OTHERS_LISTING if self._visible.entries else FIRST_LISTING
            )
        else:
            await self._first_listings([question.filters.server], lambda: FIRST_LISTING)
        while self._indexed != self._visible.version:
            self._index_soon()
            if self._indexing is not None:
                await asyncio.shield(self._indexing)
        return self._searcher.search(question.query, question.limit, question.filters)

    async def find(self, name: str) -> Entry:
        """The tool called ``name``, waiting a moment for a first listing. Raises UnknownToolError, and
        UpstreamUnavailableError when nothing is known of the server that ``name`` names.
        """
        entry = self._visible.get(name)
        if entry is None:
            parts = split(name)
            await self._first_listings([parts[0]] if parts else self._enabled, lambda: FIRST_LISTING)
            entry = self._visible.get(name)
            if entry is None and parts:
                self._ask_of(parts[0])
        if entry is None:
            raise UnknownToolError(name, self._visible.nearest(name))
        return entry

    def _ask_of(self, server: str) -> None:
        """Raises UpstreamUnavailableError when ``server`` has no tools because it could not be listed."""
        record = self._visible.servers.get(server)
        why = self.troubles().get(server)
        if why and (record is None or record.fetched_at is None):
            raise UpstreamUnavailableError(server, why)

    async def execute(self, name: str, arguments: bytes, timeout: float | None, context: Context) -> bytes:
        """Runs a tool and returns the upstream's result. timeout: seconds, None for the configured one.

        Raises UnknownToolError, UpstreamError and its kinds.
        """
        entry = await self.find(name)
        configured = self.config.servers[entry.server].timeout or self.config.call_timeout
        result = await execute.run(
            self._pool,
            entry,
            arguments,
            meta=context.meta,
            timeout=timeout or configured,
            on_progress=context.on_progress,
        )
        if self._catalog.servers[entry.server].stale:  # it is back: see what it has now
            self._refresher.start(entry.server)
        return result

    async def refresh(self, servers: Iterable[str] | None = None) -> list[Update]:
        """Lists ``servers`` (default: all that are enabled) now."""
        return await self._refresher.refresh(self._enabled if servers is None else servers)

    def status(self) -> list[ServerStatus]:
        """How every configured server is doing."""
        health = {name: self._pool.health(name) for name in self.config.servers}
        return statuses(self.config.servers, self._visible, health)

    def troubles(self) -> dict[str, str]:
        """Why a server's tools could not be searched live, by name; servers that are fine are not in it."""
        found = {}
        for one in self.status():
            if one.state == "failing":
                found[one.name] = one.reason
            elif one.listed_at is None and self._refresher.listing(one.name) is not None:
                found[one.name] = "it is still starting"
        return found

    def save(self) -> tuple[str, ...]:
        """Writes the snapshot now. Returns warnings."""
        self._saving = None
        path = self.config.path
        return snapshot.save(paths.snapshot_path(path), path, self._catalog)

    async def _search_tools(self, arguments: bytes | None, context: Context) -> bytes:
        question = read_question(arguments, self.config.search.default_limit)
        results = await self.search(question)
        return reply(question, results, self._visible, self.troubles(), time.time())

    async def _describe_tool(self, arguments: bytes | None, context: Context) -> bytes:
        name = read_name(arguments)
        for admin in ADMIN_TOOLS:
            if name == admin.tool:
                return text_result(f"{admin.tool}: {admin.description}. It takes no arguments.")
        entry = await self.find(name)
        return described(entry, self._visible.servers[entry.server], time.time())

    async def _execute_tool(self, arguments: bytes | None, context: Context) -> bytes:
        call = read_call(arguments)
        if call.name == metatools.STATUS:
            return text_result(as_text(self.status(), time.time()))
        if call.name == metatools.REFRESH:
            if listings := [self._refresher.start(name) for name in self._enabled]:
                await asyncio.wait(listings, timeout=call.timeout or REFRESHING)
            return text_result(as_text(self.status(), time.time()))
        return await self.execute(call.name, call.arguments, call.timeout, context)

    async def _first_listings(self, servers: Iterable[str], patience: Callable[[], float]) -> None:
        """Waits for the listings under way of those ``servers`` that were never listed.

        patience: how many seconds a listing may have taken in all; asked again whenever one is done.
        """
        never = [name for name in servers if self._never_listed(name)]
        while under_way := {task for name in never if (task := self._refresher.listing(name)) is not None}:
            taken = max(self._refresher.taken(name) for name in never)
            left = patience() - taken
            if left <= 0:
                return
            await asyncio.wait(under_way, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def _never_listed(self, server: str) -> bool:
        record = self._catalog.servers.get(server)
        return record is None or (record.fetched_at is None and not record.stale)

    def _merged(self, update: Update) -> None:
        self._catalog = merge(self._catalog, [update])
        self._visible = allowed(self._catalog, self.config.servers)
        if self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(SAVE_AFTER, self._save_in_background)
        self._index_soon()

    def _save_in_background(self) -> None:
        self._saving = None
        self._writing = asyncio.create_task(self._write(self._writing, self._catalog), name="save")

    async def _write(self, before: "asyncio.Task[None] | None", catalog: Catalog) -> None:
        if before is not None:  # an older catalog must not land on top of a newer one
            await asyncio.wait({before})
        path = self.config.path
        self._tell(await in_thread(lambda: snapshot.save(paths.snapshot_path(path), path, catalog), "save"))

    def _tell(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self._warn(warning)

    def _index_soon(self) -> None:
        if self._indexing is None and self._indexed != self._visible.version:
            self._indexing = asyncio.create_task(self._index(), name="index")

    async def _index(self) -> None:
        try:
            visible = self._visible
            entries = (*visible.entries, *ADMIN_TOOLS)
            await in_thread(lambda: self._searcher.index(entries, visible.version), "index")
            self._indexed = visible.version
        finally:
            self._indexing = None
        self._index_soon()
