"""The proxy: connects the catalog, the search and the upstream connections to the requests of clients.

The rule: a request waits only for the upstreams that it needs.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcpzip.auth.sign_ins import SignIns
from mcpzip.catalog import Catalog, Failed, Listed, Update
from mcpzip.config import Config, ServerConfig
from mcpzip.config.diff import ConfigDiff, applicable, compare
from mcpzip.model.principal import Principal
from mcpzip.pins.gate import Gate
from mcpzip.proxy.catalog_state import INDEX_AFTER, CatalogState
from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.exposure import Exposure
from mcpzip.proxy.first_listings import FIRST_LISTING, FirstListings
from mcpzip.proxy.guard import Guard
from mcpzip.proxy.handlers import handlers
from mcpzip.proxy.heard import Heard
from mcpzip.proxy.list_renewal import ListRenewal
from mcpzip.proxy.listing_origins import ListingOrigins
from mcpzip.proxy.name_resolution import NameResolver
from mcpzip.proxy.notifier import ALL_LISTS, Notifier
from mcpzip.proxy.passthrough import Passthrough
from mcpzip.proxy.pipeline import CallPipeline
from mcpzip.proxy.processes import OpenConnection, open_connections
from mcpzip.proxy.refresh import ANY_AGE, Refresher
from mcpzip.proxy.reviews import Reviews
from mcpzip.proxy.search_request import PendingServers, SearchReport, SearchRequest
from mcpzip.proxy.sharing import Sharing
from mcpzip.proxy.shown_tools import ShownTools
from mcpzip.proxy.statistics import Statistics
from mcpzip.proxy.status import ServerStatus, failures, statuses, statuses_of_view
from mcpzip.proxy.tool_caller import ToolCaller
from mcpzip.proxy.tool_search import ToolSearch
from mcpzip.proxy.unset_variables import with_reasons
from mcpzip.proxy.views import Views
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import BoundClient, Origin
from mcpzip.transport.health import FAILING, Health, Rest
from mcpzip.transport.pool import Pool
from mcpzip.wire import Era
from mcpzip.wire.client_info import CLIENT_INFO

if TYPE_CHECKING:
    from mcpzip.proxy.person_upstreams import UpstreamsByPerson
    from mcpzip.search import Searcher


class Proxy:
    """Answers the requests of all clients. Everything runs on one event loop.

    notifier: notifies clients of changes. views: what each person may see. passthrough: requests about
    prompts, resources and completions. resolver: finds tools by their names. tool_caller: calls tools.
    handlers: the tools that mcpzip itself runs, by name. guard: keeps requests from what is held back.
    reviews: what a person decides about that. statistics: what clients did so far. heard: what is odd about
    errors and questions of servers. config_notes: sentences about the config file for `proxy_status`.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        warn: Callable[[str], None] = lambda warning: None,
        environment: Mapping[str, str] = os.environ,
        searcher: "Searcher | None" = None,
    ) -> None:
        """catalog: from the snapshot. warn: called once for each problem with the files in the state
        folder. environment: of which servers inherit a part. searcher: see `CatalogState`.
        """
        self._configured, config = config, with_reasons(config, catalog)
        self.config_notes = config.notes
        self.statistics, self.heard = Statistics(), Heard()
        self.notifier = Notifier()
        self._current = current = CurrentConfig(config)
        self._catalog_state = CatalogState(config, catalog, warn, self._notify_lists_changed, searcher)
        self._tool_search = ToolSearch.of(config, warn)
        self._gate = Gate(config, lambda: self._catalog_state.catalog, warn)
        records = self._catalog_state.catalog.servers
        self._given = SignIns(config, warn, environment), self._gate, environment
        self._pool = Pool(
            config.servers.values(),
            idle_timeout=config.idle_timeout,
            sign_ins=self._given[0],
            protocols=self._protocols(),
            on_list_changed=self._list_changed,
            on_resource_updated=self._resource_updated,
            on_question=self._asked,
            environment=environment,
        )
        self._sharing = Sharing(current)
        self._pipeline = CallPipeline(self._pool, self._sharing, self.heard)
        self._origins = ListingOrigins(self._pipeline)
        self._refresher = Refresher(
            config.servers.values(),
            self._pool,
            self._merge,
            lambda server: self._origins.of(server, self.notifier.clients),
            self._admit,
        )
        self._list_renewal = ListRenewal(current, self._catalog_state, self._refresher)
        self.guard = Guard(self._gate, lambda: self.catalog, self._refresher)
        for name, record in records.items():
            if record.fetched_at is not None:
                rest = Rest(record.prompts, record.resources, record.templates)
                self._refresher.set_last_rest(name, rest)
        self.views = Views(current, self._catalog_state)
        self.notifier.may_hear, self.views.open_upstreams = self.views.may_hear, self._open_upstreams
        self.passthrough = Passthrough(
            current, self.views, self._pool, self._pipeline, self.notifier, self.guard
        )
        self._first_listings = FirstListings(current, self._catalog_state, self._refresher, self._pool)
        self.resolver = NameResolver(current, self.views, self._first_listings, self._pool, self._gate)
        of_reviews = self._refresher, self.notifier, self._tool_search, self.views
        self.reviews = Reviews(self._gate, current, self._catalog_state, *of_reviews)
        self.tool_caller = ToolCaller(
            current,
            self._pipeline,
            self.passthrough.uri_sources,
            self._catalog_state,
            self._refresher,
            self._tool_search,
            self.statistics,
            self.heard,
            warn,
        )
        self.tool_caller.check_access, self.tool_caller.offered = self.views.check_call, self.views.offered
        self.tool_caller.pipeline_of = self.passthrough.pipeline_of
        self.tool_caller.results.is_allowed = self.views.may_have_result
        self.passthrough.saw, self.passthrough.results = self.tool_caller.saw, self.tool_caller.results
        self.handlers = handlers(self)
        self._shown_tools = ShownTools(
            current,
            self.views,
            self.handlers,
            self.tool_caller,
            self.passthrough,
            self._first_listings,
            self.guard,
            self._pool,
            self.statistics,
        )
        self._indexing_timer: asyncio.TimerHandle | None = None

    @property
    def config(self) -> Config:
        """The config in use."""
        return self._current.config

    @property
    def _enabled(self) -> Mapping[str, ServerConfig]:
        return self._current.enabled

    @property
    def catalog(self) -> Catalog:
        """The part of the catalog that clients may see."""
        return self._catalog_state.visible

    @property
    def exposure(self) -> Exposure:
        """The lists and names under which clients see `catalog`."""
        return self._catalog_state.exposure

    # --- start and end ---

    def start(self, client: Client | None = None, folder: str | None = None) -> None:
        """Begins listing in the background the servers that were never listed, and soon indexing the catalog
        and listing those that were listed long ago.

        client: the only client that there can be, as on stdio; servers are listed on its connections.
        folder: where servers run that are started to be listed; None for ours.
        """
        self._origins.start(client, folder)
        self._indexing_timer = asyncio.get_running_loop().call_later(INDEX_AFTER, self._index_and_renew)
        self._tool_search.index(self.catalog)
        self._refresher.keep_trying()
        self.tool_caller.start()
        self._catalog_state.remove_drafts()
        if self.config.store is not None:
            self._given[0].begin()
            self._refresher.share(self.config, self._list_renewal.listed_at)
        for name in filter(self._first_listings.is_unlisted, self._current.for_all):
            self._refresher.start(name, ANY_AGE)

    def _index_and_renew(self) -> None:
        self.reviews.take_up()
        indexing = self._catalog_state.index_for_clients()
        # The other servers are listed after indexing: starting their processes would delay the first search.
        if indexing is None:
            self._list_renewal.renew_old()
        else:
            indexing.add_done_callback(
                lambda task: None if task.cancelled() else self._list_renewal.renew_old()
            )

    async def close(self) -> None:
        """Closes all connections, ends all processes, and saves the catalog. Takes a fraction of a second."""
        for name in self._enabled:
            seconds = self._refresher.listing_time(name)
            if seconds > FIRST_LISTING:  # recorded as a failure, so that no later search waits for it again
                reason = f"it had not listed its tools after {seconds:.0f} s"
                self._catalog_state.merge(Failed(name, reason, at=time.time()))
        if self._indexing_timer is not None:
            self._indexing_timer.cancel()
        self.notifier.close()
        await self.reviews.close()
        await self._catalog_state.stop_indexing()
        await self._refresher.close()
        await self.passthrough.close()
        await self._pipeline.close()
        await self.views.close()
        # At the same time, so that the catalog is saved before an impatient client kills mcpzip.
        await asyncio.gather(
            self._catalog_state.close(),
            self._pool.close(),
            self._tool_search.close(),
            self._sharing.close(),
            self._first_listings.close(),
            self.tool_caller.close(),
            self.heard.close(),
            in_thread(self._gate.close, "pins"),
        )

    # --- edits of the config ---

    def reconfigure(self, edited: Config) -> ConfigDiff:
        """Uses ``edited``, the new content of the same file, as far as that is possible while mcpzip runs.
        Returns what has changed. What an unchanged server does is not interrupted.
        """
        diff = compare(self._configured, edited)
        self.config_notes = (*edited.notes, *diff.notes)
        if diff.deferred:
            return diff
        self._configured = applicable(self._configured, edited)
        servers_before = self.config.servers
        config = with_reasons(self._configured, self._catalog_state.catalog)
        self._current.replace(config)
        servers, disconnected = config.servers.values(), diff.disconnected
        self._gate.reconfigure(config)
        self._refresher.reconfigure(servers, disconnected)
        self._catalog_state.reconfigure(config)
        self._pool.reconfigure(
            servers,
            idle_timeout=config.idle_timeout,
            disconnected=disconnected,
            protocols=self._protocols(),
            watched=self.notifier.shared_watches,
        )
        self.views.reconfigure(disconnected)
        self.passthrough.uri_sources.reconfigure(len(self._enabled), disconnected)
        self._tool_search.reconfigure(config)
        self._tool_search.index(self.catalog)
        through = self.exposure.transparent_server is not None
        if "access" in diff.settings or (through and disconnected):
            self.notifier.lists_changed(ALL_LISTS)
        records = self.catalog.servers
        self.reviews.trust_changed(servers_before)
        for name in (*diff.added, *diff.reconnected):
            if name in self._enabled and (self._first_listings.is_unlisted(name) or records[name].stale):
                self._refresher.start(name, ANY_AGE)
        return diff

    def disconnect(self, server: str, *, again: bool) -> None:
        """Ends the connections to ``server``, which is configured, and its processes. again: whether it is
        connected and listed anew at once, instead of when it is needed.
        """
        servers = self.config.servers.values()
        self._refresher.reconfigure(servers, (server,))
        self._pool.reconfigure(
            servers,
            idle_timeout=self.config.idle_timeout,
            disconnected=(server,),
            protocols=self._protocols(),
            watched=self.notifier.shared_watches,
            drain=0.0,
        )
        if again:
            self._first_listings.answered(server)
            self._refresher.start(server)

    def open_connections(self) -> list[OpenConnection]:
        """The connections to servers that are usable now."""
        return open_connections(self._pool, iter(self.config.servers))

    def _protocols(self) -> dict[str, str]:
        """The protocol version that each server spoke last, by name."""
        records = self._catalog_state.catalog.servers
        return {name: record.protocol for name, record in records.items() if record.protocol}

    # --- clients ---

    def add_client(self, client: Client) -> None:
        """Begins to notify ``client``, which will send more than one request."""
        self.notifier.add_client(client)

    def has_parked_calls(self, client: Client | None = None) -> bool:
        """Whether a call waits for ``client`` (default: any) to come back with answers."""
        return any(each.parked.has_any(client) for each in self.passthrough.pipelines)

    async def remove_client(self, client: Client) -> None:
        """Ends everything that was kept for ``client``, which has disconnected."""
        self.tool_caller.remove_client(client)
        await self.passthrough.remove_client(client)

    def cached_server_info(self) -> tuple[bytes, bytes, str | None] | None:
        """In ``transparent`` mode, from the catalog: the upstream's capabilities and `Implementation` as JSON
        texts, and its instructions. None when they aren't known.
        """
        record = self.catalog.servers.get(self.exposure.transparent_server or "")
        if record is None or record.fetched_at is None or not record.info:
            return None
        return record.capabilities, record.info, record.instructions or None

    async def server_info(self) -> tuple[bytes, bytes, str | None]:
        """`cached_server_info`, but requested from the upstream. Raises UpstreamUnavailableError."""
        server = self.exposure.transparent_server or ""
        info = await self._pool.server_info(server, self._origins.default)
        shown, instructions = await self.guard.cleaned_handshake(server, info.info, info.instructions)
        return info.capabilities, shown or CLIENT_INFO, instructions or None

    async def upstream_era(self, client: Client, server: str) -> Era:
        """The era that mcpzip speaks with ``server`` for ``client``. Raises UpstreamUnavailableError."""
        return await self._pipeline.upstream_era(client, server)

    async def set_level(self, client: Client, level: str) -> None:
        """Sets the lowest level of log messages that ``client`` wants, here and at its servers."""
        client.log_level = level
        for each in self.passthrough.pipelines:
            await each.set_level(client)

    async def notify_servers(self, client: Client, method: str, params: bytes | None) -> None:
        """Passes a notification of ``client`` on to every server that it has a connection of its own to, and
        that its roots have changed also to others.
        """
        for each in self.passthrough.pipelines:
            await each.notify_servers(self._enabled, client, method, params)

    def _open_upstreams(self) -> "UpstreamsByPerson":
        from mcpzip.proxy.person_upstreams import Surroundings, UpstreamsByPerson  # most configs need none

        of_all = self._current, lambda: self.catalog, self._sharing, self.heard, self.notifier
        return UpstreamsByPerson(Surroundings(*of_all, *self._given), lambda: self.views.sign_ins_page)

    # --- changes ---

    def _merge(self, update: Update) -> None:
        if isinstance(update, Listed):
            self._first_listings.answered(update.server)
        self._catalog_state.merge(update)
        self.reviews.merged(update.server)
        self._tool_search.index(self.catalog)

    def _admit(self, update: Listed) -> Listed:
        """What may be offered of ``update``. Called in a thread."""
        return self._gate.admit(update, self._catalog_state.catalog.servers.get(update.server))

    def _list_changed(self, server: str, which: str | None, origin: Origin) -> None:
        self._refresher.changed(server, self._origins.after_change(origin))
        if which is not None and self.exposure.transparent_server is not None:
            self.notifier.lists_changed([which])

    def _notify_lists_changed(self, which: Iterable[str]) -> None:
        # In transparent mode every notification of the server is passed on, whether a list differs or not.
        if self.exposure.transparent_server is None:
            self.notifier.lists_changed(which)

    def _resource_updated(self, server: str, bound_client: BoundClient | None, params: bytes) -> None:
        only = bound_client.client if isinstance(bound_client, ClientBinding) else None
        if self.guard.tells_of(server, params):
            return
        transparent = self.exposure.transparent_server is not None
        self.notifier.resource_updated(server, params, only, to_unsubscribed=transparent)

    def _asked(self, server: str, bound_client: BoundClient, method: str, params: bytes | None) -> None:
        exchange = bound_client.exchange(server) if isinstance(bound_client, ClientBinding) else None
        self.heard.asked(exchange, server, method, params)

    # --- calls ---

    def call(self, name: str, arguments: bytes | None, exchange: Exchange) -> Coroutine[None, None, bytes]:
        """The `CallToolResult` (JSON text) of `tools/call`. Most errors are results with ``isError``, which
        the model can read. Raises only what must be a JSON-RPC error: UpstreamRpcError (the upstream's own,
        passed on), JsonRpcError, and UnknownToolError for a ``name`` that `tools/list` doesn't show.
        """
        return self._shown_tools.call(name, arguments, exchange)

    # --- search ---

    async def search(self, request: SearchRequest, principal: Principal | None = None) -> SearchReport:
        """Searches what ``principal`` may use, after a short wait for servers that were never listed."""
        self.statistics.searches += 1
        await self.reviews.wait_for_search()
        await self._first_listings.wait_for_search(request.filters.server)
        self._list_renewal.renew_expired()
        searcher = await self.views.searcher(principal)
        view = self.views.of(principal)
        health, apart = self._health(view.enabled, principal), self.views.apart(principal)
        shared = [name for name in view.enabled if name not in apart]
        starting = tuple(name for name in shared if self._first_listings.is_starting(name, health[name]))
        unindexed = tuple(name for name in self._catalog_state.unindexed() if name in shared)
        unavailable = failures(view.catalog, health)
        unavailable |= dict.fromkeys(starting, "it is still starting")
        failing = frozenset(name for name, each in health.items() if each.state in FAILING)
        tools = len(view.catalog)
        results = await self._tool_search.search(request, searcher, self.catalog, failing, tools)
        view, pending = self.views.of(principal), PendingServers(starting, unindexed)
        results = self._catalog_state.still_offered(results, view.catalog)
        if not view.is_whole:  # only who uses this machine can review what is held
            return SearchReport(results, view.catalog, unavailable, pending)
        held, problem = self._gate.summaries(), self._gate.problem
        return SearchReport(results, view.catalog, unavailable, pending, held, problem, self.config.path)

    def _health(self, servers: Iterable[str], principal: Principal | None = None) -> dict[str, Health]:
        found = {name: self.views.own(principal, name) for name in servers}
        return {name: (own or self._pool).health(name) for name, own in found.items()}

    async def wait_until_indexed(self) -> None:
        """Waits until the whole catalog is in the local index and in the remote tiers."""
        await self._catalog_state.wait_until_indexed()
        self._tool_search.index(self.catalog)
        await self._tool_search.wait_until_indexed()

    async def searcher(self) -> "Searcher":
        """The index that `search` uses."""
        return await self._catalog_state.searcher()

    # --- listing and status ---

    @property
    def has_unlisted_servers(self) -> bool:
        """Whether some server's tools, or its prompts and resources, were never listed."""
        return self._first_listings.has_unlisted_servers

    async def wait_until_listed(self) -> None:
        """Until every server was listed once, but not for the servers that take too long."""
        await self._first_listings.wait_for_all()

    def start_listing(self, principal: Principal | None = None) -> "list[asyncio.Task[Update]]":
        """Begins to list what isn't being listed of all, and of ``principal``. Returns what is under way."""
        own = self.views.own_upstreams(principal)
        listings = [self._refresher.start(name) for name in self._current.for_all]
        return listings if own is None else [*listings, *own.refresh()]

    def start_listing_of(self, server: str) -> "asyncio.Task[Update]":
        """Begins to list ``server``, which is configured, unless it is being listed. Returns the listing."""
        return self._refresher.start(server)

    async def refresh(self, servers: Iterable[str] | None = None) -> list[Update]:
        """Lists ``servers`` (default: all that are enabled) now."""
        return await self._refresher.refresh(self._current.for_all if servers is None else servers)

    async def wait_for_rests(self, timeout: float) -> list[str]:
        """See `Refresher.wait_for_rests`."""
        return await self._refresher.wait_for_rests(timeout)

    def status(self, principal: Principal | None = None, *, earlier: bool = False) -> list[ServerStatus]:
        """The status of every configured server of which ``principal`` may use anything, sorted by name.
        earlier: see `statuses`.
        """
        view = self.views.of(principal)
        if not view.is_whole:
            health = self._health(view.config.servers, principal)
            return statuses_of_view(view.config.servers, view.catalog, health)
        servers, counts = self.config.servers, self._catalog_state.name_only_counts()
        health, held = self._health(servers), self._gate.summaries()
        found = statuses(servers, self.catalog, health, counts, held, earlier=earlier)
        return [replace(one, suspect=self.heard.suspect(one.name)) for one in found]
