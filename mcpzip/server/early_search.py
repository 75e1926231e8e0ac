"""Answers `search_tools` from what is on disk, while the rest of mcpzip is still being loaded.

The rule: the answer has the same bytes as the session's would have. So a search is answered here only if it
would wait for nothing there: its tiers are local, the index has every tool, nothing is held back or was
approved since, and each server was listed, or has been waited for in vain before
(`mcpzip.proxy.unanswered`). Nothing here imports `asyncio`.
"""

import time
from collections.abc import Container, Mapping

from mcpzip.catalog import Catalog, View, retain
from mcpzip.config import Config, ServerConfig, paths
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.pins.at_start import pins_matter
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.local_search import limited, new_searcher, wanted_hits
from mcpzip.proxy.search_reply import search_result
from mcpzip.proxy.search_request import PendingServers, SearchReport, read_search_request
from mcpzip.proxy.status import failures
from mcpzip.proxy.tool_usage import (
    UnusableUsageFileError,
    counts,
    learned_words,
    learns_words,
    load,
    usage_path,
)
from mcpzip.proxy.unanswered import UnansweredServers
from mcpzip.proxy.unset_variables import with_reasons
from mcpzip.search import Searcher
from mcpzip.search.signals import Signals
from mcpzip.server.config_results import SERVER_INFO
from mcpzip.server.prepared import Prepared
from mcpzip.system.mapped_files import map_state, release
from mcpzip.transport.health import FAILING, Health, at_start
from mcpzip.wire import stamp_result
from mcpzip.wire.json_object import join_object, quote


class EarlySearch:
    """The search of a config and catalog as they are on disk. searcher: with the whole catalog."""

    def __init__(
        self, config: Config, catalog: Catalog, searcher: Searcher, starting: tuple[str, ...]
    ) -> None:
        """catalog: what of it clients may see. starting: the servers that have never answered."""
        self.searcher = searcher
        self._config, self._catalog, self._starting = config, catalog, starting
        health = {name: at_start(server) for name, server in _enabled(config).items()}
        self._unavailable = failures(catalog, health) | dict.fromkeys(starting, "it is still starting")
        self._signals = _signals(config, catalog, health)
        self._reads: Container[Entry] = ()
        if config.split:
            from mcpzip.proxy.read_tools import ReadTools  # most configs have none

            self._reads = ReadTools(config)

    @classmethod
    def of(cls, prepared: Prepared) -> "EarlySearch | None":
        """The search of what was read from disk; None if searches may have to wait for something."""
        config = with_reasons(prepared.config, prepared.catalog)
        if config.expose != "meta" or config.has_remote_tiers:
            return None
        fingerprints = {name: server.fingerprint for name, server in config.servers.items()}
        visible = View(config.servers).of(retain(prepared.catalog, fingerprints))
        unlisted = [server for server in _enabled(config).values() if not _is_listed(visible, server)]
        if pins_matter(config, prepared.catalog):
            return None
        unanswered = UnansweredServers(config)
        if any(server.problem or server not in unanswered for server in unlisted):
            return None
        searcher = _searcher(config, visible)
        if searcher is None:
            return None
        return cls(config, visible, searcher, tuple(server.name for server in unlisted))

    def answer(self, arguments: bytes, modern: bool) -> bytes | None:
        """The `CallToolResult` of `search_tools` with ``arguments`` (JSON text), as a client of that era has
        it; None if the session has to answer.
        """
        settings, catalog = self._config.search, self._catalog
        try:
            request = read_search_request(arguments, settings.default_limit)
        except InvalidArgumentsError:
            return None
        if request.filters.server is not None and self._starting:
            return None  # which waits for that server
        results = self.searcher.search(
            request.query, wanted_hits(request.limit), request.filters, (), self._signals
        )
        report = SearchReport(
            limited(results, request.limit, len(catalog)),
            catalog,
            self._unavailable,
            PendingServers(self._starting),
        )
        result = search_result(
            request, report, time.time(), settings.max_tokens, details=settings.details, reads=self._reads
        )
        info = join_object({key: quote(value) for key, value in SERVER_INFO.items()})
        return stamp_result(result, server_info=info) if modern else result


def _enabled(config: Config) -> dict[str, ServerConfig]:
    return {name: server for name, server in config.servers.items() if not server.disabled}


def _is_listed(catalog: Catalog, server: ServerConfig) -> bool:
    record = catalog.servers.get(server.name)
    return record is not None and (record.fetched_at is not None or record.stale)


def _searcher(config: Config, visible: Catalog) -> Searcher | None:
    """A searcher with the index on disk; None if that lacks something, or a person has to be warned."""
    warnings: list[str] = []
    searcher = new_searcher(config.search, warnings.append)
    try:
        kept = map_state(paths.index_path(config.state_path), limits.INDEX)
    except OSError:
        return None
    entries = (*visible, *ADMIN_TOOLS)
    searcher.load(kept, entries)  # it takes an index only if that has no other tools
    release(kept)  # all of it was read for its checksum
    return None if warnings or searcher.pending or len(searcher) != len(entries) else searcher


def _signals(config: Config, catalog: Catalog, health: Mapping[str, Health]) -> Signals:
    uses: dict[str, float] = {}
    words = None
    if config.search.learn:
        try:
            found, now = load(usage_path(config.path))[0], time.time()
            uses, words = counts(found, now), learned_words(found, now) if learns_words(config) else None
        except UnusableUsageFileError:
            pass  # the session tells a person
    return Signals(
        {name: server.boost for name, server in config.servers.items() if server.boost != 1},
        uses,
        frozenset(name for name, each in health.items() if each.state in FAILING),
        frozenset(name for name, record in catalog.servers.items() if record.failing),
        words,
    )
