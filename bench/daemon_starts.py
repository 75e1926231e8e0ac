"""Two clients at once where no daemon runs, again and again: exactly one daemon has to serve both."""

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.client import Client
from bench.daemons import Daemon, end_all, processes_of, within
from bench.subjects import HERE, environment, interpreter_of
from bench.tables import Series, table

_SOON = 5.0
_GONE = 20.0


def starts(command: str, rounds: int) -> list[str]:
    """Prints the report. Returns what was wrong."""
    wrong: list[str] = []
    seconds = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, notes = folder / "config.json", folder / "notes"
        program = [interpreter_of(command), "-I", "-S", str(HERE / "noting.py"), str(notes)]
        servers = {"north": {"command": program[0], "args": program[1:]}}
        config.write_text(json.dumps({"mcpServers": servers, "daemon": {"idle_minutes": 0}}))
        try:
            for number in range(rounds):
                print(f"\rstart {number + 1} of {rounds}, {len(wrong)} wrong ", end="", file=sys.stderr)
                begun = time.perf_counter()
                wrong += [f"start {number}: {each}" for each in _start(command, config, notes, number)]
                seconds.append(time.perf_counter() - begun)
        finally:
            end_all(folder)
    print(file=sys.stderr)
    took = Series(tuple(seconds))
    rows = [
        ["starts of two clients at once", f"{rounds}"],
        ["violations", f"{len(wrong)}"],
        ["seconds from spawn until all have ended, median (most)", f"{took.median:.2f} ({max(seconds):.2f})"],
    ]
    print(table(["what", "how many"], rows))
    return wrong


def _start(command: str, config: Path, notes: Path, number: int) -> list[str]:
    """One start. Returns what was wrong."""
    wrong, daemon = [], Daemon(config)
    notes.unlink(missing_ok=True)
    argv, env = [command, "serve", "--config", str(config)], environment(daemon=True)
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(argv, env)) for _ in range(2)]
        for client in clients:
            client.initialize()
        servers = set()
        for client in clients:
            arguments = {"name": "north__note", "arguments": {"number": number, "ms": 0}}
            result = client.call({"name": "execute_tool", "arguments": arguments})
            servers.add(str(result.get("structuredContent")))
        if len(servers) != 1:
            wrong.append(f"the clients spoke with {len(servers)} processes of the server")
        if daemon.pid is None:
            wrong.append("no daemon runs")
        if not within(_SOON, lambda: _daemons(config) == 1):
            wrong.append(f"{_daemons(config)} daemons run")
    wrong += [f"mcpzip serve ended with {each.exit_code}" for each in clients if each.exit_code != 0]
    started = notes.read_text().count("start ")
    if started != 1:
        wrong.append(f"the server was started {started} times")
    if not within(_GONE, lambda: daemon.is_gone and not processes_of(config.parent)):
        wrong.append(f"left: {list(processes_of(config.parent).values())}")
        end_all(config.parent)
    if Path(daemon.socket).exists():
        wrong.append("its socket is left")
    return wrong


def _daemons(config: Path) -> int:
    return sum(" daemon run" in command for command in processes_of(config.parent).values())
