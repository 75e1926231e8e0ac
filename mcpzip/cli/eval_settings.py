"""The settings of search that `mcpzip eval` compares: each is an index with the tiers that rank it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from mcpzip.catalog import Catalog
from mcpzip.cli import console
from mcpzip.cli.console import warn
from mcpzip.config import Config
from mcpzip.config.schema import SemanticConfig
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.local_search import new_searcher
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.search_request import SearchRequest
from mcpzip.proxy.tool_search import ToolSearch
from mcpzip.proxy.tool_usage import learns_words, usage_path
from mcpzip.proxy.usage_store import UsageStore
from mcpzip.search import Filters, Searcher
from mcpzip.search.evaluation.metrics import DEPTH, Outcome, outcome
from mcpzip.search.evaluation.requests import Request

KEYWORD, LOCAL, REMOTE = "keyword", "local", "remote"
TIERS = (KEYWORD, LOCAL, REMOTE)
NAMES = {KEYWORD: "keyword", LOCAL: "keyword+semantic"}
_NOBODY = Filters()


@dataclass(slots=True)
class Setting:
    """A way to search a catalog. absent: why tiers gave no answer, and how often."""

    name: str
    searcher: Searcher
    finder: ToolSearch
    catalog: Catalog
    absent: dict[str, int] = field(default_factory=dict)

    async def outcome(self, request: Request, filters: Filters = _NOBODY) -> Outcome:
        """How this setting answers ``request``."""
        wanted = SearchRequest(request.query, DEPTH, filters)
        results = await self.finder.search(wanted, self.searcher, self.catalog)
        for absence in results.absent:
            reason = f"{absence.tier} ({absence.method}): {absence.reason}"
            self.absent[reason] = self.absent.get(reason, 0) + 1
        return outcome(request, [(hit.entry.name, *hit.also) for hit in results.hits])

    async def outcomes(self, requests: Sequence[Request], done: Callable[[], None]) -> list[Outcome]:
        """The outcome of each of ``requests``. done: called after each."""
        found = []
        for request in requests:
            found.append(await self.outcome(request))
            done()
        return found


def local_only(config: Config) -> Config:
    """``config`` without a tier that calls a service or needs an extra."""
    semantic = config.search.semantic
    if semantic.provider in ("local", "off"):
        return config
    return replace(config, search=replace(config.search, semantic=SemanticConfig()))


def has_remote(config: Config) -> bool:
    """Whether ``config`` has a tier that calls a service or needs an extra."""
    return local_only(config) is not config or bool(config.gemini_api_key and config.search.model)


@asynccontextmanager
async def opened(proxy: Proxy, config: Config, tiers: Sequence[str]) -> AsyncIterator[list[Setting]]:
    """The settings ``tiers``, that of the config first, with the boosts and the past use that a search of
    ``proxy`` has. config: as it is in the file; ``proxy`` has `local_only` of it.
    """
    own = KEYWORD if proxy.config.search.semantic.provider == "off" else LOCAL
    await proxy.wait_until_indexed()
    indexed = await proxy.searcher()
    async with AsyncExitStack() as stack:
        settings = []
        for tier in sorted({own, *tiers} - {REMOTE}, key=lambda tier: tier != own):
            searcher = indexed if tier == own else copy_of(proxy, tier)
            settings.append(Setting(NAMES[tier], searcher, _finder(proxy, stack), proxy.catalog))
        if REMOTE in tiers:
            finder = ToolSearch.of(config, warn)
            stack.push_async_callback(finder.close)
            with console.spinner("embedding the catalog", aside=True):
                finder.index(proxy.catalog)
                await finder.wait_until_indexed()
            settings.insert(0, Setting("with remote tiers", indexed, finder, proxy.catalog))
        yield settings


def copy_of(proxy: Proxy, tier: str, like: Searcher | None = None) -> Searcher:
    """An index of the tools of ``proxy`` of its own, which may be changed. like: one with the same tools and
    tier, whose analysis is used.
    """
    provider = SemanticConfig("off" if tier == KEYWORD else "local")
    searcher = new_searcher(replace(proxy.config.search, semantic=provider), warn)
    with console.spinner("indexing", aside=True):
        entries = (*proxy.catalog.entries, *ADMIN_TOOLS)
        searcher.index(entries, "copy", b"" if like is None else like.to_bytes())
    return searcher


def _finder(proxy: Proxy, stack: AsyncExitStack) -> ToolSearch:
    config = proxy.config
    usage = None
    if config.search.learn:
        usage = UsageStore(usage_path(config.path), warn, words=learns_words(config))
    finder = ToolSearch({}, usage, None)
    finder.reconfigure(config)
    stack.push_async_callback(finder.close)
    return finder
