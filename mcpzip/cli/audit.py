"""`mcpzip audit`: shows and verifies the audit log.

The rule: it works without a config that can be read, if the log is in its usual place.
"""

import os
import time
from collections import deque
from datetime import datetime
from fnmatch import fnmatchcase

import click
import msgspec

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, json_option, server_names
from mcpzip.config import config_path, load
from mcpzip.config.paths import audit_path
from mcpzip.config.schema import DECISIONS
from mcpzip.model.durations import seconds_of
from mcpzip.model.errors import ConfigError, McpzipError
from mcpzip.model.names import join
from mcpzip.policy.audit_files import AuditLine, decoded, problems, texts

SHOWN = 100
"""Calls without --lines."""


@click.command(
    epilog=examples(
        ("mcpzip audit --since 1d", "the calls of a day"),
        ("mcpzip audit --tool 'github__*' --decision ask", "those about which somebody was asked"),
        ("mcpzip audit --verify", "whether any line was changed or removed"),
    )
)
@click.option("--since", metavar="TIME", help="Such as 2h, 1d, or 2026-11-25T03:00.")
@click.option("--server", shell_complete=server_names, help="Only calls of this server.")
@click.option("--tool", metavar="GLOB", help="Only tools with such a name, server__tool or tool.")
@click.option("--decision", type=click.Choice(DECISIONS), help="Only what the policy decided so.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=SHOWN, show_default=True, help="How many at most."
)
@click.option("--verify", is_flag=True, help="Check that nothing was changed, removed or added.")
@click.option("--path", "show_path", is_flag=True, help="Say where the log is, and nothing else.")
@json_option
@config_option
def audit(
    since: str | None,
    server: str | None,
    tool: str | None,
    decision: str | None,
    lines: int,
    verify: bool,
    show_path: bool,
    as_json: bool,
    config: str | None,
) -> int:
    """Show the calls of tools, the newest last. The config's "audit" has them written down.

    Exit code 1 if --verify finds something.
    """
    path = _path(config_path(config, os.environ))
    if show_path:
        console.say(path)
        return 0
    try:
        if verify:
            return _verify(path, as_json)
        begin = 0.0 if since is None else _time(since, time.time())
        found = deque(_lines(path, begin, server, tool, decision), maxlen=lines)
    except OSError as error:
        raise McpzipError(f"{path} can't be read: {error.strerror or error}.") from error
    if as_json:
        for line in found:
            console.data_line(msgspec.to_builtins(line))
        return 0
    if not found:
        console.say(f'There are no such calls in {path}. "audit": true in the config has calls written down.')
        return 0
    table = console.Table("time", "client", "tool", "decision", "outcome", ">ms", wide=("tool", "outcome"))
    for line in found:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(line.at))
        client = f"{line.client.get('name', '')} {line.client.get('pid', '')}".strip()
        if line.principal:
            client = f"{line.principal.get('name', '')}, {client}".rstrip(", ")
        decided = f"{line.decision} ({line.approved_by})" if line.approved_by else line.decision
        table.row(moment, client, join(line.server, line.tool), decided, line.outcome, f"{line.ms:.0f}")
    table.show()
    return 0


def _path(config: str) -> str:
    """The file of the log that the config has, or the usual one."""
    try:
        found = load(config, os.environ).audit
    except ConfigError:
        found = None
    return (found.path if found else "") or audit_path(config)


def _verify(path: str, as_json: bool) -> int:
    count = sum(1 for _ in texts(path))
    found = list(problems(path))
    if as_json:
        console.data({"path": path, "lines": count, "problems": found})
    elif not found:
        console.say(f"{path}: {count:,} calls, and nothing was changed.")
    for sentence in found if not as_json else ():
        console.warn(sentence)
    return 1 if found else 0


def _lines(
    path: str, begin: float, server: str | None, tool: str | None, decision: str | None
) -> "Iterator[AuditLine]":
    for _, _, text in texts(path):
        line = decoded(text)
        if line is None or line.at < begin or server not in (None, line.server):
            continue
        if decision not in (None, line.decision):
            continue
        if tool is None or fnmatchcase(line.tool, tool) or fnmatchcase(join(line.server, line.tool), tool):
            yield line


def _time(text: str, now: float) -> float:
    """The Unix time that ``text`` means: so long ago, or a date and a time. Raises McpzipError."""
    try:
        return now - seconds_of(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise McpzipError(f"{text!r} is no time: write for example 2h, 1d or 2026-11-25T03:00.") from None


TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Iterator
