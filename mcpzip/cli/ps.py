"""`mcpzip ps`: the daemon, its agents, and the processes of servers."""

import os
import socket
import time
from collections.abc import Mapping, Sequence

import click
import msgspec

from mcpzip.cli import console
from mcpzip.cli.daemon import NONE_RUNS
from mcpzip.cli.parameters import config_option, examples, hint, json_option
from mcpzip.config import config_path
from mcpzip.config.paths import find_project
from mcpzip.model.durations import age
from mcpzip.server.daemon import asking
from mcpzip.server.daemon.report import DaemonReport, ProcessReport, ProxyReport, ServerReport
from mcpzip.server.run_file import Run, running
from mcpzip.system.process_memory import Memory, memory_of

INTERVAL = 2.0
"""Seconds between two looks with ``--watch``."""
_MEGABYTE = 1_000_000


@click.command(
    epilog=examples(
        ("mcpzip ps", "agents, servers, processes, memory"),
        ("mcpzip ps --watch", "again every two seconds, until Ctrl-C"),
    )
)
@click.option("--watch", is_flag=True, help="Show it again every two seconds, until Ctrl-C.")
@json_option
@config_option
def ps(watch: bool, as_json: bool, config: str | None) -> int:
    """Show the daemon with its agents and the processes of servers, and agents that are served without it."""
    path, project = config_path(config, os.environ), find_project(os.environ)
    try:
        while True:
            if watch and not as_json:
                console.clear()
            _look(path, project, as_json)
            if not watch:
                return 0
            time.sleep(INTERVAL)
    except KeyboardInterrupt:
        return 0


def _look(path: str, project: str, as_json: bool) -> None:
    found = asking.ask(path, project, "report")
    daemon = None if found is None else msgspec.convert(found, DaemonReport)
    older = [msgspec.convert(one, DaemonReport) for one in asking.ask_retiring(path, project)]
    daemons = [one for one in (daemon, *older) if one is not None]
    pids = {one.pid for one in daemons}
    others = [run for run in running(path) if run.pid not in pids]
    if as_json:
        console.data_line(
            {
                "daemon": None if daemon is None else _with_memory(daemon, _memories(daemon)),
                "retiring": [_with_memory(one, _memories(one)) for one in older],
                "others": [msgspec.to_builtins(run) for run in others],
            }
        )
        return
    if daemon is None:
        console.say(NONE_RUNS)
    for number, one in enumerate(daemons):
        if number:
            console.say("")
        _show(one, _memories(one), time.time())
    for run in others:
        _show_other(run)


def _memories(daemon: DaemonReport) -> Mapping[int, Memory]:
    """The memory of the daemon and of each server's process, by process id."""
    servers = [server for proxy in daemon.proxies for server in proxy.servers]
    pids = {daemon.pid, *(one.pid for server in servers for one in server.processes if one.pid)}
    return {pid: used for pid in pids if (used := memory_of(pid)) is not None}


def _with_memory(daemon: DaemonReport, memory: Mapping[int, Memory]) -> object:
    used = {str(pid): msgspec.to_builtins(each) for pid, each in memory.items()}
    return {**msgspec.to_builtins(daemon), "memory": used}


def _show(daemon: DaemonReport, memory: Mapping[int, Memory], now: float) -> None:
    console.say(f"daemon {daemon.pid}, version {daemon.version}, {age(now - daemon.started_at)} old", "bold")
    if daemon.successor:
        under_way = sum(client.under_way for proxy in daemon.proxies for client in proxy.clients)
        calls = f"{under_way} request{'' if under_way == 1 else 's'}"
        console.say(f"  gives way to version {daemon.successor}; {calls} under way", "yellow")
    if (used := memory.get(daemon.pid)) is not None:
        console.say(
            f"  memory {_size(used.own)}; {_size(used.whole)} with its servers: {used.processes} processes"
        )
    if daemon.address:
        console.say(f"  over HTTP at {daemon.address}")
    if daemon.project:
        console.say(f"  project {os.path.dirname(daemon.project)}")
    for number, proxy in enumerate(daemon.proxies):
        if len(daemon.proxies) > 1:
            console.say(f"\nenvironment {number + 1}", "bold")
        _show_proxy(proxy, memory, now)


def _show_proxy(proxy: ProxyReport, memory: Mapping[int, Memory], now: float) -> None:
    for note in proxy.notes:
        console.say(f"  config: {note}", "yellow")
    console.say("")
    if proxy.clients:
        table = console.Table("agent", ">process", "folder", "since", ">calls", wide=("folder",))
        for one in proxy.clients:
            name = f"{one.name} {one.version}".rstrip()
            table.row(name, str(one.pid), _home(one.folder), age(now - one.since), str(one.calls))
        table.show()
    else:
        console.say("no agent")
    console.say("")
    counts = (">calls", ">errors", "what is wrong")
    headings = ("server", "state", ">process", ">memory", "used by", "share", *counts)
    table = console.Table(*headings, wide=("what is wrong",), optional=("share", "errors"))
    names = {one.pid: one.name for one in proxy.clients}
    idle = []
    for server in proxy.servers:
        if server.processes or server.calls or server.reason:
            _rows(table, server, names, memory)
        elif server.state != "disabled":
            idle.append(server.name)
    table.show()
    if idle:
        console.say(f"not running, because nothing was called there: {', '.join(idle)}")


def _rows(
    table: console.Table, server: ServerReport, names: Mapping[int, str], memory: Mapping[int, Memory]
) -> None:
    counts = (server.share, str(server.calls), str(server.errors), server.reason)
    if not server.processes:
        table.row(server.name, server.state, "", "", "", *counts)
    for number, one in enumerate(server.processes):
        used = memory.get(one.pid or 0)
        size = "" if used is None else _size(used.whole)
        pid = "" if one.pid is None else str(one.pid)
        first = (server.name, server.state) if number == 0 else ("", "")
        table.row(*first, pid, size, _users(one, names), *(counts if number == 0 else ("", "", "", "")))


def _users(process: ProcessReport, names: Mapping[int, str]) -> str:
    if process.users is None:
        return "all"
    users: Sequence[str] = [names.get(pid, "") for pid in process.users]
    counted = {name: users.count(name) for name in users if name}
    shown = [f"{count} × {name}" if count > 1 else name for name, count in counted.items()]
    return ", ".join(shown) or "listing"


def _show_other(run: Run) -> None:
    clients = ", ".join(f"{one.name} {one.version}".rstrip() for one in run.clients) or "no client yet"
    where = f" at {run.address}" if run.address else ""
    host = "" if run.host == socket.gethostname() else f" on {run.host}"
    how = "another daemon" if run.daemon else "without the daemon"
    console.say(f"\n{how}: process {run.pid}{host}{where} serves {clients}: {hint('status')}")


def _home(folder: str) -> str:
    home = os.path.expanduser("~")
    return f"~{folder[len(home) :]}" if folder == home or folder.startswith(home + os.sep) else folder


def _size(number: int) -> str:
    return f"{number / _MEGABYTE:,.0f} MB"
