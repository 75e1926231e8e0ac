"""`mcpzip servers`: the state of each server."""

import time

import click

from mcpzip.cli import console
from mcpzip.cli.proxy_session import list_servers, with_proxy
from mcpzip.model.durations import age
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.status import ServerStatus
from mcpzip.transport.health import FAILING

_STYLES = {
    "connected": "green",
    "idle": "green",
    "failing": "red",
    "needs login": "yellow",
    "disabled": "dim",
    "connecting": "yellow",
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("--cached", is_flag=True, help="Show what is known, without starting or asking a server.")
@with_proxy
async def servers(proxy: Proxy, as_json: bool, cached: bool) -> int:
    """Ask every server for its tools and say what is wrong with those that fail.

    Exit code 1 when any server fails or needs a login.
    """
    if not cached:
        await list_servers(proxy, [one.name for one in proxy.status() if one.state != "disabled"])
    found = proxy.status()
    if as_json:
        console.data([one.as_json() for one in found])
    else:
        show(found, proxy.config.path)
    return 1 if any(one.state in FAILING for one in found) else 0


def show(found: list[ServerStatus], config: str) -> None:
    """Prints the table for people."""
    if not found:
        console.say(f'No servers in {config}. Add one under "mcpServers".')
        return
    headings = ("server", "transport", "state", ">tools", "listed", "protocol", "what is wrong")
    table = console.Table(*headings, wide=("what is wrong",))
    for one in found:
        listed = f"{age(time.time() - one.listed_at)} ago" if one.listed_at else "never"
        wrong = "; ".join(part.removesuffix(".") for part in (one.reason, *one.warnings) if part)
        table.row(
            one.name,
            one.transport,
            console.styled(one.state, _STYLES[one.state]),
            str(one.tools),
            listed,
            one.protocol or "",
            wrong,
        )
    table.show()
