"""`mcpzip usage`: which tools search remembers as used, and forgetting them."""

import os
import time

import click

from mcpzip.cli import console
from mcpzip.cli.console import warn
from mcpzip.config import config_path, load
from mcpzip.model.durations import age
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.usage import LeftAlone, Uses, counts, forget, usage_path
from mcpzip.proxy.usage import load as load_uses


@click.command()
@click.argument("names", nargs=-1, metavar="[TOOL]...")
@click.option("--forget", "forgotten", is_flag=True, help="Forget these tools, or all.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("-c", "--config", metavar="FILE", help="The config file.")
def usage(names: tuple[str, ...], forgotten: bool, as_json: bool, config: str | None) -> int:
    """Show the tools that rise in searches because they were called with success.

    A call counts one, and half as much every 14 days. Nothing else of it is kept.
    """
    loaded = load(config_path(config, os.environ), os.environ)
    path = usage_path(loaded.path)
    now = time.time()
    try:
        if forgotten:
            _told(forget(path, names or None, now))
            return 0
        uses, warnings = load_uses(path)
    except LeftAlone as error:
        raise McpzipError(f"{error}.") from error
    except OSError as error:
        raise McpzipError(f"{path} can't be changed: {error.strerror or error}.") from error
    for warning in warnings:
        warn(warning)
    if names:
        uses = {name: uses[name] for name in names if name in uses}
    if as_json:
        rows = [
            {"name": name, "calls": round(count, 4), "last": uses[name].at}
            for name, count in counts(uses, now).items()
        ]
        console.data({"learn": loaded.search.learn, "tools": rows})
        return 0
    _show(uses, now, learns=loaded.search.learn)
    return 0


def _show(uses: Uses, now: float, *, learns: bool) -> None:
    found = counts(uses, now)
    if found:
        sheet = console.Sheet("tool", ">counts", "last")
        for name, count in found.items():
            sheet.row(name, f"{count:.2f}", f"{age(now - uses[name].at)} ago")
        sheet.show()
    else:
        console.say("No use of a tool is remembered.")
    if not learns:
        console.say('Nothing of it counts: the config says "learn": false.')


def _told(gone: tuple[str, ...]) -> None:
    many = f"{len(gone)} tools" if len(gone) != 1 else gone[0]
    console.say(f"Forgotten: {many if gone else 'nothing, none was remembered'}.")
