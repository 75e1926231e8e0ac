"""Runs a search: the local tiers, the remote tiers, and the signals that are no text (boosts, use, failures).

The rules: without remote tiers a search waits for nothing but its worker thread. Remote tiers get the best
tools of the local tiers as a shortlist. They are not called for a query that is the name of a tool.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mcpzip.catalog import Catalog
from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.search_request import SearchRequest
from mcpzip.proxy.tool_usage import learns_words, usage_path
from mcpzip.proxy.usage_store import UsageStore
from mcpzip.proxy.workers import run_in_worker
from mcpzip.search.remote import remote_tiers
from mcpzip.search.signals import Signals
from mcpzip.search.tiers import TierAbsence, TierAnswer

if TYPE_CHECKING:
    from mcpzip.proxy.search_sequences import SearchSequences
    from mcpzip.search import Results, Searcher

SHORTLIST = 200
"""Tools of the local tiers that the remote tiers choose among."""
USE_DECAY_STEP = 3_600.0
"""Seconds after which the counts of past use are computed again; they decay by 0.2 % in that time."""


def _usage_of(config: Config, warn: Callable[[str], None]) -> UsageStore:
    words = learns_words(config)
    if config.store is None:
        return UsageStore(usage_path(config.path), warn, words=words)
    from mcpzip.proxy.shared_usage import SharedUsage  # most configs have no store

    return UsageStore(usage_path(config.path), warn, shared=SharedUsage(config.store), words=words)


def _boosts(config: Config) -> dict[str, float]:
    return {name: server.boost for name, server in config.servers.items() if server.boost != 1}


class RemoteSearch(Protocol):
    """The remote tiers (`mcpzip.search.remote.RemoteTiers`)."""

    def index(self, entries: Sequence[Entry], version: str) -> None:
        """Begins to index ``entries``. version: of the catalog; equal versions have equal entries."""

    async def ask(
        self, query: str, shortlist: Sequence[Entry], limit: int
    ) -> tuple[list[TierAnswer], list[TierAbsence]]:
        """The answers of the tiers, and why others gave none. Never raises."""

    async def settled(self) -> None:
        """Waits until the last `index` has succeeded or failed."""

    async def aclose(self) -> None:
        """Closes the connections."""


class ToolSearch:
    """Searches the catalog with all tiers. Everything runs on one event loop.

    boosts: factors of scores, by server. usage: the past use of tools; None to ignore it. clock: monotonic
    seconds.
    """

    def __init__(
        self,
        boosts: dict[str, float],
        usage: UsageStore | None,
        remote: RemoteSearch | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._boosts, self._usage, self._remote, self._clock = boosts, usage, remote, clock
        self._version: str | None = None
        self._catalog: Catalog | None = None
        self._stale: frozenset[str] = frozenset()
        self._signals = Signals(boosts)
        self._signals_key: tuple[object, ...] = ()
        self._sequences: SearchSequences | None = None
        self._searcher: Searcher | None = None  # that was used last

    @classmethod
    def of(cls, config: Config, warn: Callable[[str], None], *, remote: bool = True) -> "ToolSearch":
        """With the settings of ``config``. warn: called if the file of past use can't be used. remote:
        whether with the remote tiers.
        """
        return cls(
            _boosts(config),
            _usage_of(config, warn) if config.search.learn else None,
            remote_tiers(config) if remote else None,
        )

    def reconfigure(self, config: Config) -> None:
        """Uses the boosts of ``config`` from now on. What else is set about searching is set at the start."""
        self._boosts, self._signals_key = _boosts(config), ()

    def index(self, catalog: Catalog) -> None:
        """Begins to index ``catalog`` in the remote tiers, if it has changed."""
        if self._remote is not None and catalog.version != self._version:
            self._version = catalog.version
            self._remote.index(catalog.entries, catalog.version)

    async def wait_until_indexed(self) -> None:
        """Waits until the remote tiers have indexed the catalog, or failed to."""
        if self._remote is not None:
            await self._remote.settled()

    def record_search(self, query: str, results: "Results", exchange: Exchange) -> None:
        """Takes note of what a client has searched for and was sent: what it calls next may belong to it."""
        owner, usage = exchange.client.owner, self._usage
        if usage is None or not usage.learns_words or owner is None or exchange.principal is not None:
            return
        if self._sequences is None:
            from mcpzip.proxy.search_sequences import SearchSequences  # imported by the first search

            self._sequences = SearchSequences(self._clock)
        self._sequences.searched(owner, query, results)

    def record_use(self, entry: Entry, exchange: Exchange) -> None:
        """Counts a successful call of ``entry`` by a client, and learns the words that led to it."""
        if self._usage is None:
            return
        terms: Mapping[str, float] = {}
        if self._sequences is not None and self._searcher is not None and exchange.principal is None:
            terms = self._sequences.called(exchange.client.owner, entry.name, self._searcher)
        self._usage.record(entry.name, terms)

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        if self._sequences is not None:
            self._sequences.remove(client)

    async def search(
        self,
        request: SearchRequest,
        searcher: "Searcher",
        catalog: Catalog,
        failing: frozenset[str] = frozenset(),
        tools: int | None = None,
    ) -> "Results":
        """The results for ``request``. catalog: all that anybody may use. failing: the servers that can't be
        used now, whose tools rank lower. tools: how many ``searcher`` may have, if not all of ``catalog``.
        """
        # Imported by whoever has made the searcher; a first call doesn't wait for it.
        from mcpzip.proxy.local_search import correct_spelling, limited, wanted_hits
        from mcpzip.search.fusion import LITERAL_SCORE
        from mcpzip.search.query import parse_truncated

        signals = self.signals(catalog, failing)
        query, limit, filters = request.query, request.limit, request.filters
        if self._usage is not None and self._usage.learns_words:
            self._searcher = searcher
        wanted = wanted_hits(limit)

        def search(limit: int, remote: Sequence[TierAnswer | TierAbsence]) -> "Awaitable[Results]":
            # In a thread, because the servers choose the number of tools.
            return run_in_worker(lambda: searcher.search(query, limit, filters, remote, signals), "search")

        tools = len(catalog) if tools is None else tools
        if self._remote is None:
            return limited(await search(wanted, ()), limit, tools)
        self.index(catalog)
        text = parse_truncated(query).text
        if not text or searcher.names_tool(query):
            local = await search(wanted, ())
            if not text or (local.hits and local.hits[0].score == LITERAL_SCORE):
                return limited(local, limit, tools)
        local = await search(SHORTLIST, ())
        if not local.searched:
            return limited(local, limit, tools)
        shortlist = [hit.entry for hit in local.hits]
        answers, absences = await self._remote.ask(correct_spelling(text, local), shortlist, limit)
        return limited(await search(wanted, [*answers, *absences]), limit, tools)

    def signals(self, catalog: Catalog, failing: frozenset[str]) -> Signals:
        """The signals for ranking; the same object until one of them changes, because it is a cache key."""
        if catalog is not self._catalog:
            self._catalog = catalog
            self._stale = frozenset(name for name, record in catalog.servers.items() if record.failing)
        usage, step = self._usage, self._clock() // USE_DECAY_STEP
        if usage is not None:
            usage.look()
        key = (failing, self._stale, *((usage.revision, step) if usage else ()))
        if key != self._signals_key:
            counts, learned = (usage.counts(), usage.learned()) if usage else ({}, None)
            self._signals = Signals(self._boosts, counts, failing, self._stale, learned)
            self._signals_key = key
        return self._signals

    async def close(self) -> None:
        """Saves the past use of tools, and closes the remote tiers."""
        if self._usage is not None:
            await self._usage.close()
        if self._remote is not None:
            await self._remote.aclose()
