"""`mcpzip tools`: every tool of every server, or of some."""

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import examples, json_option, server_names
from mcpzip.cli.proxy_session import known_server, list_missing, with_proxy
from mcpzip.model import sanitize
from mcpzip.proxy.proxy import Proxy

_DESCRIPTION = 100
"""Characters of a description that the table shows."""


@click.command(
    epilog=examples(
        "mcpzip tools",
        ("mcpzip tools slack github", "only those of these servers"),
    )
)
@click.argument("servers", nargs=-1, metavar="[SERVER]...", shell_complete=server_names)
@json_option
@with_proxy
async def tools(proxy: Proxy, servers: tuple[str, ...], as_json: bool) -> int:
    """List the tools of all servers, or of those named, by name.

    Exit code 1 when there are none.
    """
    wanted = [known_server(proxy, name) for name in servers]
    for name in wanted or (None,):
        await list_missing(proxy, name)
    entries = [entry for entry in proxy.catalog.entries if not wanted or entry.server in wanted]
    if as_json:
        console.data([{"name": one.name, "description": one.description} for one in entries])
    else:
        table = console.Table("tool", "description", wide=("description",))
        for one in entries:
            table.row(one.name, sanitize.one_line(one.description, _DESCRIPTION))
        table.show()
        count = len({one.server for one in entries})
        console.note(f"{len(entries)} tools of {count} {'server' if count == 1 else 'servers'}.")
    return 0 if entries else 1
