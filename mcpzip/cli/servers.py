"""`mcpzip servers`: the state of each server."""

import time
from collections.abc import Mapping

import click
from msgspec.structs import asdict, replace

from mcpzip.checks import Finding
from mcpzip.cli import console
from mcpzip.cli.parameters import examples, hint, json_option, server_names
from mcpzip.cli.proxy_session import known_server, list_servers, wait_for_rests, with_proxy
from mcpzip.doctor.pin_checks import held_in_brief
from mcpzip.doctor.text_checks import found_in, in_brief, said_lately
from mcpzip.model.durations import age
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.status import ServerStatus, suspected
from mcpzip.transport.health import FAILING

_STYLES = {
    "connected": "green",
    "idle": "green",
    "failing": "red",
    "needs login": "yellow",
    "disabled": "dim",
    "connecting": "yellow",
}


@click.command(
    epilog=examples(
        ("mcpzip servers", "all of them"),
        ("mcpzip servers slack", "one"),
        ("mcpzip servers --cached", "what is known; starts none"),
    )
)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=server_names)
@json_option
@click.option("--cached", is_flag=True, help="Show what is known, without starting or asking a server.")
@with_proxy
async def servers(proxy: Proxy, names: tuple[str, ...], as_json: bool, cached: bool) -> int:
    """Ask every server, or those named, for its tools and say what is wrong with those that fail.

    Exit code 1 when any server fails or needs a login.
    """
    wanted = {known_server(proxy, name) for name in names} or set(proxy.config.servers)
    if not cached:
        asked = [one.name for one in proxy.status() if one.name in wanted and one.state != "disabled"]
        await list_servers(proxy, asked)
        await wait_for_rests(proxy)
    await proxy.reviews.held()
    lately = said_lately(proxy.config.path)
    found = [
        replace(one, suspect=len(lately.get(one.name, ())))
        for one in proxy.status(earlier=cached)
        if one.name in wanted
    ]
    said = found_in(proxy.catalog, wanted)
    if as_json:
        console.data(
            [one.as_json() | {"said": [asdict(each) for each in said.get(one.name, [])]} for one in found]
        )
    else:
        show(found, proxy.config.path, said, held_in_brief(proxy.config, wanted))
    return 1 if any(one.state in FAILING for one in found) else 0


def show(
    found: list[ServerStatus], config: str, said: Mapping[str, list[Finding]], held: Mapping[str, str]
) -> None:
    """Prints the table for people, and below it, where no line is broken, commands. said: what is odd about
    what a server says; held: what is held back of it, by its name.
    """
    if not found:
        console.say(f'No servers in {config}. Add one under "mcpServers".')
        return
    has_more = any(one.prompts or one.resources for one in found)
    more = (">prompts", ">resources") if has_more else ()
    headings = ("server", "transport", "state", ">tools", *more, "listed", "protocol", "what is wrong")
    optional = ("protocol", "transport", "listed", *(name.removeprefix(">") for name in more))
    table = console.Table(*headings, wide=("what is wrong",), optional=optional)
    for one in found:
        listed = f"{age(time.time() - one.listed_at)} ago" if one.listed_at else "never"
        texts = in_brief(said.get(one.name, []))
        odd = f"what it says: {texts}" if texts else ""
        during = suspected(one.suspect) if one.suspect else ""
        parts = (one.reason, held.get(one.name, ""), odd, during, *one.warnings)
        wrong = "; ".join(part.removesuffix(".") for part in parts if part)
        table.row(
            one.name,
            one.transport,
            console.styled(one.state, _STYLES[one.state]),
            str(one.tools),
            *((str(one.prompts), str(one.resources)) if has_more else ()),
            listed,
            one.protocol or "",
            wrong,
        )
    table.show()
    for one in found:
        if one.name in held:
            console.say(f"What is held back of {one.name}: {hint('review', one.name)}")
        if one.suspect:
            console.say(f"What {one.name} said: {hint('logs', one.name)}")
    if any(in_brief(said.get(one.name, [])) for one in found):
        console.say(f"What is odd about what they say: {hint('doctor', '--offline')}")
