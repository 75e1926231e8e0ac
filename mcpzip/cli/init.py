"""`mcpzip init`: a wizard from nothing, or from servers in many clients, to an agent that uses mcpzip.

The rules:

1. Nothing is written before the person has said yes to it, and each step is whole when it is written: leaving
   at any question loses nothing.
2. Each question is one line of text, and so is each answer to it; there is nothing to move a cursor over.
3. Everything that is asked can be said by an option, for a script.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from mcpzip.catalog import Failed
from mcpzip.cli import console
from mcpzip.cli.edit_config import listed_after, save_change
from mcpzip.cli.init_search import SearchSettings
from mcpzip.cli.migrate import ourselves, show_moves
from mcpzip.cli.parameters import client_names, config_option, examples, hint
from mcpzip.cli.questions import Questions
from mcpzip.clients.config_file import ConfigFile
from mcpzip.clients.known import Client, known_clients
from mcpzip.clients.migration import Change, registration
from mcpzip.clients.pasted import PasteError, read_pasted
from mcpzip.clients.plan import plan
from mcpzip.clients.record import migrate as make
from mcpzip.clients.well_known import WELL_KNOWN, WellKnown
from mcpzip.config import ServerConfig, config_path, load
from mcpzip.config.variables import referred
from mcpzip.model.errors import NEEDS_LOGIN, ConfigError, McpzipError
from mcpzip.system.terminal import is_interactive

_BY_NAME = {known.name: known for known in WELL_KNOWN}
_DONE = ("", "done", "no", "n")


@click.command(
    epilog=examples(
        ("mcpzip init", "asks"),
        ("mcpzip init --yes", "moves everything, registers everywhere"),
        ("mcpzip init --yes --server time --server fetch", "adds these well-known servers"),
        (
            "mcpzip init --yes --server 'npx -y some-mcp'",
            "or a command, a URL, JSON, a line for another client",
        ),
    )
)
@click.option(
    "--client",
    "clients",
    multiple=True,
    metavar="NAME",
    shell_complete=client_names,
    help="Register mcpzip with this client.",
)
@click.option("--server", "servers", multiple=True, metavar="SERVER", help="Add this server: see below.")
@click.option(
    "--folder", metavar="FOLDER", type=click.Path(), help="The folder for the servers filesystem and git."
)
@click.option(
    "--semantic",
    metavar="PROVIDER|URL",
    help="How tools are found by meaning: local, onnx, ollama, off, or the URL of an embedding server.",
)
@click.option("--no-migrate", is_flag=True, help="Leave the servers of clients where they are.")
@click.option("--no-register", is_flag=True, help="Don't register mcpzip with clients.")
@click.option("--no-check", is_flag=True, help="Don't try servers before they are added.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask: move what is found, register with every client.")
@config_option
def init(
    clients: tuple[str, ...], servers: tuple[str, ...], folder: str | None,
    semantic: str | None, no_migrate: bool, no_register: bool, no_check: bool, yes: bool, config: str | None,
) -> int:  # fmt: skip
    """Set mcpzip up: move your clients' servers, add others, register with clients.

    mcpzip migrate --undo takes back what was moved or registered last.
    """
    if not yes and not is_interactive(sys.stdin.fileno()):
        raise click.UsageError(
            "There is nobody to ask: this is no terminal. Say what to do with --yes, --server and --client."
        )
    unknown = [name for name in clients if name not in {client.name for client in known_clients(os.environ)}]
    if unknown:
        known = ", ".join(client.name for client in known_clients(os.environ))
        raise click.UsageError(f"There is no client {unknown[0]!r}. Known: {known}.")
    wizard = _Wizard(config_path(config, os.environ), config, folder, ask=not yes, check=not no_check)
    failed = False
    if not no_migrate:
        wizard.move()
    for server in servers:
        failed |= not wizard.add_text(server)
    if not servers:
        wizard.add_more()
    failed |= not wizard.set_search(semantic)
    if not no_register:
        wizard.register(clients)
    wizard.finish()
    return 1 if failed else 0


class _Wizard:
    """The steps. ask: whether there is a person to ask; else every question has the answer yes."""

    def __init__(self, path: str, config: str | None, folder: str | None, *, ask: bool, check: bool) -> None:
        self._path, self._config, self._folder, self._check = path, config, folder, check
        self._questions = Questions(ask=ask)

    # --- the servers of clients ---

    def move(self) -> None:
        """Offers to move the servers that clients have."""
        command, arguments = ourselves(self._config, self._path)
        found = plan(
            known_clients(os.environ), self._path, os.environ,
            command=command, arguments=arguments, folder=os.getcwd(),
        )  # fmt: skip
        if not found.changes:
            return
        count = len(found.moves)
        console.say(f"Your clients have {count} {'server' if count == 1 else 'servers'}:")
        show_moves(found, self._path)
        if self._questions.confirm("Move them to mcpzip, and put mcpzip in their place?"):
            folder = make(found.changes, self._path)
            console.say(f"Moved. The files as they were are in {folder}.")

    # --- other servers ---

    def add_more(self) -> None:
        """Asks for servers until there are no more."""
        if not self._questions.ask:
            return
        console.say("\nServers that you can add, by name:")
        for known in WELL_KNOWN:
            console.say(f"  {known.name}: {known.what}")
        console.say("Or paste a command, a URL, JSON, or a line such as 'claude mcp add …'.")
        while True:
            text = self._questions.read("Add a server (Enter for none)")
            if text.strip().lower() in _DONE:
                return
            self.add_text(text)

    def add_text(self, text: str) -> bool:
        """Adds what ``text`` means, each server once it has answered. Returns whether all were added."""
        known = _BY_NAME.get(text.strip().lower())
        try:
            found = {known.name: self._with_folder(known)} if known else read_pasted(text)
        except PasteError as error:
            console.warn(f"{error}.")
            return False
        added = [self._add(name, entry, known) for name, entry in found.items()]
        return all(added)

    def _add(self, name: str, entry: dict[str, Any], known: WellKnown | None) -> bool:
        try:
            file = ConfigFile(self._path, os.environ)
            entry = self._with_variables(entry, known)
            change = file.add(self._free_name(name), entry)
        except ConfigError as error:
            console.warn(str(error))
            return False
        (name,) = change.added
        found = asyncio.run(listed_after(change, name)) if self._check else None
        needs_login = isinstance(found, Failed) and found.reason.startswith(NEEDS_LOGIN)
        if isinstance(found, Failed) and not needs_login:
            console.warn(f"{name} does not answer: {found.reason.rstrip('.')}.")
            if not self._questions.ask or not self._questions.confirm("Add it all the same?", default=False):
                return False
        save_change(change)
        tools = "" if found is None or isinstance(found, Failed) else f" with {len(found.tools)} tools"
        console.say(f"Added {name}{tools}.")
        if needs_login or (known is not None and known.signs_in):
            self._sign_in(name)
        return True

    def _free_name(self, name: str) -> str:
        """``name``, or with a number if there is such a server."""
        try:
            taken: dict[str, ServerConfig] = dict(load(self._path, os.environ).servers)
        except ConfigError:
            taken = {}
        free, number = name, 2
        while free in taken:
            free, number = f"{name}-{number}", number + 1
        return free

    def _with_folder(self, known: WellKnown) -> dict[str, Any]:
        """The entry of a well-known server with the folder that it is for."""
        if not known.needs_folder:
            return dict(known.entry)
        folder = self._folder or (
            self._questions.read("Which folder", os.getcwd()) if self._questions.ask else os.getcwd()
        )
        folder = os.path.abspath(os.path.expanduser(folder))
        return {**known.entry, "args": [word.replace("{folder}", folder) for word in known.entry["args"]]}

    def _with_variables(self, entry: dict[str, Any], known: WellKnown | None) -> dict[str, Any]:
        """``entry`` with the values that the person gives for its variables that aren't set."""
        text = json.dumps(entry)
        for variable in sorted(name for name in referred(entry) if name not in os.environ):
            what = (
                known.variables.get(variable, "a variable that is not set here") if known else "not set here"
            )
            if not self._questions.ask:
                console.warn(f"{variable} is not set ({what}); set it where your client starts mcpzip.")
                continue
            value = self._questions.secret(f"{variable}, {what} (Enter to set it yourself later)")
            if value:
                text = text.replace(f"${{{variable}}}", json.dumps(value.replace("${", "$${"))[1:-1])
        return dict(json.loads(text))

    def _sign_in(self, name: str) -> None:
        command = hint("auth", "login", name)
        if self._questions.ask and self._questions.confirm("It wants you to sign in. Do that now?"):
            from mcpzip.cli.commands import run

            if run(["auth", "login", name, "--config", self._path]) == 0:
                return
        console.say(f"To sign in: {command}")

    # --- search ---

    def set_search(self, semantic: str | None) -> bool:
        """Sets how tools are found by meaning. semantic: as in the config; None to ask, where there are
        servers and nothing is set. Returns whether what was given could be set.
        """
        step = SearchSettings(self._path, self._questions, check=self._check)
        if semantic is not None:
            return step.set_semantic(semantic)
        if self._questions.ask and step.is_open():
            step.ask()
        return True

    # --- clients ---

    def register(self, names: Sequence[str]) -> None:
        """Registers mcpzip with the clients ``names``, or with those that are here."""
        command, arguments = ourselves(self._config, self._path)
        changes: list[Change] = []
        titles: list[str] = []
        for client in known_clients(os.environ):
            if client.name not in names if names else not _is_here(client):
                continue
            try:
                change = registration(client, command, arguments)
            except McpzipError as error:
                console.warn(str(error))
                continue
            if change is None:
                continue
            if names or self._questions.confirm(f"Register mcpzip with {client.title} ({change.path})?"):
                changes.append(change)
                titles.append(client.title)
        if changes:
            make(changes, self._path)
            console.say(
                f"Registered with {', '.join(titles)}. Restart {'it' if len(titles) == 1 else 'them'}."
            )

    def finish(self) -> None:
        """Says what there is now, and what to do next."""
        try:
            count = len(load(self._path, os.environ).servers)
        except ConfigError:
            count = 0
        servers = f"{count} {'server' if count == 1 else 'servers'}"
        console.say(f"\nmcpzip has {servers} in {self._path}.")
        if count:
            console.say(f"Next: {hint('search', 'what you want to do')}")
            console.say(f"If something doesn't work: {hint('doctor')}")
        else:
            console.say(f"Next: {hint('add', 'NAME', '--', 'COMMAND')}, or {hint('init')} again.")


def _is_here(client: Client) -> bool:
    """Whether the client is installed, as far as its files tell."""
    if any(os.path.exists(path) for path in client.files):
        return True
    home = os.path.expanduser("~")
    folders = {os.path.dirname(path) for path in client.files} - {home}
    return any(map(os.path.isdir, folders)) or (
        client.name == "claude-code" and shutil.which("claude") is not None
    )
