"""Waiting for servers whose tools are not known yet.

The rule: a request waits for a listing only if it could do with its tools, and only for so long.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from mcpzip.config import ServerConfig
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.refresh import Refresher
from mcpzip.transport.pool import Pool

FIRST_LISTING = 5.0
"""Seconds a server's first listing may take before a request that could do with its tools goes on without."""
NEEDED_LISTING = 30.0
"""The same before a request that names the server gives up on it: as long as it may take to connect."""
OTHERS_LISTING = 1.5
"""The same where other servers' tools are there to answer with, or where more servers are to be started than
can be at once: no answer is of all of them then."""


class FirstListings:
    """The listings under way of ``servers`` that were never listed."""

    def __init__(
        self,
        servers: Mapping[str, ServerConfig],
        catalog_state: CatalogState,
        refresher: Refresher,
        pool: Pool,
    ) -> None:
        """servers: those that are enabled, by name."""
        self._servers, self._catalog_state, self._refresher, self._pool = (
            servers,
            catalog_state,
            refresher,
            pool,
        )

    def never(self, server: str) -> bool:
        """Whether ``server`` was never listed."""
        record = self._catalog_state.catalog.servers.get(server)
        return record is None or (record.fetched_at is None and not record.stale)

    @property
    def unsettled(self) -> bool:
        """Whether there is a server that was never listed, or not to the end."""
        return bool(self._refresher.first_rests()) or any(map(self.never, self._servers))

    async def all(self) -> None:
        """Waits a moment until every server that never was has been listed, its prompts and resources too."""
        for name in filter(self.never, self._servers):
            self._refresher.start(name)
        await self.wait()
        if rests := self._refresher.first_rests():
            await asyncio.wait(rests, timeout=FIRST_LISTING)

    async def for_search(self, server: str | None) -> None:
        """Waits before a search. server: the only one whose tools are wanted; None for all."""
        if server is None:
            await self.wait(patience=self._patience, taken_by=self._refresher.waited)
        else:
            self._pool.starts.hurry(server)
            await self.wait([server])

    async def for_call(self, servers: Iterable[str], seconds: Callable[[str], float]) -> None:
        """Waits for those ``servers`` that a call may mean. seconds: that a call to one of them may take."""
        meant = list(servers)
        for server in meant:
            self._pool.starts.hurry(server)
        longest = min(max(map(seconds, meant)), NEEDED_LISTING)
        await self.wait(meant, lambda: max(FIRST_LISTING, longest))

    async def wait(
        self,
        servers: Iterable[str] | None = None,
        patience: Callable[[], float] | None = None,
        taken_by: Callable[[str], float] | None = None,
    ) -> None:
        """Waits for the listings under way of those ``servers`` (default: all) that were never listed, or not
        since somebody signed in.

        patience: how many seconds a listing may have taken in all (default: FIRST_LISTING); asked again
        whenever one is done. taken_by: how many it has (default: since its server's turn to start).
        """
        taken_by = taken_by or self._refresher.taken
        wanted = list(self._servers if servers is None else servers)
        never = [name for name in wanted if self._pool.login_is_over(name) or self.never(name)]
        for name in filter(self._pool.login_is_over, never):
            self._refresher.start(name)
        while under_way := {task for name in never if (task := self._refresher.listing(name)) is not None}:
            taken = max(map(taken_by, never))
            left = (FIRST_LISTING if patience is None else patience()) - taken
            if left <= 0:
                return
            await asyncio.wait(under_way, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def _patience(self) -> float:
        some = self._catalog_state.visible.entries or self._pool.starts.crowded
        return OTHERS_LISTING if some else FIRST_LISTING
