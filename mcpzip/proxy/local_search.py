"""The local tiers of a search, and what is the same with every tier (no event loop)."""

import re
from bisect import bisect_left
from collections.abc import Callable

from msgspec.structs import replace

from mcpzip.catalog import Catalog
from mcpzip.config import SearchConfig
from mcpzip.model.entry import Entry
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.search_reply import is_near
from mcpzip.search import Results, Searcher
from mcpzip.search.searcher import CACHED_HITS, Hit
from mcpzip.search.semantic import local_table

_OWN_SERVERS = frozenset(entry.server for entry in ADMIN_TOOLS)


def new_searcher(search: SearchConfig, warn: Callable[[str], None]) -> Searcher:
    """An empty searcher with the settings ``search``. warn: called if the table of word vectors can't be
    used."""
    table = None
    if search.semantic.provider != "off":
        try:
            table = local_table()
        except (OSError, ValueError) as error:
            warn(f"Tools are found by their words alone, not by what they mean: {error}")
    return Searcher(table, search.threshold)


def wanted_hits(limit: int) -> int:
    """How many hits to search for, so that ``limit`` are left after `limited`."""
    return limit if limit > CACHED_HITS - len(ADMIN_TOOLS) else limit + len(ADMIN_TOOLS)


def limited(results: Results, limit: int, tools: int) -> Results:
    """``results`` with ``limit`` hits at most, without mcpzip's own tools that match by meaning only. tools:
    of the catalog: mcpzip's own are not counted as searched, nor is mcpzip another server with tools as good.
    """
    hits = tuple(hit for hit in results.hits if not (is_near(hit) and hit.entry in ADMIN_TOOLS))
    searched = min(results.searched, tools) if tools else results.searched
    quality = results.quality if hits else "none"
    elsewhere = tuple(name for name in results.elsewhere if name not in _OWN_SERVERS)
    return replace(
        results, hits=hits[: max(limit, 0)], searched=searched, quality=quality, elsewhere=elsewhere
    )


def still_offered(results: Results, catalog: Catalog) -> Results:
    """``results`` without what ``catalog`` doesn't offer any more. A tool that has changed since is shown as
    it is now.
    """
    hits: list[Hit] = []
    for hit in results.hits:
        now = hit.entry if hit.entry in ADMIN_TOOLS else _offered(catalog, hit.entry)
        also = tuple(name for name in hit.also if catalog.get(name) is not None)
        if now is not None:
            same = now is hit.entry and also == hit.also
            hits.append(hit if same else replace(hit, entry=now, also=also))
    return replace(
        results,
        hits=tuple(hits),
        quality=results.quality if hits else "none",
        elsewhere=tuple(name for name in results.elsewhere if name in catalog.servers),
        nearest_servers=tuple(name for name in results.nearest_servers if name in catalog.servers),
    )


def _offered(catalog: Catalog, entry: Entry) -> Entry | None:
    """What ``catalog`` has in place of ``entry``. Bisected, because a table of all names takes a while."""
    record = catalog.servers.get(entry.server)
    tools = () if record is None else record.entries
    at = bisect_left(tools, entry.tool, key=lambda one: one.tool)
    return tools[at] if at < len(tools) and tools[at].tool == entry.tool else None


def correct_spelling(text: str, results: Results) -> str:
    """``text`` with the spelling corrections of ``results``, because misspellings mislead embedding
    models."""
    for written, correction in results.corrected:
        text = re.sub(rf"(?i)\b{re.escape(written)}\b", correction.replace("\\", r"\\"), text)
    return text
