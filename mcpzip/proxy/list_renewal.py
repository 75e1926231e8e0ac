"""When tool lists are fetched again: soon after the start if they are old, and when their `ttlMs` is over."""

import time

from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.refresh import Refresher

MIN_TTL = 30.0
"""Seconds for which a tool list is not fetched again, even if its server declares a shorter `ttlMs`."""
MAX_AGE = 3600.0
"""Seconds after which a tool list is renewed at the start, though its server isn't needed yet."""


class ListRenewal:
    """Has the refresher list the servers whose lists are old."""

    def __init__(self, current: CurrentConfig, catalog_state: CatalogState, refresher: Refresher) -> None:
        self._current, self._catalog_state, self._refresher = current, catalog_state, refresher

    def listed_at(self, server: str) -> float:
        """The Unix time at which ``server`` was listed last; 0.0 for never."""
        record = self._catalog_state.catalog.servers.get(server)
        return 0.0 if record is None else record.fetched_at or 0.0

    def renew_old(self) -> None:
        """Lists the servers whose lists are older than MAX_AGE, failed, or are of another configuration."""
        records, oldest = self._catalog_state.visible.servers, time.time() - MAX_AGE
        listed_at = {
            name: records[name].fetched_at or 0.0 for name in self._current.for_all if name in records
        }
        old = [name for name, at in listed_at.items() if at < oldest or records[name].stale]
        self._refresher.renew(sorted(old, key=listed_at.__getitem__), MAX_AGE)

    def renew_expired(self) -> None:
        """Lists the servers whose lists have expired (spec 2026-07-28: server/utilities/caching)."""
        now, records = time.time(), self._catalog_state.visible.servers
        for name in self._current.for_all:
            record = records.get(name)
            if record is None or record.ttl is None or record.fetched_at is None or record.stale:
                continue
            if now > record.fetched_at + (valid := max(record.ttl, MIN_TTL)):
                self._refresher.start(name, valid)
