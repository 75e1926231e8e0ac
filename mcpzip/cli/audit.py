"""`mcpzip audit`: shows and verifies the audit log.

The rule: it works without a config that can be read, if the log is in its usual place.
"""

import os
import time
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice

import click
import msgspec

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, json_option, server_names
from mcpzip.config import config_path, load
from mcpzip.config.paths import audit_path
from mcpzip.config.schema import AUDIT_STDOUT, DECISIONS, AuditConfig
from mcpzip.model.durations import seconds_of
from mcpzip.model.errors import ConfigError, McpzipError
from mcpzip.model.names import join
from mcpzip.policy.audit_destinations import INSTALL
from mcpzip.policy.audit_files import AuditLine, FileReader, problems

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
    log, audited = _log(config_path(config, os.environ))
    if show_path:
        console.say(log.place)
        return 0
    try:
        if verify:
            return _verify(log, as_json)
        begin = 0.0 if since is None else _time(since, time.time())
        wanted = (line for line in log.newest(begin) if _is_wanted(line, begin, server, tool, decision))
        found = list(islice(wanted, lines))[::-1]
    except OSError as error:
        raise McpzipError(f"{log.place} can't be read: {error.strerror or error}.") from error
    if as_json:
        for line in found:
            console.data_line(msgspec.to_builtins(line))
        return 0
    if not found:
        remedy = (
            "Those over HTTP are in the standard output of the process that serves them."
            if audited is not None and audited.to == AUDIT_STDOUT
            else '"audit": true in the config has calls written down.'
        )
        console.say(f"There are no such calls in {log.place}. {remedy}")
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


def _log(config: str) -> "tuple[FileReader | PostgresReader, AuditConfig | None]":
    """The log that the config has, or the usual one; and what the config says of it."""
    try:
        found = load(config, os.environ).audit
    except ConfigError:
        found = None
    if found is not None and "://" in found.to:
        try:
            from mcpzip.policy.audit_postgres import PostgresReader
        except ImportError:
            raise McpzipError(f"{INSTALL}.") from None
        return PostgresReader(found.to), found
    return FileReader((found.path if found else "") or audit_path(config)), found


def _verify(log: "FileReader | PostgresReader", as_json: bool) -> int:
    count = 0

    def lines() -> "Iterator[tuple[str, bytes]]":
        nonlocal count
        for each in log.texts():
            count += 1
            yield each

    found = list(problems(lines(), log.head))
    if as_json:
        console.data({"path": log.place, "lines": count, "problems": found})
    elif not found:
        console.say(f"{log.place}: {count:,} calls, and nothing was changed.")
    for sentence in found if not as_json else ():
        console.warn(sentence)
    return 1 if found else 0


def _is_wanted(
    line: AuditLine, begin: float, server: str | None, tool: str | None, decision: str | None
) -> bool:
    if line.at < begin or server not in (None, line.server) or decision not in (None, line.decision):
        return False
    return tool is None or fnmatchcase(line.tool, tool) or fnmatchcase(join(line.server, line.tool), tool)


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

    from mcpzip.policy.audit_postgres import PostgresReader
