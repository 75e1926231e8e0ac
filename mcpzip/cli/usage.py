"""`mcpzip usage`: which tools search remembers as used, and forgetting them."""

import json
import os
import time

import click
from rich.markup import escape
from rich.table import Table

from mcpzip.cli.opening import out, warn
from mcpzip.config import config_path, load
from mcpzip.model.ages import age
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
        print(json.dumps({"learn": loaded.search.learn, "tools": rows}, ensure_ascii=False, indent=2))
        return 0
    _show(uses, now, learns=loaded.search.learn)
    return 0


def _show(uses: Uses, now: float, *, learns: bool) -> None:
    found = counts(uses, now)
    if found:
        table = Table(box=None, pad_edge=False)
        table.add_column("tool", overflow="fold")
        table.add_column("counts", justify="right")
        table.add_column("last")
        for name, count in found.items():
            table.add_row(escape(name), f"{count:.2f}", f"{age(now - uses[name].at)} ago")
        out.print(table)
    else:
        out.print("No use of a tool is remembered.")
    if not learns:
        out.print('Nothing of it counts: the config says "learn": false.', highlight=False)


def _told(gone: tuple[str, ...]) -> None:
    many = f"{len(gone)} tools" if len(gone) != 1 else gone[0]
    out.print(
        f"Forgotten: {many if gone else 'nothing, none was remembered'}.", markup=False, highlight=False
    )
