"""Which tool the name in a request means.

The rule: a name that isn't in the catalog waits for the first listing of the servers that it may belong to,
before it is repaired or refused.
"""

from mcpzip.catalog import Catalog
from mcpzip.model.entry import Entry
from mcpzip.model.errors import UnknownToolError, UpstreamUnavailableError
from mcpzip.model.limits import ASKED_NAME
from mcpzip.model.principal import Principal
from mcpzip.pins.gate import Gate
from mcpzip.proxy.argument_repair import repair_name
from mcpzip.proxy.call import timeout_of
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.first_listings import FirstListings
from mcpzip.proxy.server_prefix import candidate_servers, incompletely_known
from mcpzip.proxy.status import failures
from mcpzip.proxy.views import Views
from mcpzip.proxy.workers import run_in_worker
from mcpzip.system.threads import in_thread
from mcpzip.transport.pool import Pool


class NameResolver:
    """Finds tools by their names, exact or nearly so."""

    def __init__(
        self,
        current: CurrentConfig,
        views: Views,
        first_listings: FirstListings,
        pool: Pool,
        gate: Gate,
    ) -> None:
        self._current, self._views, self._gate = current, views, gate
        self._first_listings, self._pool = first_listings, pool

    def exact(self, name: str, principal: Principal | None) -> Entry | None:
        """The tool that is called ``name``, of those that ``principal`` may use."""
        return self._views.of(principal).catalog.get(name)

    async def resolve(
        self, name: str, timeout: float | None = None, principal: Principal | None = None
    ) -> tuple[Entry, str | None]:
        """The tool that ``name`` means, and the repair of the name as a text, None without a repair.

        timeout: of the call that the name is for, in seconds; None for the configured timeout. principal: who
        asks; only what it may use counts. Raises UnknownToolError, InsufficientScopeError if a tool of this
        name could be used with more scopes, and UpstreamUnavailableError when the server that ``name`` begins
        with was never listed.
        """
        view = self._views.of(principal)
        if entry := view.catalog.get(name):
            return entry, None
        if len(name) > ASKED_NAME:
            raise UnknownToolError(name)
        self._views.check_scopes(principal, self._views.offered(principal, name))
        candidates = candidate_servers(name, view.config.servers)
        if enabled := [server for server in candidates if server in view.enabled]:
            await self._first_listings.wait_for_call(
                enabled, lambda server: timeout or timeout_of(self._current.config, server)
            )
        else:
            await self._first_listings.wait()
        view, known = self._views.of(principal), self._views.known(principal)
        servers, catalog = view.config.servers, view.catalog
        if catalog.get(name) is None:
            self._views.check_scopes(principal, self._views.offered(principal, name))
            for server in candidate_servers(name, servers):
                self._check_listed(server, catalog, principal)
        if not self._gate.loaded:
            await in_thread(self._gate.load, "pins")
        holding = frozenset(self._gate.holding)
        if not view.is_whole:
            holding &= frozenset(servers)

        def repaired() -> tuple[Entry, str | None]:
            everything = known()
            # What is held counts as not known, so that a name that it has never means another server's tool.
            incomplete = incompletely_known(everything, servers).union(holding)
            return repair_name(name, catalog, known=everything, servers=servers, incomplete=incomplete)

        return await run_in_worker(repaired, "name")  # the name is compared with those of all tools

    def _check_listed(self, server: str, catalog: Catalog, principal: Principal | None) -> None:
        """Raises UpstreamUnavailableError when ``server`` has no tools because it could not be listed."""
        record = catalog.servers.get(server)
        if record is not None and record.fetched_at is not None:
            return
        own = self._views.own(principal, server)
        if own is not None and (needed := own.login_needed(server)) is not None:
            raise needed
        health = self._pool.health(server) if own is None else own.health(server)
        if own is None and self._first_listings.is_starting(server, health):
            raise UpstreamUnavailableError(server, "it is still starting")
        if reason := failures(catalog, {server: health}).get(server):
            raise UpstreamUnavailableError(server, reason)
