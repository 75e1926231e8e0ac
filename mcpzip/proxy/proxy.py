"""The proxy: a catalog, a search over it, and the connections behind it.

The rule: nothing waits for an upstream that the request at hand doesn't need.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from mcpzip.auth.sign_ins import SignIns
from mcpzip.catalog import Catalog, Failed, Update
from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.errors import (
    McpzipError,
    UnknownToolError,
    UpstreamLostError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from mcpzip.model.limits import ASKED_NAME
from mcpzip.proxy import execute, metatools
from mcpzip.proxy.argument_repair import repair_name
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.client_binding import ClientBinding, any_client
from mcpzip.proxy.client_capabilities import covers
from mcpzip.proxy.exchange import NOT_FIELDS, Client, Exchange
from mcpzip.proxy.exposure import Exposure, looked_up
from mcpzip.proxy.first_listings import FIRST_LISTING, FirstListings
from mcpzip.proxy.handlers import handlers
from mcpzip.proxy.notifier import Notifier
from mcpzip.proxy.owners import may_mean, not_fully_known
from mcpzip.proxy.passthrough import Passthrough
from mcpzip.proxy.pipeline import CallPipeline
from mcpzip.proxy.refresh import Refresher
from mcpzip.proxy.reply import error_result
from mcpzip.proxy.search import Pending, Question, SearchReport
from mcpzip.proxy.status import ServerStatus, failures, statuses
from mcpzip.proxy.tool_search import ToolSearch
from mcpzip.proxy.workers import computed
from mcpzip.search import Searcher
from mcpzip.transport.base import NOBODY, BoundClient, Origin
from mcpzip.transport.health import FAILING, Health, Rest
from mcpzip.transport.pool import Pool
from mcpzip.wire import (
    Era,
    JsonRpcError,
    UpstreamRpcError,
    quote,
)
from mcpzip.wire.client_info import CLIENT_INFO

FRESH = 30.0
"""Seconds for which no tool list is fetched again because its server called it good for a shorter time."""


class Proxy:
    """All of mcpzip behind the downstream protocol. Everything runs on one event loop.

    notifier: who is told of changes. passthrough: requests that aren't about tools.
    """

    def __init__(
        self, config: Config, catalog: Catalog, warn: Callable[[str], None] = lambda warning: None
    ) -> None:
        """catalog: as the snapshot had it. warn: is told, once each, what is wrong with keeping it."""
        self.config = config
        self.notifier = Notifier()
        self._enabled = {name: server for name, server in config.servers.items() if not server.disabled}
        self._catalog_state = CatalogState(config, catalog, warn, self._lists_differ)
        self._finder = ToolSearch.of(config, warn)
        known = self._catalog_state.catalog.servers
        self._pool = Pool(
            config.servers.values(),
            idle_timeout=config.idle_timeout,
            sign_ins=SignIns(config, warn),
            protocols={name: record.protocol for name, record in known.items() if record.protocol},
            on_list_changed=self._list_changed,
            on_resource_updated=self._resource_updated,
        )
        self._home: Origin = NOBODY
        self._refresher = Refresher(config.servers.values(), self._pool, self._merge, lambda: self._home)
        for name, record in known.items():
            if record.fetched_at is not None:
                rest = Rest(record.prompts, record.resources, record.templates)
                self._refresher.remember(name, rest)
        self._pipeline = CallPipeline(self._pool)
        self.passthrough = Passthrough(config, self, self._pool, self._pipeline, self.notifier)
        self._first_listings = FirstListings(self._enabled, self._catalog_state, self._refresher, self._pool)
        self._handlers = handlers(self)

    @property
    def catalog(self) -> Catalog:
        """What a client may see of the catalog."""
        return self._catalog_state.visible

    @property
    def exposure(self) -> Exposure:
        """How a client is shown it."""
        return self._catalog_state.exposure

    def _merge(self, update: Update) -> None:
        """A server said what it has, or nothing."""
        self._catalog_state.merge(update)
        self._finder.index(self.catalog)

    def start(self, client: Client | None = None) -> None:
        """Begins indexing what is already known, and listing every server in the background. client: the only
        one there can be, if there is only one: its connections are used for that.
        """
        if client is None:
            self._home = any_client()
        elif client.era is not None:
            self._home = self._pipeline.origin(client)
        indexing = self._catalog_state.index_soon()
        self._finder.index(self.catalog)
        self._refresher.keep_trying()
        self._catalog_state.tidy()
        for name in self._enabled:
            if self._first_listings.never(name):
                self._refresher.start(name)
        # A first search waits for the index: the processes of servers it knows already would only delay it.
        if indexing is None:
            self._list_all()
        else:
            indexing.add_done_callback(lambda task: None if task.cancelled() else self._list_all())

    def _list_all(self) -> None:
        for name in self._enabled:
            self._refresher.start(name)

    def joined(self, client: Client) -> None:
        """``client`` has come, and will be there for more than one request."""
        self.notifier.joined(client)

    async def left(self, client: Client) -> None:
        """``client`` is gone: what was kept for it ends."""
        await self._pipeline.left(client)
        await self.passthrough.forget(client)

    def known_greeting(self) -> tuple[bytes, bytes, str | None] | None:
        """In ``transparent``, what the upstream said of itself last: its capabilities and its
        `Implementation` as JSON texts, its instructions. None when that isn't known.
        """
        record = self.catalog.servers.get(self.exposure.through or "")
        if record is None or record.fetched_at is None or not record.info:
            return None
        return record.capabilities, record.info, record.instructions or None

    async def greeting(self) -> tuple[bytes, bytes, str | None]:
        """The same, asked for. Raises UpstreamUnavailableError."""
        greeting = await self._pool.server_info(self.exposure.through or "", self._home)
        return greeting.capabilities, greeting.info or CLIENT_INFO, greeting.instructions or None

    async def speaks(self, client: Client, server: str) -> Era:
        """The era in which ``server`` is spoken to for ``client``. Raises UpstreamUnavailableError."""
        return await self._pipeline.upstream_era(client, server)

    async def set_level(self, client: Client, level: str) -> None:
        """From now on ``client`` wants log messages from ``level`` on."""
        client.log_level = level
        await self._pipeline.set_level(client)

    async def tell_all(self, client: Client, method: str, params: bytes | None) -> None:
        """Hands a notification of ``client`` on to every server it has a connection of its own to."""
        if not self._pipeline.knows(client):
            return
        binding = self._pipeline.binding(client)
        telling = (self._pool.notify(name, binding, method, params) for name in self._enabled)
        await asyncio.gather(*telling)

    def _list_changed(self, server: str, which: str | None, origin: Origin) -> None:
        home = self._home
        if origin.era is Era.MODERN:
            self._refresher.changed(server, replace(home, era=Era.MODERN))
        elif origin.bound_client is not None and covers(origin.bound_client.capabilities, home.capabilities):
            self._refresher.changed(server, origin)
        else:  # what one client can't be asked is no reason to show the others less
            self._refresher.changed(server)
        if which is not None and self.exposure.through is not None:
            self.notifier.changed([which])

    def _lists_differ(self, which: Iterable[str]) -> None:
        # What passes through untouched is told of as the server does, whether anything differs or not.
        if self.exposure.through is None:
            self.notifier.changed(which)

    def _resource_updated(self, server: str, bound_client: BoundClient | None, params: bytes) -> None:
        only = bound_client.client if isinstance(bound_client, ClientBinding) else None
        self.notifier.updated(server, params, only, unasked=self.exposure.through is not None)

    async def close(self) -> None:
        """Ends every connection and process; the catalog is on disk afterwards. Takes about a second."""
        for name in self._enabled:
            if (
                taken := self._refresher.taken(name)
            ) > FIRST_LISTING:  # remembered: no search waits for it again
                self._catalog_state.merge(
                    Failed(name, f"it had not listed its tools after {taken:.0f} s", at=time.time())
                )
        self.notifier.close()
        await self._catalog_state.stop_indexing()
        await self._refresher.close()
        await self.passthrough.close()
        await self._pipeline.close()
        await self._pool.close()
        await self._finder.close()
        await self._catalog_state.close()

    async def call(self, name: str, arguments: bytes | None, exchange: Exchange) -> bytes:
        """The `CallToolResult` (JSON text) of `tools/call`.

        What went wrong is a result the model can read. Raises only what must be a JSON-RPC error:
        UpstreamRpcError (the upstream's own, passed on), JsonRpcError, and UnknownToolError for a ``name``
        that isn't one of those `tools/list` shows.
        """
        shown = self.exposure
        handler = self._handlers.get(name) if self.config.expose == "meta" else None
        try:
            if handler is not None:
                return await handler(arguments, exchange)
            entry = await looked_up(shown, lambda: shown.target(name))
            if entry is None and self.config.expose != "meta":
                for server in may_mean(name, self._enabled):
                    self._pool.starts.hurry(server)
                await self._first_listings.wait()
                now = self.exposure
                entry = await looked_up(now, lambda: now.target(name))
            if entry is not None:
                return await self._direct(entry, exchange)
            if shown.through is not None:
                return await self.passthrough.through("tools/call", exchange, shown.through)
        except (UpstreamRpcError, JsonRpcError):
            raise
        except McpzipError as error:
            return error_result(str(error))
        raise await computed(lambda: self._not_shown(name), "name")

    def _not_shown(self, name: str) -> UnknownToolError:
        """Nothing of this name is shown: what to call in its place."""
        if self.config.expose != "meta":
            return UnknownToolError(
                name, self.catalog.nearest(name), "List the tools to see which there are."
            )
        if self.catalog.get(name) is not None:
            return UnknownToolError(name, (f"{metatools.EXECUTE} with name {name!r}",))
        pinned = [near for near in self.catalog.nearest(name) if self.exposure.target(near) is not None]
        return UnknownToolError(name, (*pinned, *self._handlers))

    async def _direct(self, entry: Entry, exchange: Exchange) -> bytes:
        """Calls a tool that was shown by its own name. Nothing is repaired: the client has its schema."""
        fields = {key: value for key, value in exchange.fields.items() if key not in NOT_FIELDS}
        return await self._called(entry, {**fields, "name": quote(entry.tool)}, None, exchange)

    async def search(self, question: Question) -> SearchReport:
        """Searches the catalog, waiting a moment for servers that were never listed."""
        await self._first_listings.for_search(question.filters.server)
        self._refresh_expired()
        searcher = await self._catalog_state.searcher()
        catalog, health = self.catalog, self._health(self._enabled)
        pending = self._pending(health)
        troubles = failures(catalog, health) | dict.fromkeys(pending.starting, "it is still starting")
        failing = frozenset(name for name, one in health.items() if one.state in FAILING)
        results = await self._finder.find(question, searcher, catalog, failing)
        return SearchReport(results, catalog, troubles, pending)

    def _health(self, servers: Iterable[str]) -> dict[str, Health]:
        return {name: self._pool.health(name) for name in servers}

    def _pending(self, health: Mapping[str, Health]) -> Pending:
        """The servers whose tools will be found in a moment. health: of all that are enabled."""
        starting = (
            name
            for name in self._enabled
            if self._first_listings.never(name)
            and self._refresher.listing(name) is not None
            and health[name].state not in FAILING  # has a reason, which is shown while it is tried again
        )
        return Pending(tuple(starting), tuple(self._catalog_state.unindexed()))

    async def settled(self) -> None:
        """When all that search can ask has taken in the catalog: for whoever has time."""
        await self._catalog_state.indexed()
        self._finder.index(self.catalog)
        await self._finder.settled()

    async def searcher(self) -> Searcher:
        """What `search` searches with."""
        return await self._catalog_state.searcher()

    def _refresh_expired(self) -> None:
        """Lists servers anew whose lists are no longer good (spec 2026-07-28: server/utilities/caching)."""
        now = time.time()
        for name, record in self.catalog.servers.items():
            if record.ttl is None or record.fetched_at is None or record.stale:
                continue
            if now > record.fetched_at + max(record.ttl, FRESH):
                self._refresher.start(name)

    async def find(self, name: str) -> Entry:
        """The tool meant by ``name``, waiting for a first listing. Raises UnknownToolError, and
        UpstreamUnavailableError when nothing is known of the server that ``name`` names.
        """
        return (await self.meant(name))[0]

    async def meant(self, name: str, timeout: float | None = None) -> tuple[Entry, str | None]:
        """The same, and what had to be repaired in the name. timeout: seconds for the call that it is for."""
        if entry := self.catalog.get(name):
            return entry, None
        if len(name) > ASKED_NAME:
            raise UnknownToolError(name)
        named = may_mean(name, self.config.servers)
        if enabled := [server for server in named if server in self._enabled]:
            await self._first_listings.for_call(enabled, lambda server: timeout or self._timeout_of(server))
        else:
            await self._first_listings.wait()
        if self.catalog.get(name) is None:
            for server in named:
                self._ask_of(server)
        catalog, known, servers = self.catalog, self._catalog_state.catalog, self.config.servers
        unsure = not_fully_known(known, servers)
        return await computed(  # it is compared with all there are
            lambda: repair_name(name, catalog, known=known, servers=servers, unsure=unsure), "name"
        )

    def _ask_of(self, server: str) -> None:
        """Raises UpstreamUnavailableError when ``server`` has no tools because it could not be listed."""
        catalog = self.catalog
        record = catalog.servers.get(server)
        if record is not None and record.fetched_at is not None:
            return
        health = self._health(self._enabled)
        if server in self._pending(health).starting:
            raise UpstreamUnavailableError(server, "it is still starting")
        if reason := failures(catalog, {server: self._pool.health(server)}).get(server):
            raise UpstreamUnavailableError(server, reason)

    async def execute(
        self, entry: Entry, arguments: bytes, timeout: float | None, exchange: Exchange
    ) -> bytes:
        """Calls a tool for a client and returns the upstream's result, untouched, or what it asks first.

        arguments: JSON text of an object. timeout: seconds, None for the configured one. Raises JsonRpcError,
        UpstreamError and its kinds; the text of an error that leaves the outcome open says so.
        """
        result = await self._called(
            entry, {"name": quote(entry.tool), "arguments": arguments}, timeout, exchange
        )
        self._finder.used(entry, result)
        return result

    async def _called(
        self, entry: Entry, fields: dict[str, bytes], timeout: float | None, exchange: Exchange
    ) -> bytes:
        """fields: the members of the params, as JSON texts."""
        request = execute.request(entry, fields, timeout or self._timeout_of(entry.server))
        try:
            result = await self._pipeline.send(exchange, request)
        except (UpstreamTimeoutError, UpstreamLostError) as error:
            if isinstance(error, UpstreamLostError) and not error.may_have_run:
                raise
            raise execute.unknown_outcome(entry, error.reason) from error
        self.passthrough.mentions.heard(exchange.client, entry.server, "tools/call", result)
        if self._catalog_state.catalog.servers[entry.server].stale:  # it is back: see what it has now
            self._refresher.start(entry.server)
        return result

    def _timeout_of(self, server: str) -> float:
        """Seconds a call to ``server`` may take."""
        return self.config.servers[server].timeout or self.config.call_timeout

    @property
    def unsettled(self) -> bool:
        """Whether there is a server that was never listed, or not to the end."""
        return self._first_listings.unsettled

    async def listed(self) -> Exposure:
        """What is shown, once every server has been listed that never was; after a moment, without them."""
        await self._first_listings.all()
        return self.exposure

    def start_listing(self) -> "list[asyncio.Task[Update]]":
        """Begins to list every server, if that is not under way."""
        return [self._refresher.start(name) for name in self._enabled]

    async def refresh(self, servers: Iterable[str] | None = None) -> list[Update]:
        """Lists ``servers`` (default: all that are enabled) now."""
        return await self._refresher.refresh(self._enabled if servers is None else servers)

    def status(self) -> list[ServerStatus]:
        """How every configured server is doing."""
        servers = self.config.servers
        return statuses(servers, self.catalog, self._health(servers), self._catalog_state.in_brief())
