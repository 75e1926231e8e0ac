"""`mcpzip usage`: shows or forgets which tools were used, and the words that led to them."""

import os
import time

import click

from mcpzip.cli import console
from mcpzip.cli.console import warn
from mcpzip.cli.parameters import config_option, examples, hint, json_option, tool_names
from mcpzip.config import config_path, load
from mcpzip.model.durations import age
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.tool_usage import (
    UnusableUsageFileError,
    UseCounts,
    counts,
    forget,
    learns_words,
    usage_path,
)
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

    A call counts one, and half as much every 14 days. The words are those of searches that led to the tool,
    with how much they count. Nothing else is stored.
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
            {
                "name": name,
                "calls": round(count, 4),
                "last": uses[name].at,
                "words": {word: round(each, 4) for word, each in uses[name].words_now(now).items()},
            }
            for name, count in counts(uses, now).items()
        ]
        console.data({"learn": loaded.search.learn, "tools": rows})
        return 0
    _show(uses, now)
    if not loaded.search.learn:
        console.say('Search ignores it: the config says "learn": false.')
    elif not learns_words(loaded) and any(use.words for use in uses.values()):
        people = loaded.search.learn is True
        why = "several people use this mcpzip" if people else 'the config says "learn": "calls"'
        console.say(f"Search ignores the words: {why}. The next call removes them.")
    return 0


def _show(uses: UseCounts, now: float) -> None:
    found = counts(uses, now)
    if not found:
        console.say("No use of a tool is remembered.")
        return
    words = {name: uses[name].words_now(now) for name in found}
    more = ("words",) if any(words.values()) else ()
    table = console.Table("tool", ">counts", "last", *more, wide=more)
    for name, count in found.items():
        told = ", ".join(f"{word} {each:.2f}" for word, each in words[name].items())
        table.row(name, f"{count:.2f}", f"{age(now - uses[name].at)} ago", *([told] if more else []))
    table.show()
