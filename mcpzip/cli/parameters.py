"""What several commands share: options, the examples of ``--help``, and the names that a shell completes."""

import os
from collections.abc import Iterable

import click

from mcpzip.model.shell_completion import complete_with

_COMMENT = 2
"""Spaces before the comments of examples."""

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


server_names = complete_with(_server_names)
"""Completes the configured servers."""
tool_names = complete_with(_tool_names)
"""Completes the tools that were listed last; starts no server."""
client_names = complete_with(_client_names)
"""Completes the clients that `mcpzip migrate` knows."""
