"""Decisions of a person, or of another process, about what servers offer, taken up while mcpzip runs.

The rule: a decision is made on the command line and written to the pins; here it is only read.
"""

import asyncio
from collections.abc import Mapping

from mcpzip.catalog import Update
from mcpzip.config import ServerConfig
from mcpzip.pins.gate import Gate
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.notifier import ALL_LISTS, Notifier
from mcpzip.proxy.refresh import Refresher
from mcpzip.proxy.tool_search import ToolSearch
from mcpzip.proxy.views import Views
from mcpzip.system.tasks import cancel
from mcpzip.system.threads import in_thread

APPROVED_LISTING = 1.5
"""Seconds that the first search waits for the listing of a server of which something was approved."""


class Reviews:
    """Everything runs on one event loop, but for `is_due`."""

    def __init__(
        self,
        gate: Gate,
        current: CurrentConfig,
        catalog_state: CatalogState,
        refresher: Refresher,
        notifier: Notifier,
        tool_search: ToolSearch,
        views: Views,
    ) -> None:
        self._gate, self._current = gate, current
        self._catalog_state, self._refresher = catalog_state, refresher
        self._notifier, self._tool_search, self._views = notifier, tool_search, views
        self._are_known = False
        self._task: asyncio.Task[list[asyncio.Task[Update]]] | None = None

    @property
    def is_due(self) -> bool:
        """Whether the pins were written since they were read. May be called in a thread."""
        return self._gate.outdated

    def take_up(self) -> None:
        """Begins to offer what was approved since, and to hide what was held."""
        self._begin()

    async def caught_up(self) -> None:
        """When what was decided until now is offered, and the servers are listed that this takes: for whoever
        has time.
        """
        if listings := await self._begin():
            await asyncio.wait(listings)

    async def wait_for_search(self) -> None:
        """Waits before the first search, if the pins matter to it: until it is known what is held, and what
        was approved while nothing ran is listed, APPROVED_LISTING seconds at most.
        """
        if self._are_known:
            return
        from mcpzip.pins.at_start import pins_matter

        config, catalog = self._current.config, self._catalog_state.catalog
        if await in_thread(lambda: pins_matter(config, catalog), "pins") and not self._are_known:
            begun = self._begin()
            await asyncio.wait({begun})
            if not begun.cancelled() and begun.exception() is None and (listings := begun.result()):
                await asyncio.wait(listings, timeout=APPROVED_LISTING)
        self._are_known = True

    def _begin(self) -> "asyncio.Task[list[asyncio.Task[Update]]]":
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._take_up(), name="pins")
        return self._task

    async def _take_up(self) -> "list[asyncio.Task[Update]]":
        changed, unknown = await in_thread(self._gate.reload, "pins")
        for before, now in changed:
            if not self._catalog_state.replace_record(before, now):
                self._gate.again()
        if changed:
            self._tool_search.index(self._catalog_state.visible)
        self._tell_transparent()
        for own in self._views.kept_upstreams():
            own.take_up_reviews()
        return [self._refresher.start(name) for name in unknown if name in self._current.for_all]

    def merged(self, server: str) -> None:
        """A listing of ``server`` is offered now, as far as it was admitted."""
        self._gate.merged(server)
        self._tell_transparent()

    def _tell_transparent(self) -> None:
        # There clients hear of changes from the server alone, which doesn't know of reviews.
        if self._gate.take_released() and self._catalog_state.exposure.transparent_server is not None:
            self._notifier.lists_changed(ALL_LISTS)

    def trust_changed(self, before: Mapping[str, ServerConfig]) -> None:
        """Lists the servers whose ``trust`` is another than in ``before``, the servers of the config until
        now.
        """
        for name, server in self._current.enabled.items():
            if name in before and before[name].trust != server.trust:
                self._refresher.start(name)

    async def held(self) -> Mapping[str, str]:
        """How many items of each server nobody has decided about, by its name: ``2 tools``. For whoever has
        time: it waits for a store.
        """
        if not self._gate.loaded:
            await in_thread(lambda: self._gate.load(wait=True), "pins")
        return self._gate.summaries()

    async def close(self) -> None:
        """Stops what is under way."""
        if self._task is not None:
            await cancel(self._task)
