"""`mcpzip usage`: shows or forgets the uses of tools that search ranks by."""

import os
import time

import click

from mcpzip.cli import console
from mcpzip.cli.console import warn
from mcpzip.cli.parameters import config_option, examples, hint, json_option, tool_names
from mcpzip.config import config_path, load
from mcpzip.model.durations import age
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.tool_usage import UnusableUsageFileError, UseCounts, counts, forget, usage_path
from mcpzip.proxy.tool_usage import load as load_uses


@click.command(
    epilog=examples(
        ("mcpzip usage", "every tool that ranks higher"),
        ("mcpzip usage --forget slack__send_message", "forget one"),
        ("mcpzip usage --forget", "forget all"),
    )
)
@click.argument("names", nargs=-1, metavar="[TOOL]...", shell_complete=tool_names)
@click.option("--forget", "forgotten", is_flag=True, help="Forget these tools, or all.")
@json_option
@config_option
def usage(names: tuple[str, ...], forgotten: bool, as_json: bool, config: str | None) -> int:
    """Show the tools that rank higher in searches because they were called successfully.

    A call counts one, and half as much every 14 days. Nothing else about it is stored.
    """
    loaded = load(config_path(config, os.environ), os.environ)
    path = usage_path(loaded.path)
    now = time.time()
    try:
        if forgotten:
            forgot = forget(path, names or None, now)
            count = forgot[0] if len(forgot) == 1 else f"{len(forgot)} tools"
            console.say(f"Forgotten: {count if forgot else 'nothing, none was remembered'}.")
            return 0
        uses, warnings = load_uses(path)
    except UnusableUsageFileError as error:
        raise McpzipError(f"{error}.") from error
    except OSError as error:
        raise McpzipError(f"{path} can't be changed: {error.strerror or error}.") from error
    for warning in warnings:
        warn(warning)
    if names:
        if unknown := [name for name in names if name not in uses]:
            warn(f"No use of {', '.join(unknown)} is remembered; {hint('usage')} lists all.")
        uses = {name: uses[name] for name in names if name in uses}
        if not uses and not as_json:
            return 1
    if as_json:
        rows = [
            {"name": name, "calls": round(count, 4), "last": uses[name].at}
            for name, count in counts(uses, now).items()
        ]
        console.data({"learn": loaded.search.learn, "tools": rows})
        return 0
    _show(uses, now, learns=loaded.search.learn)
    return 0


def _show(uses: UseCounts, now: float, *, learns: bool) -> None:
    found = counts(uses, now)
    if found:
        table = console.Table("tool", ">counts", "last")
        for name, count in found.items():
            table.row(name, f"{count:.2f}", f"{age(now - uses[name].at)} ago")
        table.show()
    else:
        console.say("No use of a tool is remembered.")
    if not learns:
        console.say('Search ignores it: the config says "learn": false.')
