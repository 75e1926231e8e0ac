"""`mcpzip describe`: everything an upstream says of one tool."""

import json
import time

import click
from rich.highlighter import JSONHighlighter

from mcpzip.cli.opening import found, out, with_proxy
from mcpzip.model.names import join
from mcpzip.model.signature import parameters
from mcpzip.proxy.describe import freshness
from mcpzip.proxy.proxy import Proxy

_AS_JSON = JSONHighlighter()


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="The tool's definition exactly as its server sent it.")
@with_proxy
async def describe(proxy: Proxy, name: str, as_json: bool) -> int:
    """Show a tool's description and schema. NAME is server__tool."""
    entry = await found(proxy, name)
    if as_json:
        click.echo(entry.raw)
        return 0
    definition = entry.definition()
    out.print(join(entry.server, entry.tool), style="bold", markup=False, highlight=False, soft_wrap=True)
    for text in (entry.title, entry.description):
        if text:
            out.print(text, markup=False, highlight=False, soft_wrap=True)
    out.print(parameters(entry.input_schema()), markup=False, highlight=False, soft_wrap=True)
    for key in ("inputSchema", "outputSchema", "annotations"):
        if key in definition:
            out.print(f"\n{key}", style="bold")
            text = json.dumps(definition[key], indent=2, ensure_ascii=False)
            out.print(_AS_JSON(text), soft_wrap=True)
    out.print(
        "\n" + freshness(proxy.catalog.servers[entry.server], time.time()), markup=False, highlight=False
    )
    return 0
