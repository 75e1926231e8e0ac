"""`mcpzip tokens`: what the tools of all servers would cost in a model's context, and what mcpzip costs."""

import json
from collections.abc import Iterator
from statistics import mean

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import examples, json_option, server_names
from mcpzip.cli.proxy_session import known_server, list_missing, with_proxy
from mcpzip.cli.token_counter import Counter, token_counter
from mcpzip.model.entry import Entry
from mcpzip.proxy.metatools import instructions
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.search_reply import search_result
from mcpzip.proxy.search_request import SearchRequest
from mcpzip.search import Filters

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
    )
)
@click.argument("server", required=False, shell_complete=server_names)
@json_option
@with_proxy
async def tokens(proxy: Proxy, server: str | None, as_json: bool) -> int:
    """Show how many tokens the tools of each server take in every message, or each tool of SERVER; and how
    many mcpzip takes instead.

    A tool counts with its name, description and input schema as compact JSON: what a model is given. The
    tokens are those of OpenAI's o200k_base if bpe-openai is installed (mcpzip[tokens]), else an estimate,
    which is rather too high. Exit code 1 when there are no tools.
    """
    if server is not None:
        known_server(proxy, server)
    await list_missing(proxy, server)
    count, unit = token_counter()
    costs = {
        entry: count(_as_model_reads(entry.definition() | {"name": entry.name}))
        for entry in proxy.catalog.entries
    }
    if not costs:
        console.note("There are no tools. mcpzip servers says why.")
        return 1
    shown = sum(count(_as_model_reads(tool)) for tool in _listed(proxy))
    instruction_tokens = count(instructions(sorted({entry.server for entry in costs})))
    search = await _search_cost(proxy, list(costs), count)
    if as_json:
        console.data(_as_json(costs, shown, instruction_tokens, search, unit))
        return 0
    rows = _by_server(costs) if server is None else _by_tool(costs, server)
    _show(rows, "server" if server is None else "tool", unit)
    if server is None:
        _show_comparison(sum(costs.values()), shown + instruction_tokens, search, unit)
    return 0


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


async def _search_cost(proxy: Proxy, entries: list[Entry], count: Counter) -> float:
    """The mean cost of a search: of its query and of the text of its reply."""
    limits = proxy.config.search
    step = max(1, len(entries) // _SAMPLE)
    costs = []
    for entry in entries[::step][:_SAMPLE]:
        query = " ".join((entry.description or entry.tool).split()[:_WORDS])
        request = SearchRequest(query, limits.default_limit, Filters())
        result = search_result(request, await proxy.search(request), 0.0, limits.max_tokens)
        text = json.loads(result)["content"][0]["text"]
        costs.append(count(query) + count(text))
    return mean(costs)


def _by_server(costs: dict[Entry, int]) -> list[tuple[str, int, int]]:
    """Name, tools and tokens of each server, the dearest first."""
    names = {entry.server for entry in costs}
    rows = [
        (name, len(own), sum(own)) for name in names if (own := [costs[e] for e in costs if e.server == name])
    ]
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def _by_tool(costs: dict[Entry, int], server: str) -> list[tuple[str, int, int]]:
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


def _show_comparison(everything: int, ours: int, search: float, unit: str) -> None:
    saved = everything - ours
    console.say(f"\nIn every message: {everything:,} {unit} with all tools listed, {ours:,} with mcpzip.")
    console.say(
        f"A search costs {search:,.0f}: query and reply together, the mean of searches for your tools."
    )
    if saved <= 0:
        console.say("With so few tools mcpzip costs more than it saves in context.")
    else:
        console.say(
            f"A conversation costs less with mcpzip as long as fewer than {saved / search:,.0f} searches are "
            "in its context."
        )


def _as_json(
    costs: dict[Entry, int], shown: int, instruction_tokens: int, search: float, unit: str
) -> dict[str, object]:
    return {
        "unit": unit,
        "all": sum(costs.values()),
        "mcpzip": {"tools": shown, "instructions": instruction_tokens, "search": round(search, 1)},
        "servers": {
            name: {
                "tokens": total,
                "tools": {entry.tool: cost for entry, cost in costs.items() if entry.server == name},
            }
            for name, _, total in _by_server(costs)
        },
    }
