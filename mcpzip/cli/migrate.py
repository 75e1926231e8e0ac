"""`mcpzip migrate`: the MCP servers of Claude Code, Cursor and others, moved to mcpzip and back."""

import difflib
import os
import shutil
import sys
from collections.abc import Sequence

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import client_names, examples, hint, json_option
from mcpzip.clients.known import Client, known_clients
from mcpzip.clients.migration import Change, Plan, Stay
from mcpzip.clients.plan import plan
from mcpzip.clients.record import Outcome, plan_undo, rewritten, undo
from mcpzip.clients.record import migrate as make
from mcpzip.config.paths import CONFIG_VARIABLE, DEFAULT, PROJECT_FILE, config_path
from mcpzip.model.redaction import redact
from mcpzip.system.terminal import is_interactive

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@click.command(
    epilog=examples(
        ("mcpzip migrate --dry-run", "what would change, file by file"),
        ("mcpzip migrate --from cursor", "only Cursor's servers"),
        ("mcpzip migrate --project .", "also the servers of the current folder's project"),
        ("mcpzip migrate --undo", "every file as it was"),
    )
)
@click.option(
    "--from",
    "names",
    multiple=True,
    metavar="CLIENT",
    shell_complete=client_names,
    help="Only this client; may be repeated.",
)
@click.option(
    "--claude-config", metavar="FILE", type=click.Path(), help="Claude Code's file, if not ~/.claude.json."
)
@click.option("--config", metavar="FILE", type=click.Path(), help="mcpzip's config: where the servers go.")
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Also move this project's servers, to its .mcpzip.json; may be repeated.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show the change of every file and make none; also with --undo."
)
@click.option("--undo", "back", is_flag=True, help="Take the last migration back.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask; without a terminal it never asks.")
@json_option
def migrate(
    names: tuple[str, ...],
    claude_config: str | None,
    config: str | None,
    projects: tuple[str, ...],
    dry_run: bool,
    back: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Move the MCP servers of your clients into mcpzip's config, and put mcpzip in their place.

    Everything else in a client's file keeps its bytes. Servers of a single project stay where they are
    without --project: its own files, such as .mcp.json, belong to all who work on it. The old files are kept
    in migrations/ beside mcpzip's config; --undo puts them back.
    """
    path = config_path(config, os.environ)
    if back:
        if names or claude_config or projects:
            raise click.UsageError("--undo takes the last migration back as a whole: leave the others out.")
        return _undo(path, dry_run=dry_run, as_json=as_json)
    clients = _chosen(names, claude_config)
    command, arguments = ourselves(config, path)
    folders = _folders(projects)
    found = plan(
        clients, path, os.environ,
        command=command, arguments=arguments, folder=os.getcwd(), projects=folders,
    )  # fmt: skip
    if as_json:
        if not dry_run and found.changes:
            make(found.changes, path)
        console.data(_as_json(found, path, changed=bool(found.changes) and not dry_run))
        return 0
    show_moves(found, path)
    if not found.changes:
        return 0
    if dry_run:
        _show_changes(found.changes)
        console.say("Nothing was changed. Without --dry-run it will be.")
        return 0
    if not yes and is_interactive(sys.stdin.fileno()) and not click.confirm("Change these files?", err=True):
        console.say("Nothing was changed.")
        return 1
    folder = make(found.changes, path)
    console.say(f"The files as they were are in {folder}; {hint('migrate', '--undo')} puts them back.")
    for each in rewritten(found.changes):
        console.warn(f"{each} was rewritten by its program. Quit that program, then again: {hint('migrate')}")
    titles = ", ".join(dict.fromkeys(move.source.client.title for move in found.moves))
    for folder in dict.fromkeys(move.source.project for move in found.moves if move.source.project):
        console.say(f"Look at the project's servers, and allow them: {hint('trust', folder)}")
    console.say(f"Restart {titles}. Then: {hint('servers')}")
    return 0


def _folders(projects: Sequence[str]) -> list[str]:
    """The folders of ``projects``, absolute. Raises click.UsageError for one that can't be a project."""
    home = os.path.realpath(os.path.expanduser("~"))
    folders = list(dict.fromkeys(os.path.abspath(each) for each in projects))
    for folder in folders:
        real = os.path.realpath(folder)
        if real == home or home.startswith(real.rstrip(os.sep) + os.sep):
            raise click.UsageError(
                f"{folder} is no project: your home folder and those above it have no {PROJECT_FILE}."
            )
    return folders


def _chosen(names: Sequence[str], claude_config: str | None) -> list[Client]:
    """The clients that were asked for. Raises click.UsageError for one that isn't known."""
    clients = {client.name: client for client in known_clients(os.environ)}
    if claude_config is not None:
        known = clients["claude-code"]
        file = os.path.abspath(claude_config)
        clients["claude-code"] = Client(known.name, known.title, (file,), known.servers, known.dialect)
        names = names or ("claude-code",)
    unknown = [name for name in names if name not in clients]
    if unknown:
        near = difflib.get_close_matches(unknown[0], clients, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise click.UsageError(f"There is no client {unknown[0]!r}.{meant} Known: {', '.join(clients)}.")
    return [clients[name] for name in dict.fromkeys(names)] or list(clients.values())


def ourselves(config: str | None, path: str) -> tuple[str, list[str]]:
    """How a client starts mcpzip: by its whole path, because desktop programs lack the shell's PATH."""
    program = os.path.abspath(sys.argv[0])
    if os.path.splitext(os.path.basename(program))[0] != "mcpzip" or not os.access(program, os.X_OK):
        program = shutil.which("mcpzip") or ""
    start = ["serve"] if program else ["-m", "mcpzip", "serve"]
    here = config is not None or path != config_path(None, {**os.environ, CONFIG_VARIABLE: DEFAULT})
    return program or sys.executable, [*start, "--config", path] if here else start


def show_moves(found: Plan, path: str) -> None:
    """What is moved, and what stays and why."""
    if found.moves:
        table = console.Table("SERVER", "FROM", "TO", wide=("TO",), bold="SERVER")
        for move in found.moves:
            where = move.as_name if move.new else f"{move.as_name}, which is there already"
            if move.source.project:
                where += f" in {os.path.join(os.path.basename(move.source.project), PROJECT_FILE)}"
            if move.left_out:
                where += f" (without {', '.join(move.left_out)})"
            table.row(move.name, move.source.client.title, where)
        table.show()
    for stay in found.stays:
        console.say(_stays(stay))
    if not found.changes:
        console.say(
            "There is nothing to move."
            if not found.stays
            else f"There is nothing else to move. To add a server: {hint('add', 'NAME', '--', 'COMMAND')}"
        )


def _stays(stay: Stay) -> str:
    subject = f"{stay.name} of {stay.client} ({stay.path})" if stay.name else f"{stay.client}'s {stay.path}"
    if stay.project:
        move = hint("migrate", "--project", stay.project)
        return f"{subject} stays as it is: {stay.reason}. To move it to {PROJECT_FILE} there: {move}"
    return f"{subject} stays as it is: {stay.reason}."


def _show_changes(changes: Sequence[Change]) -> None:
    for change in changes:
        before = (change.before or b"").decode("utf-8", "replace").splitlines()
        after = change.after.decode("utf-8", "replace").splitlines()
        old = change.path if change.before is not None else "(no such file)"
        for line in difflib.unified_diff(before, after, old, change.path, lineterm="", n=2):
            console.say(redact(line), _STYLES.get(line[:1], ""))


_DONE: dict[Outcome, str] = {
    "restored": "is as it was",
    "merged": "had changed since: its servers are back, the rest is as it is now",
    "removed": "is gone: it was made by the migration",
    "unchanged": "was left as it is",
}
_WOULD_BE: dict[Outcome, str] = {
    "restored": "would be as it was",
    "merged": "has changed since: its servers would come back, the rest would stay as it is now",
    "removed": "would go: it was made by the migration",
    "unchanged": "would be left as it is",
}


def _undo(path: str, *, dry_run: bool, as_json: bool) -> int:
    restorations = plan_undo(path) if dry_run else undo(path)
    if as_json:
        console.data([{"file": each.path, "outcome": each.outcome} for each in restorations])
        return 0
    for each in restorations:
        console.say(f"{each.path} {(_WOULD_BE if dry_run else _DONE)[each.outcome]}.")
    if dry_run:
        console.say("Nothing was changed. Without --dry-run it will be.")
    return 0


def _as_json(found: Plan, path: str, *, changed: bool) -> dict[str, object]:
    return {
        "config": path,
        "changed": changed,
        "moved": [
            {
                "client": move.source.client.name,
                "file": move.source.path,
                "name": move.name,
                "as": move.as_name,
                "project": move.source.project or None,
                "new": move.new,
                "leftOut": list(move.left_out),
            }
            for move in found.moves
        ],
        "stays": [
            {
                "client": stay.client,
                "file": stay.path,
                "name": stay.name,
                "reason": stay.reason,
                "project": stay.project or None,
            }
            for stay in found.stays
        ],
        "files": [change.path for change in found.changes],
    }
