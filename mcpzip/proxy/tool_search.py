"""Answering a question: the local search, the tiers that run elsewhere, and what is known of tools beside
their texts.

The rules: where nobody else is asked, nothing is waited for. Whoever is asked elsewhere is given the best of
what was found here. Who asks for a tool by its name has found it, and nobody else is asked.
"""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from mcpzip.catalog import Catalog
from mcpzip.config import Config, SearchConfig
from mcpzip.model.entry import Entry
from mcpzip.proxy.search import ADMIN_TOOLS, Question, is_near
from mcpzip.proxy.usage import Usage, succeeded, usage_path
from mcpzip.proxy.workers import computed
from mcpzip.search import Results, Searcher
from mcpzip.search.fusion import LITERAL_SCORE
from mcpzip.search.query import parse_truncated
from mcpzip.search.remote import remote_tiers
from mcpzip.search.searcher import CACHED_HITS
from mcpzip.search.semantic import local_table
from mcpzip.search.signals import Signals
from mcpzip.search.tiers import TierAbsence, TierAnswer

SHORTLIST = 200
"""Tools that those who are asked elsewhere choose among."""
DECAYED_AFTER = 3_600.0
"""Seconds after which past use is weighed anew: it has lost a fifth of a percent."""


def new_searcher(search: SearchConfig, warn: Callable[[str], None]) -> Searcher:
    """A searcher that is to search as ``search`` says. warn: is told when it can't go by meaning."""
    table = None
    if search.semantic.provider != "off":
        try:
            table = local_table()
        except (OSError, ValueError) as error:
            warn(f"Tools are found by their words alone, not by what they mean: {error}")
    return Searcher(table, search.threshold)


def corrected(text: str, results: Results) -> str:
    """``text`` with its misspellings put right: others than us are put off by them."""
    for written, meant in results.corrected:
        text = re.sub(rf"(?i)\b{re.escape(written)}\b", meant.replace("\\", r"\\"), text)
    return text


def _cut(results: Results, limit: int) -> Results:
    """``results`` with ``limit`` hits. Our own tools are for who names them: near in meaning is too far."""
    hits = tuple(hit for hit in results.hits if not (is_near(hit) and hit.entry in ADMIN_TOOLS))
    return replace(results, hits=hits[: max(limit, 0)], quality=results.quality if hits else "none")


class RemoteSearch(Protocol):
    """The tiers that run elsewhere (`mcpzip.search.remote.RemoteTiers`)."""

    def index(self, entries: Sequence[Entry], version: str) -> None:
        """The catalog is these now, in this version."""

    async def ask(
        self, query: str, shortlist: Sequence[Entry], limit: int
    ) -> tuple[list[TierAnswer], list[TierAbsence]]:
        """Who answers, and who is absent. Never raises."""

    async def settled(self) -> None:
        """When it has taken in what it was last told of, or failed to."""

    async def aclose(self) -> None:
        """Ends it."""


class ToolSearch:
    """Finds tools. Everything runs on one event loop.

    boosts: by server. usage: what to learn from, None: nothing is. clock: monotonic seconds.
    """

    def __init__(
        self,
        boosts: dict[str, float],
        usage: Usage | None,
        elsewhere: RemoteSearch | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._boosts, self._usage, self._elsewhere, self._clock = boosts, usage, elsewhere, clock
        self._version: str | None = None
        self._catalog: Catalog | None = None
        self._stale: frozenset[str] = frozenset()
        self._signals = Signals(boosts)
        self._made_of: tuple[object, ...] = ()

    @classmethod
    def of(cls, config: Config, warn: Callable[[str], None]) -> "ToolSearch":
        """As ``config`` says. warn: is told what is wrong with learning."""
        return cls(
            {name: server.boost for name, server in config.servers.items() if server.boost != 1},
            Usage(usage_path(config.path), warn) if config.search.learn else None,
            remote_tiers(config),
        )

    def index(self, catalog: Catalog) -> None:
        """``catalog`` is what is searched from now on: who runs elsewhere begins to take it in."""
        if self._elsewhere is not None and catalog.version != self._version:
            self._version = catalog.version
            self._elsewhere.index(catalog.entries, catalog.version)

    async def settled(self) -> None:
        """When those who run elsewhere have taken in the catalog, or failed to."""
        if self._elsewhere is not None:
            await self._elsewhere.settled()

    def used(self, entry: Entry, result: bytes) -> None:
        """A client called ``entry``, and this came of it."""
        if self._usage is not None and succeeded(result):
            self._usage.record(entry.name)

    async def find(
        self,
        question: Question,
        searcher: Searcher,
        catalog: Catalog,
        failing: frozenset[str] = frozenset(),
    ) -> Results:
        """The answer to ``question``. failing: the servers that can't be reached right now."""
        signals = self.signals(catalog, failing)
        query, limit, filters = question.query, question.limit, question.filters
        wanted = limit if limit > CACHED_HITS - len(ADMIN_TOOLS) else limit + len(ADMIN_TOOLS)

        def search(most: int, elsewhere: Sequence[TierAnswer | TierAbsence]) -> Awaitable[Results]:
            # How much there is to look through is for servers to say.
            return computed(lambda: searcher.search(query, most, filters, elsewhere, signals), "search")

        if self._elsewhere is None:
            return _cut(await search(wanted, ()), limit)
        self.index(catalog)
        text = parse_truncated(query).text
        if not text or searcher.names_tool(query):
            local = await search(wanted, ())
            if not text or (local.hits and local.hits[0].score == LITERAL_SCORE):
                return _cut(local, limit)
        near = await search(SHORTLIST, ())
        if not near.searched:
            return _cut(near, limit)
        shortlist = [hit.entry for hit in near.hits]
        answers, absences = await self._elsewhere.ask(corrected(text, near), shortlist, limit)
        return _cut(await search(wanted, [*answers, *absences]), limit)

    def signals(self, catalog: Catalog, failing: frozenset[str]) -> Signals:
        """What is known of tools; the very same as long as nothing has changed."""
        if catalog is not self._catalog:
            self._catalog = catalog
            self._stale = frozenset(name for name, record in catalog.servers.items() if record.stale)
        usage = self._usage
        age = self._clock() // DECAYED_AFTER
        made_of = (failing, self._stale, *((usage.revision, age) if usage else ()))
        if made_of != self._made_of:
            self._signals = Signals(self._boosts, usage.counts() if usage else {}, failing, self._stale)
            self._made_of = made_of
        return self._signals

    async def close(self) -> None:
        """What was learnt is on disk afterwards, and nobody elsewhere is spoken to."""
        if self._usage is not None:
            await self._usage.close()
        if self._elsewhere is not None:
            await self._elsewhere.aclose()
