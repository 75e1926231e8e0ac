"""`mcpzip tokens`: what the tools of all servers would cost in a model's context, and what mcpzip costs."""

import os

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import examples, hint, json_option, server_names
from mcpzip.cli.proxy_session import known_server, list_missing, with_proxy
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.run_file import running
from mcpzip.server.token_costs import Costs, measured
from mcpzip.server.token_counter import token_counter
from mcpzip.system.files import write_atomic
from mcpzip.system.threads import in_thread

_BAR = 30
"""Characters of the longest bar."""
_KEPT_TOOLS = 20
_CONVERSATIONS = (5, 20)
"""Searches of the conversations that are compared."""
_PAGE = "mcpzip-tokens.html"


@click.command(
    epilog=examples(
        ("mcpzip tokens", "each server, and mcpzip"),
        ("mcpzip tokens github", "each tool of a server"),
        ("mcpzip tokens --html tokens.html", "a page with every tool, to keep or to show"),
    )
)
@click.argument("server", required=False, shell_complete=server_names)
@click.option(
    "--html",
    is_flag=False,
    flag_value=_PAGE,
    metavar="[FILE]",
    help=f"Write a page that needs no network, {_PAGE} if FILE is left out.",
)
@json_option
@with_proxy
async def tokens(proxy: Proxy, server: str | None, html: str | None, as_json: bool) -> int:
    """Show how many tokens the tools of each server take in every message, or each tool of SERVER; and how
    many mcpzip takes instead, and took so far.

    A tool counts with its name, description and input schema as compact JSON: what a model is given. The
    tokens are those of OpenAI's o200k_base if bpe-openai is installed (mcpzip[tokens]), else an estimate,
    which is rather too high. What mcpzip replied so far is estimated from the bytes that running processes
    count. Exit code 1 when there are no tools.
    """
    if server is None and html in proxy.config.servers:
        raise click.UsageError(
            f"--html takes {html!r} for its FILE. Write: {hint('tokens', str(html), '--html')}"
        )
    if server is not None:
        known_server(proxy, server)
    await list_missing(proxy, server)
    if not proxy.catalog.entries:
        console.note(f"There are no tools. {hint('servers')} says why.")
        return 1
    count, unit = token_counter()
    runs = await in_thread(lambda: running(proxy.config.path), "running processes")
    costs = await measured(proxy, count, unit, runs)
    if html is not None:
        _write_page(html, costs)
    if as_json:
        console.data(costs.as_json())
        return 0
    if server is not None:
        _show([(entry.tool, 1, cost) for entry, cost in costs.of_server(server)], "tool", unit)
        return 0
    _show(costs.by_server(), "server", unit)
    _show_comparison(costs)
    return 0


def _write_page(path: str, costs: Costs) -> None:
    from mcpzip.cli.tokens_page import render

    try:
        write_atomic(path, render(costs).encode())
    except OSError as error:
        raise McpzipError(f"{path} can't be written: {error.strerror or error}.") from error
    console.note(f"Wrote {os.path.abspath(path)}.")


def _show(rows: list[tuple[str, int, int]], what: str, unit: str) -> None:
    columns = (what, ">tools", ">" + unit, "") if what == "server" else (what, ">" + unit, "")
    table = console.Table(*columns)
    most = max((cost for *_, cost in rows), default=1)
    for name, tools, cost in rows:
        table.row(name, *([f"{tools:,}"] if what == "server" else []), f"{cost:,}", _bar(cost, most))
    table.show()


def _bar(cost: float, most: float) -> str:
    return "█" * max(1, round(_BAR * cost / max(most, 1)))


def _show_comparison(costs: Costs) -> None:
    unit, ours, search = costs.unit, costs.ours, costs.search.tokens
    console.say(f"\nIn every message: {costs.all:,} {unit} with all tools listed, {ours:,} with mcpzip.")
    rows = [("all tools listed", float(costs.all)), ("mcpzip", float(ours))]
    rows += [(f"mcpzip, {searches} searches", ours + searches * search) for searches in _CONVERSATIONS]
    table = console.Table("in the context", ">" + unit, "")
    most = max(cost for _, cost in rows)
    for name, cost in rows:
        table.row(name, f"{cost:,.0f}", _bar(cost, most))
    table.show()
    console.say(
        f"A search costs {search:,.0f}: query and reply together, the mean of searches for your tools."
    )
    if costs.break_even == 0:
        console.say("With so few tools mcpzip costs more than it saves in context.")
    else:
        console.say(
            f"A conversation costs less with mcpzip as long as fewer than {costs.break_even:,} searches are "
            "in its context."
        )
    if costs.so_far is not None:
        console.say("\n" + " ".join(costs.so_far_sentences()))
    if costs.kept:
        console.say("\nResults kept out of the context, or read by programs (tokens estimated):")
        table = console.Table("tool", ">results", ">tokens")
        for tool, kept in list(costs.kept.items())[:_KEPT_TOOLS]:
            table.row(tool, f"{kept.results:,}", f"{kept.tokens:,}")
        table.show()
