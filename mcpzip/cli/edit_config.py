"""`mcpzip add`, `remove`, `rename`, `enable`, `disable`, `edit`: the servers in mcpzip's config."""

import asyncio
import os
import sys
import time
from typing import Any

import click

from mcpzip.catalog import Failed, Listed
from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, hint, server_names
from mcpzip.clients.config_file import ConfigFile, entry_of, entry_of_json
from mcpzip.clients.migration import Change
from mcpzip.config import config_path, history, load, parse
from mcpzip.config.saving import present, save
from mcpzip.doctor.pin_checks import held_in_brief
from mcpzip.model import limits
from mcpzip.model.errors import NEEDS_LOGIN
from mcpzip.proxy.trial import listed_by
from mcpzip.system.files import write_atomic

_USED = "A running mcpzip uses it within a second."
_names = click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=server_names)


_force = click.option("--force", is_flag=True, help="Replace a server of this name.")
_no_check = click.option("--no-check", is_flag=True, help="Don't try the server before it is added.")


class _Add(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = "If it belongs to the server's command, write -- before the command."
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from error


@click.command(
    cls=_Add,
    epilog=examples(
        "mcpzip add time -- uvx mcp-server-time",
        "mcpzip add files -e LEVEL=info -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
        "mcpzip add tracker https://tracker.example/mcp -H 'Authorization: Bearer ${TRACKER_TOKEN}'",
    ),
)
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="COMMAND [ARGS]... | URL")
@click.option("-t", "--transport", type=click.Choice(["stdio", "http", "sse"]), help="How it is reached.")
@click.option("-e", "--env", multiple=True, metavar="KEY=value", help="A variable of its environment.")
@click.option("-H", "--header", multiple=True, metavar="'Name: value'", help="A header of each request.")
@click.option("--cwd", metavar="FOLDER", type=click.Path(), help="The folder it runs in.")
@_force
@_no_check
@config_option
def add(
    name: str, words: tuple[str, ...], transport: str | None, env: tuple[str, ...], header: tuple[str, ...],
    cwd: str | None, force: bool, no_check: bool, config: str | None,
) -> int:  # fmt: skip
    """Add a server to the config, once it has answered."""
    try:
        entry = entry_of(list(words), transport, env, header, cwd)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return _add(name, entry, config, force=force, check=not no_check)


@click.command(
    epilog=examples(
        'mcpzip add-json time \'{"command": "uvx", "args": ["mcp-server-time"]}\'',
        ("mcpzip add-json time - < entry.json", "from a file"),
    )
)
@click.argument("name")
@click.argument("entry", metavar="JSON")
@_force
@_no_check
@config_option
def add_json(name: str, entry: str, force: bool, no_check: bool, config: str | None) -> int:
    """Add a server whose entry you have as JSON; - reads it from stdin."""
    text = sys.stdin.read(limits.CONFIG) if entry == "-" else entry
    try:
        found = entry_of_json(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return _add(name, found, config, force=force, check=not no_check)


def _add(name: str, entry: dict[str, Any], config: str | None, *, force: bool, check: bool) -> int:
    file = _open(config)
    change = file.add(name, entry, replace=force)
    found = asyncio.run(listed_after(change, name)) if check and entry.get("disabled") is not True else None
    if isinstance(found, Failed) and not found.reason.startswith(NEEDS_LOGIN):
        console.warn(f"{name} was not added, because it does not answer: {found.reason.rstrip('.')}.")
        console.warn("To add it all the same, repeat this with --no-check.")
        return 1
    save_change(change)
    if isinstance(found, Listed):
        count = len(found.record.entries)
        tools = f"{count} {'tool' if count == 1 else 'tools'}"
        console.say(f"Added {name} with {tools} to {file.path}. {_USED}")
        if held := held_in_brief(parse(change.after, change.path, os.environ), [name]).get(name):
            console.say(f"More is {held}. To look at it: {hint('review', name)}")
    else:
        console.say(f"Added {name} to {file.path}. {_USED}")
    if isinstance(found, Failed):
        console.say(f"It needs a login: {hint('auth', 'login', name)}")
    return 0


async def listed_after(change: Change, name: str) -> Listed | Failed:
    """The tools of ``name`` in the config as ``change`` leaves it."""
    config = parse(change.after, change.path, os.environ)
    with console.spinner(f"asking {name} for its tools", aside=True):
        return await listed_by(config, name, console.warn)


@click.command(
    epilog=examples(
        "mcpzip remove time files",
    )
)
@_names
@config_option
def remove(names: tuple[str, ...], config: str | None) -> int:
    """Remove servers from the config."""
    file = _open(config)
    save_change(file.remove(names))
    console.say(f"Removed {', '.join(names)} from {file.path}.")
    return 0


@click.command(
    epilog=examples(
        "mcpzip rename tracker issues",
    )
)
@click.argument("name", shell_complete=server_names)
@click.argument("new")
@config_option
def rename(name: str, new: str, config: str | None) -> int:
    """Rename a server. Its tools get the new name in front of theirs; a login stays valid."""
    file = _open(config)
    save_change(file.rename(name, new))
    console.say(f"Renamed {name} to {new} in {file.path}. {_USED}")
    return 0


@click.command(
    epilog=examples(
        "mcpzip enable files",
    )
)
@_names
@config_option
def enable(names: tuple[str, ...], config: str | None) -> int:
    """Switch servers on."""
    return _enable(names, config, enabled=True)


@click.command(
    epilog=examples(
        "mcpzip disable files",
    )
)
@_names
@config_option
def disable(names: tuple[str, ...], config: str | None) -> int:
    """Switch servers off. They stay in the config."""
    return _enable(names, config, enabled=False)


def _enable(names: tuple[str, ...], config: str | None, *, enabled: bool) -> int:
    file = _open(config)
    save_change(file.enable(names, enabled=enabled))
    console.say(f"Switched {', '.join(names)} {'on' if enabled else 'off'} in {file.path}. {_USED}")
    return 0


@click.command(
    epilog=examples(
        "mcpzip edit",
        ("VISUAL='code --wait' mcpzip edit", "in VS Code"),
    )
)
@config_option
def edit(config: str | None) -> int:
    """Open the config in your editor ($VISUAL, $EDITOR), and check it when you are done."""
    path = config_path(config, os.environ)
    if not os.path.exists(path):
        write_atomic(path, b'{\n  "mcpServers": {}\n}\n', 0o600)
    before = present(path)
    click.edit(filename=path)
    if before is not None and present(path) != before:
        _keep(path, before)
    loaded = load(path, os.environ)
    for warning in loaded.warnings:
        console.warn(warning)
    problems = {name: server.problem for name, server in loaded.servers.items() if server.problem}
    for name, problem in problems.items():
        console.warn(f"{name} can't be used: {problem}")
    count = len(loaded.servers)
    servers = f"{count} {'server' if count == 1 else 'servers'}"
    unusable = f", {len(problems)} of them unusable" if problems else ""
    console.say(f"{path} is valid: {servers}{unusable}. {_USED}")
    return 0


def _open(config: str | None) -> ConfigFile:
    return ConfigFile(config_path(config, os.environ), os.environ)


def _keep(path: str, before: bytes) -> None:
    try:
        history.keep(path, before, time.time())
    except OSError as error:
        console.warn(f"The version before was not kept: {error.strerror or error}.")


def save_change(change: Change) -> None:
    """Saves an edited config, and keeps the version before. Raises ConfigSaveError."""
    for problem in save(change.path, change.before, change.after, mode=0o600):
        console.warn(problem)
