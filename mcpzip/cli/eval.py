"""`mcpzip eval`: how well search finds the user's tools, and what would help those that it doesn't find."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import click
import msgspec

from mcpzip.catalog import Catalog
from mcpzip.cli import console
from mcpzip.cli.parameters import examples, json_option, server_names
from mcpzip.cli.proxy_session import known_server, list_missing, with_proxy
from mcpzip.config.schema import MAX_LIMIT, SearchConfig, SemanticConfig
from mcpzip.model import limits, sanitize
from mcpzip.model.entry import Entry
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.tool_search import ToolSearch, new_searcher
from mcpzip.search import Filters, Searcher
from mcpzip.search.evaluation import (
    DEPTH,
    KINDS,
    Measures,
    Outcome,
    Request,
    alike,
    by_kind,
    by_server,
    missing_words,
    outcome,
    requests_of,
    says_little,
)
from mcpzip.search.signals import Signals
from mcpzip.system.bounded_read import open_regular, read_limited
from mcpzip.system.files import write_atomic

SAMPLE = 600
"""Requests that are made of a catalog by default."""
_SHOWN = 10
"""Tools that weren't found that are shown."""
_ABOVE = 3
"""Tools before the right one that are shown."""
_YOURS = "yours"


class _Line(msgspec.Struct):
    query: str
    tools: list[str]


@dataclass(frozen=True, slots=True)
class _Miss:
    """A request that didn't find its tool among the first k. words: those that its description lacks; with
    them its rank would be ``rank_with_words``.
    """

    outcome: Outcome
    entry: Entry
    words: tuple[str, ...]
    rank_with_words: int | None
    rank_with_other_tier: int | None


@click.command(
    name="eval",
    epilog=examples(
        ("mcpzip eval", "requests made from your tools"),
        ("mcpzip eval --server github", "only for this server's tools"),
        ("mcpzip eval --save requests.jsonl", "keep the requests, to correct them and to add your own"),
        ("mcpzip eval --queries requests.jsonl --min-recall 0.9", "for a test: exit code 1 below 90 %"),
    ),
)
@click.option("--queries", metavar="FILE", type=click.Path(), help="Your own requests: see below.")
@click.option(
    "-n",
    "--limit",
    "k",
    type=click.IntRange(1, DEPTH),
    help="Tools of a reply that count; the config's limit.",
)
@click.option("-s", "--server", shell_complete=server_names, help="Only requests for this server's tools.")
@click.option(
    "--sample", type=click.IntRange(1, 1_000_000), default=SAMPLE, show_default=True, help="Requests."
)
@click.option("--save", metavar="FILE", type=click.Path(), help="Write the requests as JSON lines.")
@click.option("--min-recall", type=click.FloatRange(0, 1), help="Exit code 1 if fewer are found: 0 to 1.")
@json_option
@with_proxy
async def eval_(
    proxy: Proxy, queries: str | None, k: int | None, server: str | None, sample: int, save: str | None,
    min_recall: float | None, as_json: bool,
) -> int:  # fmt: skip
    """Measure how well search finds your own tools, and what would help those that it doesn't find.

    Requests are made from the tools: from their names and descriptions, with other verbs and misspelled. They
    are easier than a person's, so compare their figures only with each other. FILE of --queries has your own,
    a JSON object a line: {"query": "tell the team", "tools": ["slack__send_message"]}; any of its tools is
    right.

    Searches as your agent does, with words and the local tier of meaning; embedding servers and Gemini are
    not asked. Exit code 1 if there is nothing to measure, or less is found than --min-recall.
    """
    if server is not None:
        known_server(proxy, server)
    await list_missing(proxy, server)
    with console.spinner("indexing the tools", aside=True):
        await proxy.wait_until_indexed()
    catalog = proxy.catalog
    wanted = [entry for entry in catalog.entries if server in (None, entry.server)]
    if not wanted:
        console.note("There are no tools. mcpzip servers says why.")
        return 1
    if queries is None:
        requests = requests_of(wanted, sample)
    else:
        names = {entry.name for entry in wanted}
        requests = [each for each in _read(queries, catalog) if each.tools & names][:sample]
    if not requests:
        console.note("There is no request to measure.")
        return 1
    if save is not None:
        _save(save, requests)
    limit = k or proxy.config.search.default_limit
    with console.spinner(f"searching {len(requests)} times", aside=True):
        report = _Evaluation(proxy, catalog, limit).run(requests)
    if as_json:
        console.data(report.as_json())
    else:
        report.show()
    return 1 if min_recall is not None and report.whole.recall < min_recall else 0


# ---- files


def _read(path: str, catalog: Catalog) -> Iterator[Request]:
    """The requests in a file of JSON lines. Raises McpzipError that names the line."""
    known = {entry.name for entry in catalog.entries}
    try:
        handle, _ = open_regular(path)
        try:
            data = read_limited(lambda size: os.read(handle, size), limits.CONFIG, path)
        finally:
            os.close(handle)
    except OSError as error:
        raise McpzipError(f"{path} can't be read: {error.strerror or error}.") from error
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            example = '{"query": "tell the team", "tools": ["slack__send_message"]}'
            raise McpzipError(f"{path}, line {number}: {error}. Write {example}.") from error
        if not found.query.strip() or not found.tools:
            raise McpzipError(f"{path}, line {number}: it needs a query, and at least one tool.")
        for name in found.tools:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                meant = f" Did you mean {near[0]}?" if near else " mcpzip tools lists all."
                raise McpzipError(f"{path}, line {number}: there is no tool {name!r}.{meant}")
        yield Request(found.query, frozenset(found.tools), _YOURS)


def _save(path: str, requests: Sequence[Request]) -> None:
    lines = [
        json.dumps({"query": each.query, "tools": sorted(each.tools)}, ensure_ascii=False)
        for each in requests
    ]
    try:
        write_atomic(path, "\n".join([*lines, ""]).encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise McpzipError(f"{path} can't be written: {error.strerror or error}.") from error


# ---- the measurement


class _Evaluation:
    """Searches for all requests with the settings of the config, and with others."""

    def __init__(self, proxy: Proxy, catalog: Catalog, k: int) -> None:
        self._config, self._catalog, self._k = proxy.config, catalog, k
        self._entries = {entry.name: entry for entry in catalog.entries}
        finder = ToolSearch.of(self._config, console.warn, remote=False)
        self._signals: Signals = finder.signals(catalog, frozenset())

    def run(self, requests: Sequence[Request]) -> "_Report":
        """The outcomes of ``requests``, and what would help those that fail."""
        own = self._config.search
        meaning = own.semantic.provider != "off"
        other = replace(own, semantic=SemanticConfig("off" if meaning else "local"))
        entries = list(self._entries.values())
        searcher = self._searcher(own, entries)
        outcomes = [self._outcome(searcher, request) for request in requests]
        beside = self._searcher(other, entries)
        others = [self._outcome(beside, request) for request in requests]
        missed = [
            (found, elsewhere)
            for found, elsewhere in zip(outcomes, others, strict=True)
            if found.rank is None or found.rank > self._k
        ]
        misses = self._misses(missed, own)
        return _Report(
            self._k, meaning, outcomes, others, misses, self._entries, frozenset(self._signals.uses)
        )

    def _searcher(self, search: SearchConfig, entries: Sequence[Entry]) -> Searcher:
        searcher = new_searcher(search, console.warn)
        searcher.index(entries, self._catalog.version)
        return searcher

    def _outcome(self, searcher: Searcher, request: Request) -> Outcome:
        results = searcher.search(request.query, min(DEPTH, MAX_LIMIT), Filters(), (), self._signals)
        return outcome(request, ((hit.entry.name, *hit.also) for hit in results.hits))

    def _misses(self, missed: Sequence[tuple[Outcome, Outcome]], search: SearchConfig) -> list[_Miss]:
        """The first misses of different tools, searched once more with better descriptions: all of them are
        given the words that they lack in one index.
        """
        chosen: dict[str, tuple[Outcome, Outcome]] = {}
        for found, other in missed:
            chosen.setdefault(min(found.request.tools), (found, other))
        first = dict(list(chosen.items())[:_SHOWN])
        lacking = {
            name: missing_words(found.request, self._entries[name]) for name, (found, _) in first.items()
        }
        better = [_with_words(entry, lacking.get(name, ())) for name, entry in self._entries.items()]
        ranks: dict[str, int | None] = {}
        if any(lacking.values()):
            searcher = self._searcher(search, better)
            ranks = {name: self._outcome(searcher, first[name][0].request).rank for name in first}
        return [
            _Miss(
                found,
                self._entries[name],
                lacking[name],
                ranks.get(name) if lacking[name] else None,
                other.rank,
            )
            for name, (found, other) in first.items()
        ]


def _with_words(entry: Entry, lacking: Sequence[str]) -> Entry:
    """``entry`` with ``lacking`` at the end of its description."""
    if not lacking:
        return entry
    described = f"{entry.description.rstrip()} {' '.join(lacking)}."
    definition = {**entry.definition(), "description": described}
    return Entry.parse(entry.server, msgspec.json.encode(definition))


# ---- the report


@dataclass(frozen=True, slots=True)
class _Report:
    """k: tools of a reply that count. meaning: whether the config searches by meaning; ``others`` are the
    outcomes with the opposite. used: the names of the tools that were called before.
    """

    k: int
    meaning: bool
    outcomes: Sequence[Outcome]
    others: Sequence[Outcome]
    misses: Sequence[_Miss]
    entries: dict[str, Entry]
    used: frozenset[str]

    @property
    def whole(self) -> Measures:
        return Measures.of(self.outcomes, self.k)

    def as_json(self) -> dict[str, object]:
        servers = by_server(self.outcomes, {name: entry.server for name, entry in self.entries.items()})
        return {
            "k": self.k,
            "all": _measures(self.whole),
            "kinds": {
                kind: _measures(Measures.of(each, self.k)) for kind, each in by_kind(self.outcomes).items()
            },
            "servers": {name: _measures(Measures.of(each, self.k)) for name, each in servers.items()},
            "words only" if self.meaning else "with meaning": _measures(Measures.of(self.others, self.k)),
            "missed": [
                {
                    "query": each.request.query,
                    "kind": each.request.kind,
                    "tools": sorted(each.request.tools),
                    "rank": each.rank,
                    "above": list(each.above[:_ABOVE]),
                }
                for each in self.outcomes
                if each.rank is None or each.rank > self.k
            ],
            "alike": [[entry.name for entry in group] for group in alike(self.entries.values())],
            "says little": [entry.name for entry in self.entries.values() if says_little(entry)],
        }

    def show(self) -> None:
        """Prints it for people."""
        table = console.Table(
            "requests", ">count", ">found first", f">in the first {self.k}", ">MRR", "made of"
        )
        for kind, each in by_kind(self.outcomes).items():
            self._row(table, kind, Measures.of(each, self.k), KINDS.get(kind, ""))
        if own := [each for each in self.outcomes if each.request.tools & self.used]:
            self._row(
                table, "tools you use", Measures.of(own, self.k), "any of these, for tools that were called"
            )
        self._row(table, "all", self.whole)
        label = "all, by words only" if self.meaning else "all, with meaning too"
        self._row(table, label, Measures.of(self.others, self.k))
        table.show()
        servers = by_server(self.outcomes, {name: entry.server for name, entry in self.entries.items()})
        if len(servers) > 1:
            worst = sorted((Measures.of(each, self.k).recall, name) for name, each in servers.items())
            shown = ", ".join(f"{name} {recall:.0%}" for recall, name in worst[:_SHOWN])
            console.say(f"By server, the worst first: {shown}")
        self._show_misses()
        self._show_catalog()

    def _row(self, table: console.Table, what: str, found: Measures, made_of: str = "") -> None:
        table.row(
            what, f"{found.count:,}", f"{found.first:.0%}", f"{found.recall:.0%}", f"{found.mrr:.2f}", made_of
        )

    def _show_misses(self) -> None:
        count = sum(each.rank is None or each.rank > self.k for each in self.outcomes)
        if not count:
            console.say(f"Each request found its tool among the first {self.k}.", "green")
            return
        console.say(f"\nNot among the first {self.k}: {count} of {len(self.outcomes)} requests.", "bold")
        for miss in self.misses:
            found = miss.outcome
            place = f"place {found.rank}" if found.rank else f"not among the first {DEPTH}"
            above = ", ".join(found.above[:_ABOVE])
            console.say(sanitize.one_line(f"{miss.entry.name}: {place} for “{found.request.query}”"))
            if above:
                console.say(sanitize.one_line(f"  before it: {above}"), "dim")
            for advice in self._advice(miss):
                console.say(sanitize.one_line(f"  {advice}"))
        if count > len(self.misses):
            console.say("All of them: --json.")

    def _advice(self, miss: _Miss) -> Iterator[str]:
        """What helps, each tried."""
        rank = miss.outcome.rank or DEPTH + 1
        if miss.rank_with_words is not None and miss.rank_with_words < rank:
            lacking = ", ".join(miss.words)
            yield f"with {lacking} in its description it would be at place {miss.rank_with_words}"
        if miss.rank_with_other_tier is not None and miss.rank_with_other_tier < rank:
            how = "by words only" if self.meaning else 'with "semantic": "local"'
            yield f"{how} it is at place {miss.rank_with_other_tier}"
        if says_little(miss.entry):
            yield "its description says nothing that its name doesn't"
        yield f'a pin would show it always: "pin": ["{miss.entry.tool}"] for the server {miss.entry.server}'

    def _show_catalog(self) -> None:
        groups = alike(self.entries.values())
        if groups:
            shown = "; ".join(" = ".join(entry.name for entry in group) for group in groups[:_SHOWN])
            console.say(
                sanitize.one_line(f"\nThe same name and description, so search can't choose: {shown}")
            )
        little = [entry.name for entry in self.entries.values() if says_little(entry)]
        if little:
            more = f" and {len(little) - _SHOWN} more" if len(little) > _SHOWN else ""
            names = ", ".join(little[:_SHOWN])
            console.say(sanitize.one_line(f"\nDescriptions that say nothing beyond the name: {names}{more}"))


def _measures(found: Measures) -> dict[str, object]:
    return {
        "count": found.count,
        "recall@1": round(found.first, 4),
        "recall": round(found.recall, 4),
        "mrr": round(found.mrr, 4),
    }
