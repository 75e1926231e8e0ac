"""`mcpzip refresh`: list the tools of all servers, or of some, again."""

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import examples, json_option, server_names
from mcpzip.cli.proxy_session import known_server, list_servers, wait_for_rests, with_proxy
from mcpzip.cli.servers import show
from mcpzip.doctor.pin_checks import held_in_brief
from mcpzip.doctor.text_checks import found_in
from mcpzip.proxy.proxy import Proxy


@click.command(
    epilog=examples(
        "mcpzip refresh",
        ("mcpzip refresh slack", "only this server"),
    )
)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=server_names)
@json_option
@with_proxy
async def refresh(proxy: Proxy, names: tuple[str, ...], as_json: bool) -> int:
    """List the tools, prompts and resources of every server, or of the named ones, and save them.

    Exit code 1 when any of them fails.
    """
    wanted = [known_server(proxy, name) for name in names] or [
        one.name for one in proxy.status() if one.state != "disabled"
    ]
    failures = await list_servers(proxy, wanted)
    await wait_for_rests(proxy)
    await proxy.reviews.held()
    found = [one for one in proxy.status() if one.name in wanted]
    if as_json:
        console.data([one.as_json() for one in found])
    else:
        said = found_in(proxy.catalog, [one.name for one in found])
        show(found, proxy.config.path, said, held_in_brief(proxy.config, wanted))
    return 1 if failures else 0
