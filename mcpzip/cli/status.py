"""`mcpzip status`: the mcpzip processes that serve agents now."""

import os
import socket
import time

import click
import msgspec

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, hint, json_option
from mcpzip.config import config_path
from mcpzip.model.durations import age
from mcpzip.proxy.metatools import DESCRIBE
from mcpzip.proxy.status import suspected
from mcpzip.server.run_file import Run, RunClient, RunServer, running
from mcpzip.system.process_memory import Memory, memory_of

_IN_USE = ("connected", "connecting")
_MEGABYTE = 1_000_000


@click.command(
    epilog=examples(
        ("mcpzip status", "each process, with the agents that it serves"),
        ("mcpzip ps", "each agent and each process of a server"),
        ("mcpzip servers", "asks every server itself, whether an agent runs or not"),
    )
)
@json_option
@config_option
def status(as_json: bool, config: str | None) -> int:
    """Show the mcpzip processes that serve agents now: clients, servers, calls, memory.

    The numbers are at most two seconds old, and count since the process was started.
    """
    found = running(config_path(config, os.environ))
    memory = [memory_of(run.pid) if run.host == socket.gethostname() else None for run in found]
    if as_json:
        console.data([_as_json(run, used) for run, used in zip(found, memory, strict=True)])
        return 0
    if not found:
        console.say(
            "No mcpzip serves an agent now. A client starts it. To search without one: "
            f"{hint('search', 'what you want to do')}"
        )
        return 0
    now = time.time()
    for number, (run, used) in enumerate(zip(found, memory, strict=True)):
        if number:
            console.say("")
        _show(run, used, now)
    if len(found) > 1 and (known := [used for used in memory if used is not None]):
        processes = sum(used.processes for used in known)
        console.say(f"\nTogether {_size(sum(used.whole for used in known))} in {processes} processes")
    return 0


def _as_json(run: Run, used: Memory | None) -> object:
    return {**msgspec.to_builtins(run), "memory": None if used is None else msgspec.to_builtins(used)}


def _show(run: Run, used: Memory | None, now: float) -> None:
    clients = ", ".join(map(_client, run.clients)) or "no client yet"
    console.say(clients, "bold")
    where = f" at {run.address}" if run.address else ""
    what = "daemon, process" if run.daemon else "process"
    console.say(f"  {what} {run.pid}{where}, {age(now - run.started_at)} old; config {run.config}")
    if run.project:
        console.say(f"  project {os.path.dirname(run.project)}")
    for note in run.notes:
        console.say(f"  config: {note}", "yellow")
    if used is not None:
        servers = f", {_size(used.whole)} with its servers in {used.processes} processes"
        console.say(f"  memory {_size(used.own)}{servers if used.processes > 1 else ''}")
    calls, errors = sum(one.calls for one in run.servers), sum(one.errors for one in run.servers)
    searches = _count(run.searches, "search", "searches")
    replies = run.replies.get(DESCRIBE)
    described = _count(replies.count if replies else 0, "description")
    console.say(f"  {searches}, {described}, {_count(calls, 'call')}, {_count(errors, 'error')}")
    shown = [one for one in run.servers if one.calls or one.reason or one.state in _IN_USE]
    if shown:
        headings = ("server", "state", ">tools", ">calls", ">errors", "what is wrong")
        table = console.Table(*headings, wide=("what is wrong",), optional=("tools",))
        for one in shown:
            table.row(one.name, one.state, str(one.tools), str(one.calls), str(one.errors), _wrong(one))
        table.show()
        for one in shown:
            if one.suspect:
                console.say(f"  What {one.name} said: {hint('logs', one.name)}")
    others = [one.name for one in run.servers if one not in shown and one.state != "disabled"]
    if others:
        console.say(f"  not started, because nothing was called there yet: {', '.join(others)}")


def _wrong(server: RunServer) -> str:
    more = suspected(server.suspect) if server.suspect else ""
    return "; ".join(part for part in (server.reason, more) if part)


def _client(client: RunClient) -> str:
    return f"{client.name} {client.version}".rstrip()


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _size(number: int) -> str:
    return f"{number / _MEGABYTE:,.0f} MB"
