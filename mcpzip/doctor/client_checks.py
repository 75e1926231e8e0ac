"""Checks of the clients' config files, of the installation, and of the processes that run."""

import os
import re
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from mcpzip import __version__
from mcpzip.clients.documents import DocumentError, read
from mcpzip.clients.entries import NotMovable, is_built_in, is_mcpzip, moved
from mcpzip.clients.known import Client, known_clients
from mcpzip.clients.migration import MigrationError, read_file
from mcpzip.config import Config
from mcpzip.config.server import MCPZIP_COMMAND
from mcpzip.doctor.finding import Finding
from mcpzip.doctor.setup import Setup
from mcpzip.doctor.shell import end_processes
from mcpzip.model.quoting import names as named
from mcpzip.model.sanitize import one_line
from mcpzip.server.run_file import running
from mcpzip.system.orphans import OrphanProcess, can_see_environments, find_left

SETTLED = 2.0
"""Seconds after which all processes of a mcpzip that ended are ended too: see `system.reaper`."""
_LONGEST_COMMAND = 90
"""Characters of a command that is shown."""
_EXTRAS = {
    "code": ("pydantic_monty", '"code" is on'),
    "gemini": ("google.genai", "gemini_api_key is set"),
    "semantic": ("onnxruntime", '"search.semantic" is "onnx"'),
    "keyring": ("keyring", '"auth.store" is "keyring"'),
    "redis": ("redis", '"store" is in Redis'),
    "postgres": ("psycopg", '"store" is in PostgreSQL'),
    "jwt": ("jwt", "a server signs in with a private_key"),
    "team": ("cryptography", '"replicas" is set'),
}
"""By the name of an extra: a module that it brings, and why the config needs it."""


def check_clients(setup: Setup) -> Iterator[Finding]:
    """The clients that have a config file here."""
    serving = 0
    movable = False
    for client in known_clients(setup.env):
        for path in client.files:
            try:
                data = read_file(path)
                servers = {} if data is None else read(data, client.format).servers(client.servers)
            except (MigrationError, DocumentError) as error:
                yield Finding(
                    "warning",
                    "clients.unreadable",
                    path,
                    f"The config of {client.title} can't be read: {error}.",
                    remedy="Correct it: the client may not read it either.",
                )
                continue
            ours = any(map(is_mcpzip, servers.values()))
            serving += ours
            movable |= any(not is_built_in(entry) for entry in servers.values())
            if ours and client.name == "gemini":
                yield from _check_trust(client)
            yield from _check_client(setup, client, path, servers)
    if not serving and setup.servers:
        yield Finding(
            "note",
            "clients.none",
            "",
            "No client that mcpzip knows starts it.",
            remedy="Move the clients' servers to mcpzip." if movable else "Register mcpzip with yours.",
            command=setup.mcpzip("migrate" if movable else "init"),
        )


def _check_client(
    setup: Setup, client: Client, path: str, servers: Mapping[str, object]
) -> Iterator[Finding]:
    ours = [name for name, entry in servers.items() if is_mcpzip(entry)]
    others = [
        name
        for name in servers
        if name not in ours and not (_is_off(servers[name]) or is_built_in(servers[name]))
    ]
    staying = {name: reason for name in others if (reason := _why_not_movable(client, servers[name]))}
    if ours and (direct := [name for name in others if name not in staying]):
        yield Finding(
            "warning",
            "clients.direct",
            path,
            f"{client.title} starts {named(direct)} itself, beside mcpzip.",
            remedy="Their tools are in its context, and they run twice if mcpzip has them too. Move them.",
            command=setup.mcpzip("migrate", "--from", client.name),
        )
    for name, reason in staying.items() if ours else ():
        yield Finding(
            "note",
            "clients.direct",
            path,
            f"{client.title} starts {name} itself, beside mcpzip: {reason}.",
            remedy=f"It can stay there. To move it, write values instead, and run {setup.mcpzip('migrate')}",
        )
    if len(ours) > 1:
        yield Finding(
            "warning",
            "clients.twice",
            path,
            f"{client.title} starts mcpzip {len(ours)} times, as {named(ours)}.",
            remedy=f"Remove one from {path}, unless they have different configs.",
        )
    for name in ours:
        config = _config_of(servers[name])
        if os.path.isabs(config) and not os.path.exists(config):
            yield Finding(
                "error",
                "clients.config",
                path,
                f"{client.title} starts mcpzip with a config that does not exist: {config}",
                remedy=f"Correct it in {path}, or make that config.",
            )
        command = _command_of(servers[name])
        if command and os.path.dirname(command) and not os.path.exists(command):
            here = shutil.which("mcpzip", path=setup.env.get("PATH"))
            yield Finding(
                "error",
                "clients.command",
                path,
                f"{client.title} starts mcpzip with a command that does not exist.",
                (command,),
                f"Write {here or 'the path that `command -v mcpzip` prints'} instead into {path}.",
            )


def _why_not_movable(client: Client, entry: object) -> str:
    """Why `mcpzip migrate` leaves the entry where it is; "" if it moves it."""
    try:
        moved(entry, client.dialect)
    except NotMovable as error:
        return str(error)
    return ""


def _is_off(entry: object) -> bool:
    return isinstance(entry, Mapping) and (entry.get("disabled") is True or entry.get("enabled") is False)


def _config_of(entry: object) -> str:
    """The config that the entry names for mcpzip; "" for the default one."""
    command, args = (entry.get("command"), entry.get("args")) if isinstance(entry, Mapping) else ("", [])
    words = [*(command if isinstance(command, list) else ()), *(args if isinstance(args, list) else ())]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in ("-c", "--config") and isinstance(following, str):
            return os.path.expanduser(following)
        if isinstance(word, str) and word.startswith("--config="):
            return os.path.expanduser(word.removeprefix("--config="))
    return ""


def _command_of(entry: object) -> str:
    """The path of mcpzip's command in the entry of a client; "" if another program starts it."""
    command = entry.get("command", entry.get("cmd")) if isinstance(entry, Mapping) else None
    word = command[0] if isinstance(command, list) and command else command
    if not isinstance(word, str) or not MCPZIP_COMMAND.fullmatch(re.split(r"[\\/]", word)[-1]):
        return ""
    return os.path.expanduser(word)


def check_installation(setup: Setup) -> Iterator[Finding]:
    """What the config needs and the installation lacks."""
    for extra in _needed(setup.config) if setup.config else ():
        module, why = _EXTRAS[extra]
        if not _is_installed(module):
            yield Finding(
                "error",
                "installation.extra",
                extra,
                f"The extra {extra!r} is not installed, but {why}.",
                remedy="Install it where mcpzip is installed.",
                command=f"pip install 'mcpzip[{extra}]'",
            )
    if shutil.which("mcpzip", path=setup.env.get("PATH")) is None:
        yield Finding(
            "note",
            "installation.path",
            "PATH",
            "There is no mcpzip on the PATH: clients need its whole path.",
            remedy=f"{setup.mcpzip('migrate')} writes the whole path; or use pipx or uv tool install.",
        )


def _needed(config: Config) -> Iterator[str]:
    if config.code.enabled:
        yield "code"
    if config.gemini_api_key is not None and config.search.model is not None:
        yield "gemini"
    if config.search.semantic.provider == "onnx":
        yield "semantic"
    if config.auth_store == "keyring":
        yield "keyring"
    if config.store is not None:
        yield "redis" if config.store.url.startswith("redis") else "postgres"
    if any(server.auth is not None and server.auth.private_key for server in config.servers.values()):
        yield "jwt"
    if config.replicas is not None:
        yield "team"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _check_trust(client: Client) -> Iterator[Finding]:
    """Whether Gemini CLI starts servers in the current folder
    (https://geminicli.com/docs/cli/trusted-folders).
    """
    settings = _json_object(client.files[0])
    security = settings.get("security")
    trust = security.get("folderTrust") if isinstance(security, dict) else None
    if isinstance(trust, dict) and trust.get("enabled") is False:
        return
    here = Path.cwd()
    named = _json_object(os.path.join(os.path.dirname(client.files[0]), "trustedFolders.json"))
    trusted = {
        path if rule == "TRUST_FOLDER" else os.path.dirname(path)
        for path, rule in named.items()
        if rule in ("TRUST_FOLDER", "TRUST_PARENT")
    }
    if named.get(str(here)) == "DO_NOT_TRUST" or not any(here.is_relative_to(path) for path in trusted):
        yield Finding(
            "note",
            "clients.untrusted-folder",
            str(here),
            f"{client.title} starts no MCP server in a folder that you have not trusted, such as this one.",
            remedy="If you work here with it: start gemini here, and trust the folder with /permissions.",
        )


def _json_object(path: str) -> dict[str, object]:
    try:
        found = read(read_file(path) or b"{}", "json").servers(())
    except (MigrationError, DocumentError):
        return {}
    return found


def _left() -> list[OrphanProcess]:
    """The processes that were left behind. A mcpzip that ended just now is ending its own."""
    left = find_left()
    if left:
        time.sleep(SETTLED)
        left = [one for one in left if one.alive]
    return left


def check_processes(setup: Setup) -> Iterator[Finding]:
    """The processes that serve agents now, and those that ended ones left behind."""
    left = _left() if can_see_environments() else []
    if left:
        yield Finding(
            "warning",
            "processes.leftover",
            ", ".join(str(one.pid) for one in left),
            "Processes of servers are left whose mcpzip has ended.",
            tuple(one_line(f"{one.pid}: {one.command}", _LONGEST_COMMAND) for one in left[:5]),
            "End them, unless they are meant to stay.",
            end_processes(one.pid for one in left),
        )
    here = [run for run in running(setup.path) if run.host == socket.gethostname()]
    for run in here:
        for note in run.notes:
            yield Finding(
                "warning",
                "processes.config",
                str(run.pid),
                f"A process that serves an agent says of its config: {note}",
                remedy="Fix the config; it takes effect within a second. What waits for a start needs one.",
                command=setup.mcpzip("edit"),
            )
    old = [run for run in here if run.version != __version__]
    if old:
        yield Finding(
            "warning",
            "processes.version",
            ", ".join(str(run.pid) for run in old),
            f"Processes of another version of mcpzip than {__version__} serve agents.",
            tuple(f"{run.pid}: {run.version}" for run in old),
            "Restart their clients, or end them: clients start them again.",
            end_processes(run.pid for run in old),
        )
