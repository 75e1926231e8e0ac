"""`mcpzip calls`: the last calls of tools that the daemon remembers."""

import os
import time
from collections.abc import Callable
from fnmatch import fnmatchcase

import click
import msgspec

from mcpzip.cli import console
from mcpzip.cli.daemon import NONE_RUNS
from mcpzip.cli.parameters import config_option, examples, hint, json_option, server_names
from mcpzip.config import config_path
from mcpzip.config.paths import find_project
from mcpzip.model.durations import span
from mcpzip.server.daemon.call_phases import remarks, seconds_of
from mcpzip.server.daemon.call_report import CallReport
from mcpzip.server.daemon.recorded_calls import RecordedCalls
from mcpzip.server.run_file import running

SHOWN = 20
"""Calls without --limit."""
INTERVAL = 2.0
"""Seconds between two looks with ``--watch``."""


@click.command(
    epilog=examples(
        ("mcpzip calls", "the last calls of all agents"),
        ("mcpzip calls --failed --server github", "those of one server that brought no result"),
        ("mcpzip calls --watch", "again every two seconds, until Ctrl-C"),
    )
)
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="How many at most."
)
@click.option("--server", shell_complete=server_names, help="Only calls of this server.")
@click.option("--tool", metavar="GLOB", help="Only tools with such a name, server__tool or tool.")
@click.option("--client", metavar="GLOB", help="Only calls of agents with such a name.")
@click.option("--failed", is_flag=True, help="Only calls that ended without a result.")
@click.option("--watch", is_flag=True, help="Show it again every two seconds, until Ctrl-C.")
@json_option
@config_option
def calls(
    limit: int,
    server: str | None,
    tool: str | None,
    client: str | None,
    failed: bool,
    watch: bool,
    as_json: bool,
    config: str | None,
) -> int:
    """Show the last calls of tools, the newest last: who called, how it ended, and where the time went.

    The daemon remembers the last thousand, in memory and without arguments and results. For a log that lasts
    there is mcpzip audit.
    """
    path = config_path(config, os.environ)
    recorded = RecordedCalls(path, find_project(os.environ))
    wanted = _filter(server, tool, client, failed=failed)
    try:
        while True:
            found = recorded.look()
            if watch and not as_json:
                console.clear()
            if found is None and not as_json:
                console.say(NONE_RUNS)
            else:
                _show([call for call in found or () if wanted(call)][-limit:], as_json)
            if not as_json:
                _tell_of_others(path)
            if not watch:
                return 0
            time.sleep(INTERVAL)
    except KeyboardInterrupt:
        return 0


def _tell_of_others(path: str) -> None:
    """Says that other processes remember calls too, if there are any."""
    if others := sum(not run.daemon for run in running(path)):
        are = "1 process serves" if others == 1 else f"{others} processes serve"
        console.note(f"{are} agents without the daemon, and calls of those are not shown: {hint('ps')}")


def _filter(
    server: str | None, tool: str | None, client: str | None, *, failed: bool
) -> Callable[[CallReport], bool]:
    def wanted(call: CallReport) -> bool:
        return (
            server in (None, call.server)
            and (tool is None or fnmatchcase(call.tool, tool) or fnmatchcase(call.name, tool))
            and (client is None or fnmatchcase(call.client, client))
            and (call.failed or not failed)
        )

    return wanted


def _show(found: list[CallReport], as_json: bool) -> None:
    if as_json:
        for call in found:
            console.data_line(msgspec.to_builtins(call))
        return
    if not found:
        console.say("The daemon remembers no such calls.")
        return
    now = time.time()
    headings = ("call", "time", "client", "tool", "outcome", ">took", ">tokens", "besides")
    table = console.Table(*headings, wide=("tool", "besides"), optional=("tokens",))
    for call in found:
        table.row(
            str(call.number),
            time.strftime("%H:%M:%S", time.localtime(call.at)),
            f"{call.client} {call.version}".rstrip(),
            call.name,
            _outcome(call),
            span(seconds_of(call, now)),
            f"{call.tokens:,}" if call.tokens else "",
            "; ".join(filter(None, (*remarks(call, now), call.error))),
        )
    table.show()


def _outcome(call: CallReport) -> console.Cell:
    if call.seconds is None:
        return console.styled("under way", "yellow")
    return console.styled(f"{call.outcome}{_decided(call)}", "red" if call.failed else "")


def _decided(call: CallReport) -> str:
    if call.decision in ("", "allow"):
        return ""
    return f" ({call.decision}: {call.approved_by})" if call.approved_by else f" ({call.decision})"
