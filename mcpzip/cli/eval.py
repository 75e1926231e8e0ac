"""`mcpzip eval`: how well search finds the tools of your own catalog, and what would help."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import click

from mcpzip.cli import console, eval_report
from mcpzip.cli.eval_changes import Changes, Miss
from mcpzip.cli.eval_report import Evaluation
from mcpzip.cli.eval_settings import KEYWORD, LOCAL, REMOTE, TIERS, Setting, copy_of, has_remote, local_only
from mcpzip.cli.eval_settings import opened as opened_settings
from mcpzip.cli.parameters import config_option, examples, hint, json_option, server_names
from mcpzip.cli.proxy_session import known_server, list_missing, proxy_with
from mcpzip.config import config_path, load
from mcpzip.config.paths import find_project
from mcpzip.config.schema import MAX_LIMIT
from mcpzip.model.entry import Entry
from mcpzip.model.errors import McpzipError
from mcpzip.model.quoting import shortened
from mcpzip.proxy.proxy import Proxy
from mcpzip.search.evaluation import request_file
from mcpzip.search.evaluation.lookalikes import NEARLY_THE_SAME, resemblance, short_descriptions, twins
from mcpzip.search.evaluation.metrics import Outcome
from mcpzip.search.evaluation.requests import KINDS, Request, build, sample
from mcpzip.system.files import read_bytes_limited, write_atomic

_SAMPLE = 300
"""Tools of which requests are made, unless --all."""
_USED = 100
"""Tools with the most calls of which requests are made beside the sample."""
_REMOTE_REQUESTS = 100
"""Requests that remote tiers are asked, because each may cost money."""
_TRIED, _TRIED_AT_LEAST = 50, 10
"""Tools that are not found for which changes are tried."""
_REINDEXED = 250_000
"""Tools that are looked at for it: for each change once the whole catalog."""
_CONFUSED = 100
"""Pairs of tools that are looked at for being confused with each other."""
_WRONG_NAMES = 5
"""Unknown tools of a file that an error names."""


@dataclass(frozen=True, slots=True)
class _Options:
    """The command line. k: lines of a reply; None: the config's limit."""

    server: str | None
    k: int | None
    queries: str | None
    save: str | None
    tiers: tuple[str, ...]
    everything: bool


class _Tiers(click.ParamType[tuple[str, ...]]):
    name = "tiers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        tiers = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        for tier in tiers:
            if tier not in TIERS:
                near = get_close_matches(tier, TIERS, n=1)
                meant = f" Did you mean {near[0]}?" if near else ""
                self.fail(f"There is no tier {tier!r}.{meant} Write some of: {', '.join(TIERS)}.", param, ctx)
        return tiers


@click.command(
    epilog=examples(
        ("mcpzip eval", "requests made from your catalog"),
        ("mcpzip eval --save requests.jsonl", "… which you can edit"),
        ("mcpzip eval --server github -n 3", "only one server's tools, among the first three"),
    )
)
@click.option(
    "--queries",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help='Your own requests: {"query": "…", "tools": ["server__tool"]} a line, or query, tab, tool.',
)
@click.option(
    "-s",
    "--server",
    shell_complete=server_names,
    help="Only requests for this server's tools; all tools are searched.",
)
@click.option(
    "-n",
    "--limit",
    "k",
    type=click.IntRange(1, MAX_LIMIT),
    help="Lines of a reply that count as found. The config's default_limit if left out.",
)
@click.option(
    "--tiers",
    type=_Tiers(),
    default=(KEYWORD, LOCAL),
    metavar="LIST",
    help="The tiers to compare: keyword, local, remote. Remote tiers of the config are asked only with this, "
    f"{_REMOTE_REQUESTS} requests at most.",
)
@click.option("--all", "everything", is_flag=True, help=f"Ask for every tool, not for {_SAMPLE} at most.")
@click.option(
    "--misses", type=click.IntRange(0), default=10, show_default=True, help="Tools not found to show."
)
@click.option(
    "--min-recall",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Exit with 1 if recall within the limit is lower, for CI: 0.9.",
)
@click.option(
    "--save", type=click.Path(dir_okay=False), metavar="FILE", help="Write the requests, for --queries."
)
@json_option
@config_option
def eval(
    queries: str | None, server: str | None, k: int | None, tiers: tuple[str, ...], everything: bool,
    misses: int, min_recall: float | None, save: str | None, as_json: bool, config: str | None,
) -> int:  # fmt: skip
    """Measure how well search finds your own tools, and what would help.

    mcpzip makes the requests from names and descriptions, without a model. They are easier than those of a
    person, so use their figures to compare settings, servers and descriptions. recall@k: the share of
    requests whose tool is among the first k lines. MRR: the mean of 1/line. Each change that is named was
    tried. Servers are started only if their tools are not known.
    """
    options = _Options(server, k, queries, save, tiers, everything)
    found = asyncio.run(_evaluate(config_path(config, os.environ), options))
    if found is None:
        return 1
    if as_json:
        console.data(eval_report.as_json(found))
    else:
        eval_report.show(found, misses)
    recall = found.overall.recall[found.k]
    if min_recall is not None and recall < min_recall:
        console.note(f"recall@{found.k} is {recall:.3f}, lower than --min-recall {min_recall:g}.")
        return 1
    return 0


async def _evaluate(path: str, options: _Options) -> Evaluation | None:
    """None where there is nothing to evaluate, which was said."""
    config = load(path, os.environ, find_project(os.environ))
    remote = REMOTE in options.tiers
    if remote and not has_remote(config):
        raise McpzipError(
            f"{path} has no remote tier. Set search.semantic or gemini_api_key, or leave out --tiers remote."
        )
    own = options.queries is not None
    file = _read(options.queries) if options.queries is not None else []
    async with proxy_with(local_only(config)) as proxy:
        if options.server is not None:
            known_server(proxy, options.server)
        await list_missing(proxy)
        entries = [each for each in proxy.catalog.entries if options.server in (None, each.server)]
        if not entries:
            console.note(f"There are no tools. {hint('servers')} says why.")
            return None
        if own:
            asked, requests = entries, _checked(proxy, options, file)
        else:
            asked = sample(entries, len(entries) if options.everything else _SAMPLE)
            requests = build(asked)
        if options.save is not None:
            _save(options.save, requests)
        if remote and len(requests) > _REMOTE_REQUESTS:
            console.note(f"Remote tiers are asked {_REMOTE_REQUESTS} of {len(requests):,} requests.")
            requests = _thinned(requests, _REMOTE_REQUESTS)
        if not requests:
            console.note(
                "No request can be made: the tools have neither descriptions nor names of two words. "
                f"Write requests of your own: {hint('eval', '--queries', 'FILE')}"
                if not own
                else "No request is left. Write requests for the tools of this server into the file."
            )
            return None
        async with opened_settings(proxy, config, options.tiers) as settings:
            k = options.k or proxy.config.search.default_limit
            unasked = has_remote(config) and not remote
            return await _run(proxy, settings, requests, asked, k, options, unasked=unasked)


async def _run(
    proxy: Proxy,
    settings: list[Setting],
    requests: list[Request],
    asked: list[Entry],
    k: int,
    options: _Options,
    *,
    unasked: bool,
) -> Evaluation:
    main, *others = settings
    own = options.queries is not None
    uses = main.finder.signals(proxy.catalog, frozenset()).uses
    with console.counting_bar("searching", len(requests) * len(settings)) as done:
        outcomes = await main.outcomes(requests, done)
        compared = {other.name: await other.outcomes(requests, done) for other in others}
    remote = REMOTE in options.tiers
    used = await _used(main, proxy, outcomes, uses, more=not own and not remote, server=options.server)
    local = others[0] if remote else main
    confused = await _confused(local, proxy, outcomes)
    whatif = None if remote else copy_of(proxy, _tier(proxy), main.searcher)
    tried = max(_TRIED_AT_LEAST, min(_TRIED, _REINDEXED // len(proxy.catalog.entries)))
    misses = await _misses(Changes(main, whatif, k), outcomes, compared, uses, k, tried)
    return Evaluation(
        k=k,
        setting=main.name,
        own=own,
        searched=len(proxy.catalog.entries),
        tools=len([each for each in proxy.catalog.entries if options.server in (None, each.server)]),
        asked=len(asked),
        outcomes=outcomes,
        compared=compared,
        used=used,
        uses=uses,
        misses=misses,
        missed=len({need for one in outcomes for need in _missed(one, k)}),
        pinned=frozenset(m.tool.name for m in misses if proxy.exposure.tool_named(m.tool.name) is not None),
        twins=twins(proxy.catalog.entries),
        confused=confused,
        short=short_descriptions(asked),
        absent=main.absent,
        unasked=unasked,
    )


def _tier(proxy: Proxy) -> str:
    return KEYWORD if proxy.config.search.semantic.provider == "off" else LOCAL


# --- the requests -------------------------------------------------------------------------------------------


def _read(path: str) -> list[Request]:
    """The requests in a file. Raises McpzipError."""
    try:
        return request_file.parse(read_bytes_limited(path, request_file.MOST_BYTES))
    except OSError as error:
        raise McpzipError(f"{path} can't be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise McpzipError(f"{path}, {error}.") from error


def _checked(proxy: Proxy, options: _Options, requests: Sequence[Request]) -> list[Request]:
    """``requests``, or those for the tools of the server. Raises McpzipError for tools that aren't there."""
    known = {entry.name for entry in proxy.catalog.entries}
    unknown = dict.fromkeys(tool for request in requests for tool in request.tools if tool not in known)
    if unknown:
        said = []
        for tool in list(unknown)[:_WRONG_NAMES]:
            near = proxy.catalog.nearest(tool, 1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            said.append(f"{shortened(tool, 80)!r}{meant}")
        more = f" and {len(unknown) - _WRONG_NAMES} more" if len(unknown) > _WRONG_NAMES else ""
        raise McpzipError(
            f"{options.queries} names tools that the catalog doesn't have: {', '.join(said)}{more}. "
            f"Correct the names; {hint('tools')} lists them."
        )
    prefix = f"{options.server}__"
    return [
        request
        for request in requests
        if options.server is None or any(tool.startswith(prefix) for tool in request.tools)
    ]


def _save(path: str, requests: Sequence[Request]) -> None:
    try:
        write_atomic(path, request_file.render(requests))
    except OSError as error:
        raise McpzipError(f"{path} can't be written: {error.strerror or error}.") from error
    console.note(f"Saved {len(requests):,} requests in {path}.")


def _thinned(requests: Sequence[Request], most: int) -> list[Request]:
    """About every n-th of ``requests``, ``most`` at most, so that every kind is kept."""
    return [requests[at * len(requests) // most] for at in range(most)]


# --- what follows from the outcomes -------------------------------------------------------------------------


async def _used(
    main: Setting,
    proxy: Proxy,
    outcomes: Sequence[Outcome],
    uses: Mapping[str, float],
    *,
    more: bool,
    server: str | None,
) -> list[Outcome]:
    """The outcomes for tools that were called. more: whether to ask for those that were not asked for yet."""
    found = [one for one in outcomes if any(tool in uses for tool in one.request.tools)]
    if more:
        covered = {tool for one in outcomes for tool in one.request.tools}
        called = sorted((tool for tool in uses if tool not in covered), key=lambda tool: (-uses[tool], tool))
        entries = (proxy.catalog.get(tool) for tool in called[:_USED])
        left = build(each for each in entries if each is not None and server in (None, each.server))
        found += await main.outcomes(left, lambda: None)
    return found


async def _confused(setting: Setting, proxy: Proxy, outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """Pairs of tools with nearly the same description, each of which comes before the other for a request
    that is meant for the other; sorted.
    """
    ahead: set[tuple[str, str]] = set()
    asked: set[str] = set()

    def note(one: Outcome) -> None:
        if one.request.kind in KINDS and len(one.request.tools) == 1:
            asked.update(one.request.tools)
            ahead.update((one.request.tools[0], other) for other in one.before)

    for one in outcomes:
        note(one)
    pairs = []
    for tool, other in sorted(ahead):
        mine, yours = proxy.catalog.get(tool), proxy.catalog.get(other)
        if mine is not None and yours is not None and resemblance(mine, yours) >= NEARLY_THE_SAME:
            pairs.append((tool, other, yours))
    for _, other, entry in pairs[:_CONFUSED]:
        if other not in asked:
            for one in await setting.outcomes(build([entry]), lambda: None):
                note(one)
    return sorted({(min(a, b), max(a, b)) for a, b, _ in pairs if (b, a) in ahead})


def _missed(one: Outcome, k: int) -> list[frozenset[str]]:
    pairs = zip(one.request.needs, one.ranks, strict=True)
    return [need for need, rank in pairs if rank is None or rank > k]


async def _misses(
    changes: Changes,
    outcomes: Sequence[Outcome],
    compared: Mapping[str, Sequence[Outcome]],
    uses: Mapping[str, float],
    k: int,
    most: int,
) -> list[Miss]:
    """One miss of each of ``most`` tools, of the easiest request that doesn't find it. The tools that are
    used come first, then those that even an easy request doesn't find, then those that most don't find.
    """
    by_tool: dict[str, list[int]] = {}
    for number, one in enumerate(outcomes):
        for need in _missed(one, k)[:1]:
            by_tool.setdefault(min(need), []).append(number)
    easiest = {tool: _difficulty(outcomes[numbers[0]]) for tool, numbers in by_tool.items()}
    order = sorted(
        by_tool, key=lambda tool: (-uses.get(tool, 0.0), easiest[tool], -len(by_tool[tool]), tool)
    )[:most]
    found = []
    with console.counting_bar("trying changes", len(order)) as done:
        for tool in order:
            number = by_tool[tool][0]
            others = {name: results[number] for name, results in compared.items()}
            if (miss := await changes.miss(outcomes[number], others)) is not None:
                found.append(miss)
            done()
    return found


def _difficulty(one: Outcome) -> int:
    """The place of its kind among `KINDS`; 0 for a request of the user's."""
    kinds = list(KINDS)
    return kinds.index(one.request.kind) if one.request.kind in kinds else 0
