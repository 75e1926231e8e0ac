"""Waiting for servers that were never listed.

The rule: a request waits only for listings whose tools it may need, and only for a limited time. A search
doesn't wait for a server that did not answer at an earlier start either (`unanswered`).
"""

import asyncio
from collections.abc import Callable, Iterable

from mcpzip.config import ServerConfig
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.refresh import ANY_AGE, Refresher
from mcpzip.proxy.unanswered import UnansweredServers
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.threads import in_thread
from mcpzip.transport.health import FAILING, Health
from mcpzip.transport.pool import Pool

FIRST_LISTING = 5.0
"""Seconds that a server's first listing may take before a request that may need its tools stops waiting."""
NEEDED_LISTING = 30.0
"""The same for a request that names the server: as long as a server has to connect."""
_ALMOST = 0.9
"""Share of that time after which a server counts as one that did not answer. Others were asked later."""
SAVE_AFTER = 0.1
"""Seconds until the file of the servers that have not answered is written."""
OTHERS_LISTING = 1.5
"""The same for a search that can answer with other servers' tools, or while servers wait for their turn to
start: it can't cover all servers then."""


class FirstListings:
    """The listings of servers that were never listed, and the waits for them."""

    def __init__(
        self,
        current: CurrentConfig,
        catalog_state: CatalogState,
        refresher: Refresher,
        pool: Pool,
    ) -> None:
        self._current, self._pool = current, pool
        self._catalog_state, self._refresher = catalog_state, refresher
        self._unanswered = UnansweredServers(current.config)
        self._saving = DelayedSave(self._save, "unanswered")

    def is_unlisted(self, server: str) -> bool:
        """Whether ``server`` was never listed."""
        record = self._catalog_state.catalog.servers.get(server)
        return record is None or (record.fetched_at is None and not record.stale)

    def is_starting(self, server: str, health: Health) -> bool:
        """Whether the first listing of ``server`` is under way and has not failed yet."""
        return (
            self.is_unlisted(server)
            and self._refresher.listing(server) is not None
            and health.state not in FAILING  # after a failure its reason is shown while it is tried again
        )

    @property
    def has_unlisted_servers(self) -> bool:
        """Whether some server's tools, or its prompts and resources, were never listed."""
        return bool(self._refresher.first_rests()) or any(map(self.is_unlisted, self._current.for_all))

    async def wait_for_all(self) -> None:
        """Lists every server that was never listed, with its prompts and resources, and waits for
        FIRST_LISTING seconds at most for each of the two.
        """
        for name in filter(self.is_unlisted, self._current.for_all):
            self._refresher.start(name, ANY_AGE)
        await self.wait()
        if rests := self._refresher.first_rests():
            await asyncio.wait(rests, timeout=FIRST_LISTING)

    async def wait_for_search(self, server: str | None) -> None:
        """Waits before a search. server: the only one whose tools are wanted; None for all."""
        if server is not None:
            self._pool.starts.prioritize(server)
            await self.wait([server])
            return
        enabled = self._current.for_all
        wanted = [name for name, config in enabled.items() if not self._was_in_vain(config)]
        await self.wait(wanted, self._patience, self._refresher.requested_time)
        late = [
            config
            for name in wanted
            if self.is_unlisted(name)
            and self._refresher.listing(name) is not None
            and self._refresher.requested_time(name) >= _ALMOST * self._patience()
            and not self._pool.starts.waits(name)
            and (config := self._current.for_all.get(name)) is not None
        ]
        if self._unanswered.add(late):
            self._saving.want(SAVE_AFTER)

    def _was_in_vain(self, server: ServerConfig) -> bool:
        """Whether a search has waited for ``server`` in vain at an earlier start."""
        if not self.is_unlisted(server.name) or self._pool.login_is_over(server.name):
            return False
        return server in self._unanswered

    def answered(self, server: str) -> None:
        """``server`` has answered, or is started again: a search may wait for it."""
        if self._unanswered.forget(server):
            self._saving.want(SAVE_AFTER)

    async def close(self) -> None:
        """Saves which servers have not answered."""
        await self._saving.flush()

    async def _save(self) -> None:
        servers = dict(self._current.servers)
        await in_thread(lambda: self._unanswered.save(servers), "unanswered")

    async def wait_for_call(self, servers: Iterable[str], timeout_of: Callable[[str], float]) -> None:
        """Waits for those ``servers`` that a call may be for. timeout_of: of the call, in seconds, by
        server."""
        candidates = list(servers)
        for server in candidates:
            self._pool.starts.prioritize(server)
        longest = min(max(map(timeout_of, candidates)), NEEDED_LISTING)
        await self.wait(candidates, lambda: max(FIRST_LISTING, longest))

    async def wait(
        self,
        servers: Iterable[str] | None = None,
        patience: Callable[[], float] | None = None,
        time_of: Callable[[str], float] | None = None,
    ) -> None:
        """Waits for the first listings under way of ``servers`` (default: all), and lists those again for
        which a person has signed in since.

        patience: seconds that a listing may have taken in all (default: FIRST_LISTING); called again whenever
        a listing ends. time_of: seconds that a server's listing has taken (default: since its turn to start).
        """
        time_of = time_of or self._refresher.listing_time
        wanted = list(self._current.for_all if servers is None else servers)
        unlisted = [name for name in wanted if self._pool.login_is_over(name) or self.is_unlisted(name)]
        for name in filter(self._pool.login_is_over, unlisted):
            self._refresher.start(name)
        while under_way := {task for name in unlisted if (task := self._refresher.listing(name)) is not None}:
            left = (FIRST_LISTING if patience is None else patience()) - max(map(time_of, unlisted))
            if left <= 0:
                return
            await asyncio.wait(under_way, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def _patience(self) -> float:
        answers_in_part = len(self._catalog_state.visible) > 0 or self._pool.starts.crowded
        return OTHERS_LISTING if answers_in_part else FIRST_LISTING
