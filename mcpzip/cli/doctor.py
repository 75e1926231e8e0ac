"""`mcpzip doctor`: what is wrong, the evidence, and the command that fixes it."""

import asyncio
import json
import os
import platform
import re
import sys
import time
from collections.abc import Mapping

import click

from mcpzip import __version__
from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, hint, json_option, server_names
from mcpzip.config import config_path
from mcpzip.config.paths import find_project, logs_folder
from mcpzip.config.secrets import masked_entry
from mcpzip.config.store_opening import place_of
from mcpzip.doctor.examination import examine
from mcpzip.doctor.finding import GROUPS, Finding
from mcpzip.doctor.server_checks import Tried, try_servers
from mcpzip.doctor.setup import Setup, read_setup
from mcpzip.model.errors import McpzipError
from mcpzip.model.redaction import redact, redact_json
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.files import write_atomic
from mcpzip.system.log_files import LogReader

_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}
_LOG_LINES = 500
_SHOWN_KEYS = ("idle_timeout_minutes", "call_timeout_seconds", "expose", "auth", "inheritEnv", "log")


@click.command(
    epilog=examples(
        ("mcpzip doctor", "everything; starts every server once"),
        ("mcpzip doctor slack", "only this server's connection"),
        ("mcpzip doctor --offline", "starts none"),
        ("mcpzip doctor --fix", "also fixes what is safe to fix"),
        ("mcpzip doctor --bundle bug.json", "a file to attach to a bug report"),
    )
)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=server_names)
@click.option("--offline", is_flag=True, help="Start and ask no server.")
@click.option("--fix", is_flag=True, help="Fix what can be fixed without losing anything.")
@click.option(
    "--bundle", metavar="FILE", type=click.Path(), help="Write a file for a bug report, without secrets."
)
@json_option
@config_option
def doctor(
    names: tuple[str, ...], offline: bool, fix: bool, bundle: str | None, as_json: bool, config: str | None
) -> int:
    """Find what is wrong with the config, the servers and this machine, and say what fixes it.

    What a server or mcpzip said earlier: mcpzip logs. Exit code 1 if something doesn't work.
    """
    if bundle is not None and os.path.exists(bundle):
        raise McpzipError(f"There is a file {bundle} already. Name another, or delete it.")
    findings, setup = asyncio.run(_examine(config, names, offline=offline))
    fixed = _fix(findings) if fix else []
    if fixed:
        findings, setup = asyncio.run(_examine(config, names, offline=offline))
    if bundle is not None:
        _write_bundle(bundle, setup, findings)
    if as_json:
        console.data({"fixed": fixed, "findings": [finding.as_json() for finding in findings]})
    else:
        for sentence in fixed:
            console.say(sentence, "green")
        _show(findings, setup, offline=offline)
        if bundle is not None:
            console.say(
                f"{bundle} has all of this, and the log, without secrets. Read it before you send it."
            )
    return 1 if any(finding.level == "error" for finding in findings) else 0


async def _examine(
    config: str | None, names: tuple[str, ...], *, offline: bool
) -> tuple[list[Finding], Setup]:
    setup = read_setup(config_path(config, os.environ), os.environ, find_project(os.environ))
    if setup.config is None:
        return examine(setup, None, {}), setup
    if unknown := [name for name in names if name not in setup.config.servers]:
        raise McpzipError(f"There is no server {unknown[0]!r} in {setup.path}.")
    proxy = Proxy(setup.config, setup.catalog)
    tried: dict[str, Tried] = {}
    try:
        if not offline:
            wanted = [name for name in setup.servers if not names or name in names]
            with console.spinner(f"asking {len(wanted)} servers for their tools", aside=True):
                tried = await try_servers(proxy, wanted)
        return examine(setup, proxy, tried), setup
    finally:
        await proxy.close()


def _fix(findings: list[Finding]) -> list[str]:
    """Fixes what is safe to fix. Returns what was done, as sentences."""
    done: list[str] = []
    for finding in findings:
        if finding.fix is not None:
            try:
                done.append(redact(finding.fix()))
            except OSError as error:
                console.warn(f"{finding.subject}: {error.strerror or error}.")
    return done


def _show(findings: list[Finding], setup: Setup, *, offline: bool) -> None:
    for key, title in GROUPS.items():
        found = [finding for finding in findings if finding.group == key]
        serious = [finding for finding in found if finding.level != "note"]
        if key == "servers" and offline and not found:
            console.say(f"{title}: not asked")
            continue
        console.say(f"{title}: {_count(serious) if serious else 'fine'}", "bold" if serious else "")
        for finding in found:
            _show_finding(finding)
    errors = [finding for finding in findings if finding.level == "error"]
    servers = len(setup.servers)
    whole = f"{servers} {'server' if servers == 1 else 'servers'} in {setup.path}"
    console.say("")
    console.say(
        f"{whole}: {_count(findings) if findings else 'nothing is wrong'}.", "red" if errors else "green"
    )
    if any(finding.fix for finding in findings):
        console.say(f"{hint('doctor', '--fix')} fixes what is marked with *.")
    if setup.config is not None and setup.config.store is not None:
        console.say(f"Sign-ins, pins and allowed calls are in {place_of(setup.config.store)}.")
    if findings:
        console.say(f"The log is in {logs_folder(setup.path)}: {hint('logs')}")


def _show_finding(finding: Finding) -> None:
    fixable = " *" if finding.fix is not None else ""
    named = re.search(rf"(?<![\w.-]){re.escape(finding.subject)}(?![\w-]|\.\w)", finding.problem)
    subject = f"{finding.subject}: " if finding.subject and not named else ""
    console.wrapped(f"{finding.level}{fixable}: {subject}{finding.problem}", _STYLES[finding.level])
    for line in finding.evidence:
        console.wrapped(f"| {line}", indent=4)
    if finding.remedy:
        console.wrapped(finding.remedy, indent=4)
    if finding.command:
        console.say(f"    $ {redact(finding.command)}")


def _count(findings: list[Finding]) -> str:
    counts = {level: sum(finding.level == level for finding in findings) for level in _STYLES}
    return ", ".join(
        f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items() if count
    )


def _masked_config(document: Mapping[str, object]) -> dict[str, object]:
    """The config without any text that may be a secret: an entry with a mistake in it isn't redacted."""
    servers = document.get("mcpServers")
    entries = servers if isinstance(servers, dict) else {}
    others = {key: value for key, value in document.items() if key in _SHOWN_KEYS}
    return {**others, "mcpServers": {name: masked_entry(entry) for name, entry in entries.items()}}


def _write_bundle(path: str, setup: Setup, findings: list[Finding]) -> None:
    """Writes everything that a bug report needs, redacted. Raises McpzipError."""
    entries = LogReader(logs_folder(setup.path), os.path.basename(setup.path)).read()[-_LOG_LINES:]
    bundle = {
        "mcpzip": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "findings": [finding.as_json() for finding in findings],
        "config": _masked_config(setup.document),
        "tools": {name: len(record.entries) for name, record in setup.catalog.servers.items()},
        "log": [
            f"{entry.at:.3f} [{entry.pid}] {entry.server}: {entry.event}: {entry.text}" for entry in entries
        ],
    }
    try:
        write_atomic(
            path, json.dumps(redact_json(bundle), ensure_ascii=False, indent=2).encode() + b"\n", 0o600
        )
    except OSError as error:
        raise McpzipError(f"{path} can't be written: {error.strerror or error}.") from error
