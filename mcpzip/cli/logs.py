"""`mcpzip logs`: shows the log of every `mcpzip serve` with this config.

The rule: it works without a config that can be read, because that may be what the log is needed for.
"""

import os
import time
from collections import deque
from difflib import get_close_matches

import click
from msgspec.structs import asdict

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, server_names
from mcpzip.config.paths import config_path, logs_folder
from mcpzip.model import sanitize
from mcpzip.model.errors import McpzipError
from mcpzip.system.event_log import LEVELS
from mcpzip.system.log_files import LogEntry, LogReader

SHOWN = 100
"""Lines without --lines."""
INTERVAL = 0.25
"""Seconds between two looks for new lines."""

_STYLES = {"debug": "dim", "info": "", "warning": "yellow", "error": "red"}


@click.command(
    epilog=examples(
        ("mcpzip logs", "the last 100 lines, of all servers"),
        ("mcpzip logs slack -f", "one server, and what it writes from now on"),
        ("mcpzip logs --level warning", "only what went wrong"),
    )
)
@click.argument("server", required=False, shell_complete=server_names)
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=SHOWN, show_default=True, help="How many at most."
)
@click.option("--level", type=click.Choice(LEVELS), default="debug", help="Only this level and those above.")
@click.option("--json", "as_json", is_flag=True, help="For programs: a JSON object a line.")
@click.option("--path", "show_path", is_flag=True, help="Say where the log lies, and nothing else.")
@config_option
def logs(
    server: str | None,
    follow: bool,
    lines: int,
    level: str,
    as_json: bool,
    show_path: bool,
    config: str | None,
) -> int:
    """Show what servers wrote to stderr, and what mcpzip did about them: of SERVER, or of all.

    The log lies in the folder "logs" beside the config. Every mcpzip serve writes it: how much, the config's
    "log" says, or $MCPZIP_LOG: debug, info, warning, error or off.
    """
    path = config_path(config, os.environ)
    if show_path:
        console.say(logs_folder(path))
        return 0
    reader = LogReader(logs_folder(path), os.path.basename(path))
    entries = reader.read()
    if server is not None and not follow:
        _check_known(server, entries, path)
    levels = LEVELS[LEVELS.index(level) :]

    def wanted(entry: LogEntry) -> bool:
        return entry.level in levels and server in (None, entry.server)

    for entry in deque(filter(wanted, entries), maxlen=lines):
        _show(entry, as_json)
    if not entries and not as_json:
        console.note(f"The log is empty: {logs_folder(path)}. mcpzip serve writes it while a client runs it.")
    try:
        while follow:
            time.sleep(INTERVAL)
            for entry in filter(wanted, reader.read()):
                _show(entry, as_json)
    except KeyboardInterrupt:
        pass
    return 0


def _check_known(server: str, entries: list[LogEntry], path: str) -> None:
    """Raises McpzipError if the log has other servers, but not ``server``."""
    known = sorted({entry.server for entry in entries if entry.server})
    if not known or server in known:
        return
    near = get_close_matches(server, known, n=3, cutoff=0.5)
    hint = f"The nearest: {', '.join(near)}." if near else f"It has: {', '.join(known)}."
    raise McpzipError(f"The log in {logs_folder(path)} has nothing of {server!r}. {hint}")


def _show(entry: LogEntry, as_json: bool) -> None:
    if as_json:
        console.data_line(asdict(entry))
        return
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
    mark = {"stderr": "| ", "stdout": "stdout| "}.get(entry.event, "")
    text = entry.text.replace("\n", "\n    ")
    who = sanitize.one_line(entry.server) or "mcpzip"
    console.say(f"{moment} [{entry.pid}] {who}: {mark}{text}", _STYLES[entry.level])
