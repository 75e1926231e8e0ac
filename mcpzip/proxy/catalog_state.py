"""The catalog as it is now: in memory, in the search index, on disk, and as clients are shown it.

The rules: the catalog is replaced, never changed; what is on disk and in the index follows what is in memory;
clients hear of a list that changed when what they are shown of it did.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from mcpzip.catalog import Catalog, ServerRecord, Update, View, merge, retain, snapshot
from mcpzip.catalog.parts import Parts, digest_of_tools
from mcpzip.config import Config, paths
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.limits import INDEXED_AT_ONCE
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.exposure import Exposure
from mcpzip.proxy.lost_tools import LostTools
from mcpzip.proxy.notifier import PROMPTS, RESOURCES, TOOLS
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.files import remove_drafts
from mcpzip.system.mapped_files import map_state, release
from mcpzip.system.state_files import write_state
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from mcpzip.search import Results, Searcher

INDEX_WAIT = 0.25
"""Seconds that a search waits for an index that is behind, before it is answered with what is in it."""
FIRST_INDEX_WAIT = 5.0
"""The same while there is nothing in it: an answer without any tool helps nobody."""
INDEX_AFTER = 0.5
"""Seconds from the start or a change to indexing, unless a search comes before: it would delay a first
call."""
SAVE_AFTER = 0.5
"""Seconds the catalog may differ from its snapshot."""
SAVE_INDEX_AFTER = 2.0
"""Seconds of quiet after which the index is kept: while servers are listed it changes with each of them."""
SAVED_ON_CLOSE = 10_000
"""Tools of which the index may be kept while a client waits for us to end."""
SAVE_INDEX_WAIT = 0.5
"""Seconds that our end waits for an index that is being kept."""

T = TypeVar("T")


class CatalogState:
    """Keeps the catalog of the config. Everything runs on one event loop.

    catalog: all that is known. visible: what of it a client may see. exposure: how clients are shown it.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        warn: Callable[[str], None],
        changed: Callable[[Iterable[str]], None],
        searcher: "Searcher | None" = None,
    ) -> None:
        """catalog: as the snapshot had it. warn: is told, once each, what is wrong with keeping it. changed:
        is told which of TOOLS, PROMPTS and RESOURCES clients are to list anew. searcher: with the visible
        part of ``catalog``, if that is indexed already.
        """
        self._config, self._warn, self._changed = config, warn, changed
        self._warned: set[str] = set()
        self.catalog = _retained(catalog, config)
        self._lost_tools = LostTools()
        self._view = View(config.servers)
        self.visible = self._view.of(self.catalog)
        self.exposure = Exposure(config, self.visible)
        self._searcher = searcher
        self._stopping = threading.Event()
        self._indexed: Catalog | None = None if searcher is None else self.visible
        self._indexing: asyncio.Task[None] | None = None
        self._indexing_timer: asyncio.TimerHandle | None = None
        self._index_save = DelayedSave(lambda: in_thread(self._save_index, "keep"), "keep")
        self._snapshot_save = DelayedSave(self._write, "save")
        self._removing_drafts: asyncio.Task[None] | None = None

    @property
    def with_lost_tools(self) -> Catalog:
        """All that is known, with what servers have lost while this process runs."""
        return self._lost_tools.added_to(self.catalog)

    def remove_drafts(self) -> None:
        """Begins to remove what writers that were killed left beside the config."""
        folders = paths.cache_folder(self._config.path), paths.auth_folder(self._config.path)

        def remove() -> None:
            for folder in folders:
                remove_drafts(folder)

        self._removing_drafts = asyncio.create_task(in_thread(remove, "tidy"), name="tidy")

    def merge(self, update: Update) -> None:
        """Takes in what a server said, or that it said nothing."""
        self._replace(merge(self.catalog, [update]))

    def replace_record(self, before: ServerRecord, now: ServerRecord) -> bool:
        """Offers ``now`` instead of ``before``. Returns False if its server was listed meanwhile."""
        if self.catalog.servers.get(before.name) is not before:
            return False
        self._replace(Catalog({**self.catalog.servers, now.name: now}))
        return True

    def reconfigure(self, config: Config) -> None:
        """Uses ``config``, which has the same path, from now on."""
        self._config, self._view = config, View(config.servers, self._view)
        self._replace(_retained(self.catalog, config))

    def _replace(self, catalog: Catalog) -> None:
        self._lost_tools.note(self.catalog, catalog)
        before, self.catalog = self.exposure, catalog
        self.visible = self._view.of(self.catalog)
        self.exposure = Exposure(self._config, self.visible)
        self._snapshot_save.want(SAVE_AFTER)
        if self._indexing_timer is None and not self._stopping.is_set():
            loop = asyncio.get_running_loop()
            self._indexing_timer = loop.call_later(INDEX_AFTER, self._index_in_time)
        if changes := _changes(before, self.exposure):
            self._changed(changes)

    async def searcher(self) -> "Searcher":
        """The search over what is visible now, or over as much of it as is indexed yet (`unindexed`)."""
        began = asyncio.get_running_loop().time()
        while self._is_behind and (indexing := self.start_indexing()) is not None:
            wait = INDEX_WAIT if self._indexed else FIRST_INDEX_WAIT
            left = began + wait - asyncio.get_running_loop().time()
            if self._searcher is None:
                await asyncio.shield(indexing)
            elif left > 0:
                await asyncio.wait({indexing}, timeout=left)
            else:
                break
        assert self._searcher is not None, "indexed without a searcher"
        return self._searcher

    async def wait_until_indexed(self) -> None:
        """When all that is visible is indexed: for whoever has time."""
        while (indexing := self.start_indexing()) is not None:
            await asyncio.shield(indexing)

    def unindexed(self) -> list[str]:
        """The servers of which something is visible that a search doesn't find yet."""
        known = {} if self._indexed is None else self._indexed.servers
        return [name for name, record in self.visible.servers.items() if not _same_tools(known, record)]

    def still_offered(self, results: "Results", visible: Catalog) -> "Results":
        """``results`` without what isn't ``visible`` any more: the index follows the catalog a moment
        later.
        """
        from mcpzip.proxy.local_search import still_offered  # imported by the search

        return still_offered(results, visible)

    def name_only_counts(self) -> Mapping[str, int]:
        """How many tools are found by their names only, by server."""
        return {} if self._searcher is None else self._searcher.name_only_counts()

    def index_for_clients(self) -> "asyncio.Task[None] | None":
        """As `start_indexing`, if clients can search."""
        return self.start_indexing() if self._config.expose == "meta" else None

    def _index_in_time(self) -> None:
        self._indexing_timer = None
        self.index_for_clients()

    def start_indexing(self) -> "asyncio.Task[None] | None":
        """Begins to index what isn't yet. Returns the indexing under way, if one is."""
        if self._indexing is None and (self._is_behind or self._lacks_meaning):
            self._indexing = asyncio.create_task(self._index(), name="index")
        return self._indexing

    @property
    def _is_behind(self) -> bool:
        """Whether something is visible that a search doesn't find yet, or the reverse."""
        return self._indexed is None or self._indexed.version != self.visible.version

    @property
    def _lacks_meaning(self) -> bool:
        """Whether tools are found by their words only, until their meaning is indexed too."""
        return self._searcher is not None and self._searcher.pending > 0 and not self._stopping.is_set()

    async def _index(self) -> None:
        """One round: what it takes in can be searched afterwards, whatever else there is to index. Words come
        first: what all tools mean takes longer.
        """
        try:
            if self._is_behind:
                visible = self.visible
                changed, self._indexed = await in_thread(lambda: self._index_now(visible), "index")
            else:
                await in_thread(self._index_meaning, "index")
                changed = True
            if changed and not self._lacks_meaning:
                self._index_save.want(SAVE_INDEX_AFTER, quiet=True)
        finally:
            self._indexing = None
        self.start_indexing()

    def _index_now(self, visible: Catalog) -> tuple[bool, Catalog]:
        """Indexes ``visible``, or as much of it as is to be indexed at once. Returns whether the index is
        another now than the one that is kept, and what is in it.
        """
        searcher = self._searcher
        if searcher is None:
            from mcpzip.proxy.local_search import new_searcher  # a first call doesn't wait for it

            searcher = new_searcher(self._config.search, lambda warning: self._warn_once([warning]))
            try:
                kept = map_state(paths.index_path(self._config.state_path), limits.INDEX)
            except OSError:
                kept = memoryview(b"")
            searcher.load(kept, (*visible, *ADMIN_TOOLS))
            release(kept)  # all of it was read for its checksum
        part = self._part_of(visible, searcher)
        changed = searcher.index(
            (*part, *ADMIN_TOOLS), part.version, stopped=self._stopping.is_set, words_first=True
        )
        self._searcher = searcher
        if changed and part.version == visible.version and not searcher.pending:
            searcher.forget()
        return changed, part

    def _index_meaning(self) -> None:
        """Indexes by their meaning as many tools as are to be indexed at once."""
        searcher = self._searcher
        if searcher is not None:
            searcher.add_meaning(max(INDEXED_AT_ONCE, len(searcher) // 4), self._stopping.is_set)
            if not searcher.pending:
                searcher.forget()

    def _part_of(self, visible: Catalog, searcher: "Searcher") -> Catalog:
        """``visible``, of which only so many tools are new to ``searcher`` that it has them soon. Servers
        with few come first; another keeps the tools that it has there.
        """
        work = {name: searcher.not_indexed(record.entries) for name, record in visible.servers.items()}
        left = max(INDEXED_AT_ONCE, len(searcher) // 4)
        if sum(map(len, work.values())) <= left:
            return visible
        known = {} if self._indexed is None else self._indexed.servers
        servers: dict[str, ServerRecord] = {}
        for name in sorted(work, key=lambda name: len(work[name])):
            if left:
                servers[name] = _without(visible.servers[name], work[name][left:])
                left -= min(left, len(work[name]))
            elif not work[name]:
                servers[name] = visible.servers[name]
            elif name in known:
                servers[name] = known[name]
        return Catalog(servers)

    def _save_index(self) -> None:
        """Writes the index. It is a copy of what the catalog says: without it, only time is lost."""
        if self._searcher is not None and (index := self._searcher.to_bytes()):
            try:
                write_state(paths.index_path(self._config.state_path), index, limits.INDEX)
            except OSError as error:
                if not self._warned:  # the snapshot stands beside it, and has said why
                    self._warn_once(
                        [f"The search index can't be kept, so that every start makes it anew: {error}"]
                    )

    async def stop_indexing(self) -> None:
        """Nobody will search any more."""
        self._stopping.set()
        if self._indexing_timer is not None:
            self._indexing_timer.cancel()
        if self._indexing is not None:
            self._indexing.cancel()
            await asyncio.wait({self._indexing})

    async def close(self) -> None:
        """The catalog is on disk afterwards."""
        if self._removing_drafts is not None:
            self._removing_drafts.cancel()
        await self._snapshot_save.settled()
        if self._snapshot_save.withdraw():
            self._warn_once(self._save(self.catalog))
        await self._index_save.settled(SAVE_INDEX_WAIT)
        if (
            self._index_save.withdraw()
            and self._searcher is not None
            and len(self._searcher) <= SAVED_ON_CLOSE
        ):
            await in_thread(self._save_index, "keep")

    def _save(self, catalog: Catalog) -> tuple[str, ...]:
        path = self._config.state_path
        return snapshot.save(paths.snapshot_path(path), path, catalog)

    async def _write(self) -> None:
        catalog = self.catalog
        self._warn_once(await in_thread(lambda: self._save(catalog), "save"))

    def _warn_once(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self._warn(warning)


def _retained(catalog: Catalog, config: Config) -> Catalog:
    return retain(catalog, {name: server.fingerprint for name, server in config.servers.items()})


def _without(record: ServerRecord, tools: Iterable[Entry]) -> ServerRecord:
    """``record`` without those of its ``tools``."""
    but = set(map(id, tools))
    if not but:
        return record
    return replace(record, entries=Parts(entry for entry in record.entries if id(entry) not in but))


def _same_tools(known: Mapping[str, ServerRecord], record: ServerRecord) -> bool:
    entries = known[record.name].entries if record.name in known else ()
    return entries is record.entries or digest_of_tools(entries) == digest_of_tools(record.entries)


def _changes(before: Exposure, now: Exposure) -> list[str]:
    found = []
    if before.tools_version != now.tools_version:
        found.append(TOOLS)
    if before.prompts_version != now.prompts_version:
        found.append(PROMPTS)
    if before.resources_version != now.resources_version:
        found.append(RESOURCES)
    return found
