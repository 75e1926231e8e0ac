"""`mcpzip daemon`: the process that serves all agents."""

import os
import time

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, hint, json_option
from mcpzip.config import config_path
from mcpzip.config.paths import find_project, logs_folder
from mcpzip.model.durations import age
from mcpzip.server.daemon import asking
from mcpzip.server.daemon.connector import UnavailableError
from mcpzip.server.daemon.protocol import socket_and_lock

NONE_RUNS = "No daemon runs now. The next agent starts one."


@click.group(
    epilog=examples(
        ("mcpzip daemon status", "whether it runs"),
        ("mcpzip daemon stop", "ends it, and all servers that it runs"),
        ("mcpzip ps", "its agents and servers"),
    )
)
def daemon() -> None:
    """The process in the background that serves your agents, and runs their servers.

    Nobody has to start it: the first agent does. It ends when no agent has needed it for daemon.idle_minutes
    (5 in a config without that key).
    """


@daemon.command(epilog=examples("mcpzip daemon start"))
@config_option
def start(config: str | None) -> int:
    """Start it, unless it runs."""
    path, project = config_path(config, os.environ), find_project(os.environ)
    before = asking.ask(path, project, "ping")
    if before is None:
        try:
            asking.start(path, project, config)
        except UnavailableError as error:
            console.note(f"The daemon is not started: {error}.")
            return 1
    found = asking.ask(path, project, "ping")
    pid = found["pid"] if isinstance(found, dict) else ""
    console.say(f"The daemon {'runs already' if before else 'was started'}: process {pid}.")
    return 0


@daemon.command(epilog=examples("mcpzip daemon stop"))
@config_option
def stop(config: str | None) -> int:
    """End it, with all servers that it runs. Agents start another one with their next request."""
    path, project = config_path(config, os.environ), find_project(os.environ)
    if asking.ask(path, project, "stop") is None:
        console.say(NONE_RUNS)
    elif asking.wait_for_end(path, project):
        console.say("The daemon was ended. The next request of an agent starts another one.")
    else:
        console.note(f"The daemon has not ended yet: {hint('status')} shows its process id.")
        return 1
    return 0


@daemon.command(epilog=examples("mcpzip daemon restart"))
@config_option
@click.pass_context
def restart(context: click.Context, config: str | None) -> int:
    """End it and start it again, as after an upgrade. The sessions of agents go on."""
    path, project = config_path(config, os.environ), find_project(os.environ)
    asking.ask(path, project, "stop")
    if not asking.wait_for_end(path, project):
        console.note(f"The daemon has not ended yet: {hint('status')} shows its process id.")
        return 1
    done: int = context.invoke(start, config=config)
    return done


@daemon.command(epilog=examples("mcpzip daemon status"))
@json_option
@config_option
def status(as_json: bool, config: str | None) -> int:
    """Say whether it runs. Exit code 1 if it doesn't."""
    path, project = config_path(config, os.environ), find_project(os.environ)
    found = asking.ask(path, project, "report")
    if as_json:
        console.data(found)
        return 1 if found is None else 0
    if not isinstance(found, dict):
        console.say(NONE_RUNS)
        return 1
    clients = sum(len(proxy["clients"]) for proxy in found["proxies"])
    agents = f"{clients} agent{'' if clients == 1 else 's'}"
    console.say(
        f"process {found['pid']}, version {found['version']}, {age(time.time() - found['started_at'])} old, "
        f"serves {agents}: {hint('ps')}"
    )
    if found["address"]:
        console.say(f"over HTTP at {found['address']}")
    console.say(f"config {found['config']}")
    console.say(f"socket {socket_and_lock(path, project)[0]}")
    console.say(f"log in {logs_folder(path)}: {hint('logs')}")
    return 0


@daemon.command(epilog=examples("mcpzip daemon run"))
@config_option
def run(config: str | None) -> int:
    """Run it in the foreground, as a service manager wants it."""
    from mcpzip.server.daemon.main import main

    return main(config)
