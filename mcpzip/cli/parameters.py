"""What several commands share: options, the examples of ``--help``, and the names that a shell completes.

A completed name goes into a person's command line, where the shell reads it. So a name with any other
character than letters, digits and ``_ - . /`` is never offered: a server could call its tool ``x$(rm -r ~)``.
"""

import os
import re
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from mcpzip.model.errors import McpzipError

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*", re.ASCII)
"""A name that no shell changes and no command takes for an option."""
_COMMENT = 2
"""Spaces before the comments of examples."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

config_option = click.option("-c", "--config", metavar="FILE", type=click.Path(), help="The config file.")
json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")


def examples(*lines: str | tuple[str, str]) -> str:
    """The ``epilog`` of a command: command lines, each alone or with what it does."""
    pairs = [(line, "") if isinstance(line, str) else line for line in lines]
    width = max((len(command) for command, says in pairs if says), default=0) + _COMMENT
    rows = [f"  {command:<{width}}# {says}" if says else f"  {command}" for command, says in pairs]
    return "\n".join(("\b", "Examples:", *rows))


def hint(*words: str) -> str:
    """The command ``mcpzip`` ``words`` for a person to copy from a message, with --config if the command that
    runs now uses another config than the default one.
    """
    from mcpzip.config.paths import mcpzip_command

    return mcpzip_command(_config_path(click.get_current_context(silent=True)), *words)


# ---- completion


def _complete(names: Callable[[click.Context], Iterable[str]]) -> Complete:
    """The completion of a parameter whose values are ``names`` of a context. Offers nothing if they can't be
    read, because there is nobody who could be told.
    """

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        try:
            found = sorted(names(context))
        except (McpzipError, OSError):
            return []
        given = context.params.get(parameter.name or "")
        given = given if isinstance(given, (tuple, list)) else ()
        return [
            CompletionItem(name)
            for name in found
            if name.startswith(begun) and name not in given and PLAIN_NAME.fullmatch(name)
        ]

    return complete


def _config_path(context: click.Context | None) -> str:
    """The config that the command line names, or the default one."""
    from mcpzip.config.paths import config_path

    if context is None:
        return config_path(None, os.environ)
    root = context.find_root()
    return config_path(context.params.get("config") or root.params.get("config"), os.environ)


def _server_names(context: click.Context) -> Iterable[str]:
    from mcpzip.config import load
    from mcpzip.config.paths import find_project

    return load(_config_path(context), os.environ, find_project(os.environ)).servers


def _tool_names(context: click.Context) -> Iterable[str]:
    from mcpzip.catalog import snapshot
    from mcpzip.config import load
    from mcpzip.config.paths import find_project

    config = load(_config_path(context), os.environ, find_project(os.environ))
    catalog, _ = snapshot.load_for(config)
    return [entry.name for entry in catalog.entries if entry.server in config.servers]


def _client_names(_: click.Context) -> Iterable[str]:
    from mcpzip.clients.known import known_clients

    return [client.name for client in known_clients(os.environ)]


server_names = _complete(_server_names)
"""Completes the configured servers."""
tool_names = _complete(_tool_names)
"""Completes the tools that were listed last; starts no server."""
client_names = _complete(_client_names)
"""Completes the clients that `mcpzip migrate` knows."""
