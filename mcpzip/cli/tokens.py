"""`mcpzip tokens`: what the tools of all servers would cost in a model's context, and what mcpzip costs."""

import json
from collections.abc import Iterator, Mapping
from statistics import mean

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import examples, json_option, server_names
from mcpzip.cli.proxy_session import known_server, list_missing, with_proxy
from mcpzip.cli.token_counter import Counter, token_counter
from mcpzip.cli.token_report import SoFar, TokenReport, break_even, page, so_far
from mcpzip.model.entry import Entry
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.metatools import instructions
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.search_reply import search_result
from mcpzip.proxy.search_request import SearchRequest
from mcpzip.search import Filters
from mcpzip.server.run_file import running
from mcpzip.system.files import write_atomic

_BAR = 30
"""Characters of the longest bar."""
_SAMPLE = 20
"""Searches of which the mean cost is taken."""
_WORDS = 8
"""Words of a description that make such a search."""


@click.command(
    epilog=examples(
        ("mcpzip tokens", "each server, and mcpzip"),
        ("mcpzip tokens github", "each tool of a server"),
        ("mcpzip tokens --html tokens.html", "a page with every tool, to keep or to show"),
    )
)
@click.argument("server", required=False, shell_complete=server_names)
@click.option("--html", metavar="FILE", type=click.Path(), help="Write a page with all tools of all servers.")
@json_option
@with_proxy
async def tokens(proxy: Proxy, server: str | None, html: str | None, as_json: bool) -> int:
    """Show how many tokens the tools of each server take in every message, or each tool of SERVER; and how
    many mcpzip takes instead.

    A tool counts with its name, description and input schema as compact JSON: what a model is given. The
    tokens are those of OpenAI's o200k_base if bpe-openai is installed (mcpzip[tokens]), else an estimate,
    which is rather too high. Exit code 1 when there are no tools.
    """
    if server is not None:
        known_server(proxy, server)
    await list_missing(proxy, None if html else server)
    report = await measured(proxy)
    if report is None:
        console.note("There are no tools. mcpzip servers says why.")
        return 1
    if html is not None:
        try:
            write_atomic(html, page(report).encode("utf-8"), 0o644)
        except OSError as error:
            raise McpzipError(f"{html} can't be written: {error.strerror or error}.") from error
        console.say(f"Wrote {html}: {len(report.costs):,} tools of {len(report.servers)} servers.")
    elif as_json:
        console.data(_as_json(report))
    else:
        rows = report.servers if server is None else _by_tool(report.costs, server)
        _show(rows, "server" if server is None else "tool", report.unit)
        if server is None:
            _show_comparison(report)
    return 0


async def measured(proxy: Proxy) -> TokenReport | None:
    """The costs of the proxy's catalog; None if it has no tools."""
    count, unit = token_counter()
    costs = {
        entry: count(_as_model_reads(entry.definition() | {"name": entry.name}))
        for entry in proxy.catalog.entries
    }
    if not costs:
        return None
    search, per_byte = await _search_cost(proxy, list(costs), count)
    runs = [run for run in running(proxy.config.path) if run.config == proxy.config.path]
    return TokenReport(
        unit=unit,
        costs=costs,
        listed=sum(count(_as_model_reads(tool)) for tool in _listed(proxy)),
        instructions=count(instructions(sorted({entry.server for entry in costs}))),
        search=search,
        so_far=SoFar(
            processes=len(runs),
            searches=sum(run.searches for run in runs),
            descriptions=sum(run.descriptions for run in runs),
            tokens=round(per_byte * sum(run.reply_bytes for run in runs)),
        ),
    )


def _as_model_reads(tool: dict[str, object]) -> str:
    """The name, description and input schema of a tool."""
    fields = {key: tool[key] for key in _READ if key in tool}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


_READ = ("name", "description", "inputSchema")


def _listed(proxy: Proxy) -> Iterator[dict[str, object]]:
    """The tools that a client of mcpzip is shown, from all pages of `tools/list`."""
    cursor: str | None = None
    while True:
        page = json.loads(proxy.exposure.tools_page(cursor))
        yield from page["tools"]
        if (cursor := page.get("nextCursor")) is None:
            return


async def _search_cost(proxy: Proxy, entries: list[Entry], count: Counter) -> tuple[float, float]:
    """The mean cost of a search: of its query and of the text of its reply. And the tokens of a reply for
    each of its bytes.
    """
    limits = proxy.config.search
    step = max(1, len(entries) // _SAMPLE)
    costs: list[int] = []
    reply_tokens = reply_bytes = 0
    for entry in entries[::step][:_SAMPLE]:
        query = " ".join((entry.description or entry.tool).split()[:_WORDS])
        request = SearchRequest(query, limits.default_limit, Filters())
        result = search_result(request, await proxy.search(request), 0.0, limits.max_tokens)
        text = json.loads(result)["content"][0]["text"]
        costs.append(count(query) + count(text))
        reply_tokens, reply_bytes = reply_tokens + count(text), reply_bytes + len(result)
    return mean(costs), reply_tokens / reply_bytes


def _by_tool(costs: Mapping[Entry, int], server: str) -> list[tuple[str, int, int]]:
    rows = [(entry.tool, 1, cost) for entry, cost in costs.items() if entry.server == server]
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def _show(rows: list[tuple[str, int, int]], what: str, unit: str) -> None:
    columns = (what, ">tools", ">" + unit, "") if what == "server" else (what, ">" + unit, "")
    table = console.Table(*columns)
    most = max((cost for *_, cost in rows), default=1)
    for name, tools, cost in rows:
        bar = "█" * max(1, round(_BAR * cost / most))
        table.row(name, *([f"{tools:,}"] if what == "server" else []), f"{cost:,}", bar)
    table.show()


def _show_comparison(report: TokenReport) -> None:
    everything, ours, unit = report.everything, report.ours, report.unit
    console.say(f"\nIn every message: {everything:,} {unit} with all tools listed, {ours:,} with mcpzip.")
    console.say(
        f"A search costs {report.search:,.0f}: query and reply together, the mean of searches for your tools."
    )
    console.say(break_even(report))
    if said := so_far(report):
        console.say(said)


def _as_json(report: TokenReport) -> dict[str, object]:
    return {
        "unit": report.unit,
        "all": report.everything,
        "mcpzip": {
            "tools": report.listed,
            "instructions": report.instructions,
            "search": round(report.search, 1),
        },
        "running": {
            "processes": report.so_far.processes,
            "searches": report.so_far.searches,
            "descriptions": report.so_far.descriptions,
            "replies": report.so_far.tokens,
        },
        "servers": {
            name: {
                "tokens": total,
                "tools": {entry.tool: cost for entry, cost in report.costs.items() if entry.server == name},
            }
            for name, _, total in report.servers
        },
    }
