"""`mcpzip describe`: the definition of one tool."""

import time

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import examples, tool_names
from mcpzip.cli.proxy_session import find_tool, with_proxy
from mcpzip.model import sanitize
from mcpzip.model.names import join
from mcpzip.model.signature import parameters
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.describe import freshness
from mcpzip.proxy.proxy import Proxy


@click.command(
    epilog=examples(
        "mcpzip describe slack__send_message",
        ("mcpzip describe slack__send_message --json", "as its server sent it"),
    )
)
@click.argument("name", shell_complete=tool_names)
@click.option("--json", "as_json", is_flag=True, help="The tool's definition exactly as its server sent it.")
@with_proxy
async def describe(proxy: Proxy, name: str, as_json: bool) -> int:
    """Show a tool's description and schema. NAME is server__tool."""
    entry = await find_tool(proxy, name)
    if as_json:
        console.raw(entry.raw)
        return 0
    if entry in ADMIN_TOOLS:
        console.say(entry.tool, "bold")
        console.say(f"{entry.description}. It takes no arguments.")
        return 0
    definition = entry.definition()
    console.say(sanitize.one_line(join(entry.server, entry.tool)), "bold")
    for text in (entry.title, entry.description):
        if text:
            console.say(text)
    console.say(parameters(entry.input_schema()))
    for key in ("inputSchema", "outputSchema", "annotations"):
        if key in definition:
            console.say(f"\n{key}", "bold")
            console.pretty_json(definition[key])
    about = proxy.tool_caller.note(entry), freshness(proxy.catalog.servers[entry.server], time.time())
    console.say("\n" + "\n".join(filter(None, about)))
    return 0
