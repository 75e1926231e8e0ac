"""Which tool the name in a request means.

The rule: a name that isn't in the catalog waits for the first listing of the servers that it may belong to,
before it is repaired or refused.
"""

from mcpzip.model.entry import Entry
from mcpzip.model.errors import UnknownToolError, UpstreamUnavailableError
from mcpzip.model.limits import ASKED_NAME
from mcpzip.pins.gate import Gate
from mcpzip.proxy.argument_repair import repair_name
from mcpzip.proxy.call import timeout_of
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.first_listings import FirstListings
from mcpzip.proxy.server_prefix import candidate_servers, incompletely_known
from mcpzip.proxy.status import failures
from mcpzip.proxy.workers import run_in_worker
from mcpzip.system.threads import in_thread
from mcpzip.transport.pool import Pool


class NameResolver:
    """Finds tools by their names, exact or nearly so."""

    def __init__(
        self,
        current: CurrentConfig,
        catalog_state: CatalogState,
        first_listings: FirstListings,
        pool: Pool,
        gate: Gate,
    ) -> None:
        self._current, self._gate = current, gate
        self._catalog_state, self._first_listings, self._pool = catalog_state, first_listings, pool

    async def resolve(self, name: str, timeout: float | None = None) -> tuple[Entry, str | None]:
        """The tool that ``name`` means, and the repair of the name as a text, None without a repair.

        timeout: of the call that the name is for, in seconds; None for the configured timeout. Raises
        UnknownToolError, and UpstreamUnavailableError when the server that ``name`` begins with was never
        listed.
        """
        if entry := self._catalog_state.visible.get(name):
            return entry, None
        if len(name) > ASKED_NAME:
            raise UnknownToolError(name)
        candidates = candidate_servers(name, self._current.servers)
        if enabled := [server for server in candidates if server in self._current.enabled]:
            await self._first_listings.wait_for_call(
                enabled, lambda server: timeout or timeout_of(self._current.config, server)
            )
        else:
            await self._first_listings.wait()
        servers, candidates = self._current.servers, candidate_servers(name, self._current.servers)
        catalog, known = self._catalog_state.visible, self._catalog_state.with_lost_tools
        if catalog.get(name) is None:
            for server in candidates:
                self._check_listed(server)
        if not self._gate.loaded:
            await in_thread(self._gate.load, "pins")
        # What is held counts as not known, so that a name that it has never means another server's tool.
        incomplete = incompletely_known(known, servers).union(self._gate.holding)
        return await run_in_worker(  # because the name is compared with those of all tools
            lambda: repair_name(name, catalog, known=known, servers=servers, incomplete=incomplete),
            "name",
        )

    def _check_listed(self, server: str) -> None:
        """Raises UpstreamUnavailableError when ``server`` has no tools because it could not be listed."""
        catalog = self._catalog_state.visible
        record = catalog.servers.get(server)
        if record is not None and record.fetched_at is not None:
            return
        health = self._pool.health(server)
        if self._first_listings.is_starting(server, health):
            raise UpstreamUnavailableError(server, "it is still starting")
        if reason := failures(catalog, {server: health}).get(server):
            raise UpstreamUnavailableError(server, reason)
