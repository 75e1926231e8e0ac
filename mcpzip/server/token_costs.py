"""What tools cost in a model's context, and what mcpzip costs there instead; all in tokens."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from statistics import mean
from time import time

from mcpzip.model.entry import Entry
from mcpzip.proxy.describe import described
from mcpzip.proxy.metatools import DESCRIBE, SEARCH, instructions
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.search_reply import search_result
from mcpzip.proxy.search_request import SearchRequest
from mcpzip.search import Filters
from mcpzip.server.run_file import Run
from mcpzip.server.token_counter import Counter, as_model_reads
from mcpzip.system.threads import in_thread

_SAMPLE = 20
"""Searches of which the mean cost is taken."""
_WORDS = 8
"""Words of a description that make such a search."""


@dataclass(frozen=True, slots=True)
class ReplyCost:
    """The mean of a sample of replies of one of mcpzip's tools. tokens: of a request and its reply. per_byte:
    tokens for each byte of their JSON.
    """

    tokens: float
    per_byte: float


@dataclass(frozen=True, slots=True)
class SoFar:
    """What mcpzip's own tools replied in the processes that serve now.

    processes: those that replied. searches, descriptions: the replies. size: their bytes. tokens: estimated
    from ``size`` by the ratio of a sample; searches of which the size is not known count as the mean.
    unmeasured: those searches.
    """

    processes: int
    searches: int
    descriptions: int
    size: int
    tokens: int
    unmeasured: int


@dataclass(frozen=True, slots=True)
class KeptSoFar:
    """The results of a tool that the running processes kept. tokens: about how many were not sent because of
    that; what was read on is taken off.
    """

    results: int
    tokens: int


@dataclass(frozen=True)
class Costs:
    """unit: what is counted, for people. tools: the tokens of each tool. shown, instructions: of the tools
    and the instructions that a client of mcpzip gets. search, description: of a reply. so_far: None if no
    running process replied. kept: what they kept, by tool, most tokens first.
    """

    unit: str
    tools: Mapping[Entry, int]
    shown: int
    instructions: int
    search: ReplyCost
    description: ReplyCost
    so_far: SoFar | None
    kept: Mapping[str, KeptSoFar] = field(default_factory=dict)

    @cached_property
    def all(self) -> int:
        """The tokens of all tools, listed in every message."""
        return sum(self.tools.values())

    @property
    def ours(self) -> int:
        """The tokens that mcpzip takes in every message, without searches."""
        return self.shown + self.instructions

    @property
    def break_even(self) -> int:
        """The number of searches in a context from which on mcpzip costs more; 0 where it always does."""
        return max(0, ceil((self.all - self.ours) / self.search.tokens))

    @property
    def saved(self) -> int:
        """The tokens that mcpzip saved so far in the contexts of its clients, if each process that replied is
        one conversation, with all replies in its context; negative where it cost more.
        """
        if self.so_far is None:
            return 0
        return self.so_far.processes * (self.all - self.ours) - self.so_far.tokens

    def by_server(self) -> list[tuple[str, int, int]]:
        """Name, tools and tokens of each server, the dearest first."""
        found: dict[str, list[int]] = {}
        for entry, cost in self.tools.items():
            found.setdefault(entry.server, []).append(cost)
        rows = [(name, len(costs), sum(costs)) for name, costs in found.items()]
        return sorted(rows, key=lambda row: (-row[2], row[0]))

    def of_server(self, server: str) -> list[tuple[Entry, int]]:
        """The tools of ``server`` and their tokens, the dearest first."""
        own = [(entry, cost) for entry, cost in self.tools.items() if entry.server == server]
        return sorted(own, key=lambda row: (-row[1], row[0].tool))

    def so_far_sentences(self) -> list[str]:
        """What the running processes replied so far and what that saved, for people; [] where nothing."""
        found = self.so_far
        if found is None:
            return []
        one = found.processes == 1
        processes = "the running mcpzip process" if one else f"{found.processes} running mcpzip processes"
        searches = "1 search" if found.searches == 1 else f"{found.searches:,} searches"
        told = "1 description" if found.descriptions == 1 else f"{found.descriptions:,} descriptions"
        sentences = [
            f"So far {processes} answered {searches} and {told}: {found.tokens:,} tokens, estimated from "
            f"{found.size:,} bytes."
        ]
        if found.unmeasured:
            sentences.append(
                f"The bytes of {found.unmeasured:,} searches are not known; these count as the mean."
            )
        if self.saved > 0:
            where = "a conversation that has" if one else f"{found.processes} conversations that have"
            sentences.append(f"In {where} them all in context, mcpzip saves {self.saved:,} tokens.")
        else:
            sentences.append(
                f"With them all in context, mcpzip costs {-self.saved:,} tokens more than it saves."
            )
        return sentences

    def as_json(self) -> dict[str, object]:
        """The same for programs."""
        so_far = self.so_far
        return {
            "unit": self.unit,
            "all": self.all,
            "mcpzip": {
                "tools": self.shown,
                "instructions": self.instructions,
                "search": round(self.search.tokens, 1),
                "describe": round(self.description.tokens, 1),
            },
            "break_even": self.break_even,
            "so_far": None
            if so_far is None
            else {
                "processes": so_far.processes,
                "searches": so_far.searches,
                "descriptions": so_far.descriptions,
                "bytes": so_far.size,
                "tokens": so_far.tokens,
                "saved": self.saved,
            },
            "kept": {
                tool: {"results": each.results, "tokens": each.tokens} for tool, each in self.kept.items()
            },
            "servers": {
                name: {
                    "tokens": total,
                    "tools": {entry.tool: cost for entry, cost in self.tools.items() if entry.server == name},
                }
                for name, _, total in self.by_server()
            },
        }


async def measured(proxy: Proxy, count: Counter, unit: str, runs: Iterable[Run]) -> Costs:
    """The costs of the tools of ``proxy``, of which there is at least one. runs: the running processes."""
    entries = list(proxy.catalog.entries)
    counted = await in_thread(lambda: [_cost(entry, count) for entry in entries], "costs")
    tools = dict(zip(entries, counted, strict=True))
    sample = entries[:: max(1, len(entries) // _SAMPLE)][:_SAMPLE]
    search = _mean([await _search(proxy, entry, count) for entry in sample])
    description = _mean([_description(proxy, entry, count) for entry in sample])
    own = [run for run in runs if run.config == proxy.config.path]
    return Costs(
        unit=unit,
        tools=tools,
        shown=sum(count(as_model_reads(tool)) for tool in _listed(proxy)),
        instructions=count(instructions(sorted({entry.server for entry in tools}), split=proxy.config.split)),
        search=search,
        description=description,
        so_far=so_far(own, search, description),
        kept=kept_so_far(own),
    )


def _cost(entry: Entry, count: Counter) -> int:
    return count(as_model_reads(entry.definition() | {"name": entry.name}))


def so_far(runs: Iterable[Run], search: ReplyCost, description: ReplyCost) -> SoFar | None:
    """What ``runs`` replied; None if nothing."""
    processes = searches = descriptions = size = unmeasured = 0
    tokens = 0.0
    for run in runs:
        found, told = run.replies.get(SEARCH), run.replies.get(DESCRIBE)
        unknown = run.searches if not run.replies else 0  # written by a version that didn't measure
        processes += bool(found or told or unknown)
        unmeasured += unknown
        searches += unknown
        tokens += unknown * search.tokens
        if found:
            searches += found.count
            size += found.size
            tokens += found.size * search.per_byte
        if told:
            descriptions += told.count
            size += told.size
            tokens += told.size * description.per_byte
    if not processes:
        return None
    return SoFar(processes, searches, descriptions, size, round(tokens), unmeasured)


def kept_so_far(runs: Iterable[Run]) -> dict[str, KeptSoFar]:
    """The results that ``runs`` kept, by tool, most tokens first."""
    found: dict[str, tuple[int, int]] = {}
    for run in runs:
        for tool, each in run.kept.items():
            results, tokens = found.get(tool, (0, 0))
            found[tool] = results + each.count, tokens + each.tokens
    return {tool: KeptSoFar(*found[tool]) for tool in sorted(found, key=lambda tool: (-found[tool][1], tool))}


def _listed(proxy: Proxy) -> Iterator[dict[str, object]]:
    """The tools that a client of mcpzip is shown, from all pages of `tools/list`."""
    cursor: str | None = None
    while True:
        page = json.loads(proxy.exposure.tools_page(cursor))
        yield from page["tools"]
        if (cursor := page.get("nextCursor")) is None:
            return


async def _search(proxy: Proxy, entry: Entry, count: Counter) -> tuple[int, int]:
    """The tokens and the bytes of a search: of its query and of its reply."""
    limits = proxy.config.search
    query = " ".join((entry.description or entry.tool).split()[:_WORDS])
    request = SearchRequest(query, limits.default_limit, Filters())
    reads = proxy.tool_caller.reads or ()
    result = search_result(request, await proxy.search(request), 0.0, limits.max_tokens, reads=reads)
    return count(query) + count(_text(result)), len(json.dumps({"query": query})) + len(result)


def _description(proxy: Proxy, entry: Entry, count: Counter) -> tuple[int, int]:
    """The same for a description: of a name and its schema."""
    note = proxy.tool_caller.note(entry)
    result = described(entry, proxy.catalog.servers[entry.server], time(), note)
    return count(entry.name) + count(_text(result)), len(json.dumps({"name": entry.name})) + len(result)


def _mean(replies: Sequence[tuple[int, int]]) -> ReplyCost:
    tokens, size = (sum(column) for column in zip(*replies, strict=True))
    return ReplyCost(mean(tokens for tokens, _ in replies), tokens / size)


def _text(result: bytes) -> str:
    text = json.loads(result)["content"][0]["text"]
    assert isinstance(text, str)
    return text
