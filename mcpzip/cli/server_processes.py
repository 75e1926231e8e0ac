"""`mcpzip stop` and `mcpzip restart`: the processes of servers that the daemon runs."""

import os

import click

from mcpzip.cli import console
from mcpzip.cli.daemon import NONE_RUNS
from mcpzip.cli.parameters import config_option, examples, hint, server_names
from mcpzip.cli.proxy_session import unknown_server
from mcpzip.config import config_path, load
from mcpzip.config.paths import find_project
from mcpzip.proxy.unanswered import forget_saved
from mcpzip.server.daemon import asking


@click.command(epilog=examples(("mcpzip stop github", "its process starts again when it is called")))
@click.argument("names", nargs=-1, required=True, metavar="SERVER...", shell_complete=server_names)
@config_option
def stop(names: tuple[str, ...], config: str | None) -> int:
    """End the processes of servers that the daemon runs. They start again when they are called.

    Calls that are under way there fail. mcpzip disable switches a server off for good.
    """
    return _disconnect(names, config, again=False)


@click.command(epilog=examples("mcpzip restart github"))
@click.argument("names", nargs=-1, required=True, metavar="SERVER...", shell_complete=server_names)
@config_option
def restart(names: tuple[str, ...], config: str | None) -> int:
    """End the processes of servers that the daemon runs, start them again and list their tools."""
    return _disconnect(names, config, again=True)


def _disconnect(names: tuple[str, ...], config: str | None, *, again: bool) -> int:
    path, project = config_path(config, os.environ), find_project(os.environ)
    for name in names:
        found = asking.ask(path, project, "disconnect", server=name, again=again)
        if not isinstance(found, dict):
            if again:
                forget_saved(load(path, os.environ, project), names)
            console.say(
                f"{NONE_RUNS} Without one, each agent's own mcpzip runs its servers: {hint('status')}"
            )
            return 0
        if not found["known"]:
            raise unknown_server(name, found["servers"], path)
        if again:
            console.say(f"{name} starts again.")
        elif found["closed"]:
            console.say(f"{name} was stopped. It starts again when it is called.")
        else:
            console.say(f"{name} did not run.")
    return 0
