"""`mcpzip trust`: a person allows the servers of a project's file.

The rule: only a person at a terminal can say yes. An agent that runs this command without one, as agents do,
is refused, and there is no option that says yes.
"""

import json
import os
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, hint
from mcpzip.config import config_path, load
from mcpzip.config.paths import PROJECT_FILE, PROJECT_VARIABLE, find_project
from mcpzip.config.project import approvals, approve, digest, read_project, revoke, trust_of
from mcpzip.config.syntax import decode
from mcpzip.config.variables import referred
from mcpzip.model.errors import ConfigError, McpzipError
from mcpzip.model.quoting import shortened
from mcpzip.system.terminal import is_interactive

_SHOWN = 2_000  # characters of a command line or URL
_REMOTE = ("url", "httpUrl", "serverUrl")


@click.command(
    epilog=examples(
        ("mcpzip trust", "the project of the current folder"),
        ("mcpzip trust ~/shop", "another one"),
        ("mcpzip trust --revoke", "no longer"),
        ("mcpzip trust --list", "what is trusted"),
    )
)
@click.argument("path", required=False, metavar="[FOLDER]", type=click.Path())
@click.option("--revoke", "revoked", is_flag=True, help="Trust this project no longer.")
@click.option("--list", "listed", is_flag=True, help="Show the trusted projects.")
@config_option
def trust(path: str | None, revoked: bool, listed: bool, config: str | None) -> int:
    """Look at the servers in a project's .mcpzip.json, and allow them.

    Until then they are not used, and again not after a change of the file: its commands run on your machine,
    and its variables are read from your environment. Only a person at a terminal can answer.
    """
    user = config_path(config, os.environ)
    if listed:
        return _list(user)
    file = _project_file(path)
    if revoked:
        gone = revoke(file, user)
        console.say(f"{file} is trusted no longer." if gone else f"{file} was not trusted.")
        return 0
    try:
        data = read_project(file)
    except OSError as error:
        raise McpzipError(f"{file} can't be read: {error.strerror or error}.") from error
    servers = _servers(data, file)
    if trust_of(file, data, user) == "trusted":
        back = hint("trust", "--revoke", *([path] if path else []))
        console.say(f"{file} is trusted already. To take that back: {back}")
        return 0
    _show(file, servers, _own_servers(user))
    if not is_interactive(sys.stdin.fileno()):
        console.warn("Only a person at a terminal can trust it. Run this command in one.")
        return 1
    if not click.confirm("Do you know these servers, and trust them?", err=True):
        console.say("Nothing was changed: they are not used.")
        return 1
    approve(file, data, user)
    console.say("Trusted, until the file changes. Agents in this folder see the servers within a second.")
    return 0


def _project_file(path: str | None) -> str:
    found = find_project({**os.environ, PROJECT_VARIABLE: ""}) if path is None else os.path.abspath(path)
    if not found:
        raise McpzipError(
            f"There is no {PROJECT_FILE} in this folder or above it. Name the project's folder."
        )
    return os.path.join(found, PROJECT_FILE) if os.path.isdir(found) else found


def _own_servers(user: str) -> Collection[str]:
    try:
        return load(user, os.environ).servers
    except ConfigError:
        return ()


def _servers(data: bytes, file: str) -> dict[str, Mapping[str, object]]:
    """The entries of the servers in ``data``. Raises ConfigError."""
    document = decode(data, file)
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict) or not all(isinstance(entry, dict) for entry in servers.values()):
        raise ConfigError(file, "mcpServers", "found no object of servers", 'write {"mcpServers": {…}}')
    return dict(servers)


def _show(file: str, servers: Mapping[str, Mapping[str, object]], own: Collection[str]) -> None:
    """Shows all that the servers would run, connect to and read, so that a person can judge it. own: the
    names of the servers in the user's config.
    """
    folder = os.path.dirname(file)
    count = f"{len(servers)} {'server' if len(servers) == 1 else 'servers'}"
    console.say(f"{file} adds {count} for agents that are started in {folder}:")
    for name, entry in servers.items():
        console.say(f"\n{shortened(name, _SHOWN)}", "bold")
        if name in own:
            console.say("  replaces your own server of this name")
        for line in _of_server(entry):
            console.say(f"  {line}")
    console.say("")


def _of_server(entry: Mapping[str, object]) -> Iterable[str]:
    command, args = entry.get("command"), entry.get("args")
    if command is not None:
        words = [command, *(args if isinstance(args, list) else [] if args is None else [args])]
        yield f"runs: {_text(shlex.join(map(str, words)))}"
    for key in _REMOTE:
        if entry.get(key) is not None:
            yield f"sends requests to: {_text(entry[key])}"
    if entry.get("headersCommand") is not None:
        yield f"runs for its headers: {_text(entry['headersCommand'])}"
    if variables := sorted(referred(entry)):
        yield f"gets from your environment: {_text(', '.join(variables))}"
    if entry.get("inheritEnv") not in (None, False):
        yield f"inherits from your environment: {_text(entry['inheritEnv'])}"
    others = set(entry) - {"command", "args", "headersCommand", "inheritEnv", *_REMOTE}
    for key in sorted(others):
        yield f"{shortened(key, 60)}: {_text(entry[key])}"


def _text(value: object) -> str:
    """``value`` whole: what is too long to be judged is refused, not cut. Raises McpzipError."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > _SHOWN:
        raise McpzipError(
            f"This file has a value of {len(text):,} characters, which nobody can judge: {text[:60]}…"
        )
    return text


def _list(user: str) -> int:
    found = approvals(user)
    if not found:
        console.say("No project is trusted.")
        return 0
    for file, approval in sorted(found.items()):
        try:
            state = "trusted" if digest(read_project(file)) == approval.sha256 else "changed, so not used"
        except OSError:
            state = "gone"
        console.say(f"{os.path.dirname(file)}: {state}")
    return 0
