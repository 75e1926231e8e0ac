"""Counts the processes and the memory of ten agents with eight real servers: all through one daemon, each
with a `mcpzip serve` of its own, and without a proxy; through the daemon also by what the agents declare as
their roots. And the memory of one `mcpzip serve` in front of the daemon, compared with a bare interpreter.

    python -m bench.agents [--mcpzip PATH] [--agents N] [--json]

Each agent has called every server once. Agents that declare roots answer the servers' question for them, as
real clients do: a server that asks is shared by agents with equal roots. Where not said otherwise, half of
the agents declare roots, all the same. It reports and never asserts. Linux.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.client import Client, RefusedError
from bench.daemons import daemon_of, end_all, processes_of
from bench.processes import proportional_bytes, resident_bytes, thread_seconds
from bench.real_servers import Server, eight_servers
from bench.subjects import environment, installed, interpreter_of
from bench.tables import table

DAEMON, ALONE, DIRECT = "through the daemon", "mcpzip serve --no-daemon", "no proxy"
NO_ROOTS, EQUAL, HALF, DIFFERENT = "no roots", "equal roots", "half of them equal roots", "different roots"
OURS, SERVERS = "mcpzip", "servers"
ROOTS = {"roots": {"listChanged": True}}
MEGABYTE = 1e6
_SHELLS = ("sh ", "/bin/sh ")
_QUIET, _PATIENCE = 0.05, 120.0
"""Seconds of processor time in one second with which all processes count as idle, and seconds until then."""


class Agent(Client):
    """A client that declares roots, or doesn't. root: the folder that is its root, None without roots."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], root: Path | None) -> None:
        super().__init__(argv, env)
        self._root = None if root is None else root.as_uri()

    def begin(self) -> None:
        """The handshake and the list of tools."""
        self.initialize(None if self._root is None else ROOTS)
        self.ask("tools/list", {})

    def answer(self) -> dict[str, object]:
        """The next result; questions for the roots are answered meanwhile. Raises RefusedError."""
        while True:
            message = json.loads(self.line())
            result = message.get("result")
            if message.get("method") == "roots/list":
                said = {"roots": [{"uri": self._root, "name": "project"}]}
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": said}
                self.write(json.dumps(reply).encode() + b"\n")
            elif "error" in message or (isinstance(result, dict) and result.get("isError")):
                raise RefusedError(str(message)[:300])
            elif isinstance(result, dict):
                return result


@dataclass(frozen=True)
class Count:
    """What one way to the servers takes: processes, and their proportional set size in bytes, by part."""

    processes: dict[str, int]
    memory: dict[str, int]

    @property
    def all_processes(self) -> int:
        return sum(self.processes.values())

    @property
    def all_memory(self) -> int:
        return sum(self.memory.values())


@dataclass(frozen=True)
class Size:
    """The memory of one process, in bytes, the median of several: proportional and resident."""

    proportional: float
    resident: float

    @classmethod
    def of(cls, pids: Sequence[int]) -> "Size":
        measured = [(proportional_bytes(pid) or 0, resident_bytes(pid) or 0) for pid in pids]
        proportional, resident = zip(*measured, strict=True)
        return cls(statistics.median(proportional), statistics.median(resident))


@dataclass(frozen=True)
class Outcome:
    """All figures. agents: how many there are. counts: by way, with the daemon also by the agents' roots."""

    agents: int
    servers: int
    counts: dict[str, Count]
    shim: Size
    bare: Size


def count(folder: Path) -> Count:
    """All processes of ``folder``."""
    processes, memory = {OURS: 0, SERVERS: 0}, {OURS: 0, SERVERS: 0}
    for pid, command in processes_of(folder).items():
        # The shell ends the servers of a mcpzip that was killed.
        ours = " serve" in command or " daemon run" in command or command.startswith(_SHELLS)
        part = OURS if ours else SERVERS
        processes[part] += 1
        memory[part] += proportional_bytes(pid) or 0
    return Count(processes, memory)


def settle(folder: Path, seconds: int = 1) -> None:
    """Waits until the processes of ``folder`` have done nothing for so many seconds."""
    late, before, quiet = time.monotonic() + _PATIENCE, _threads(folder), 0
    while time.monotonic() < late and quiet < seconds:
        time.sleep(1)
        now = _threads(folder)
        # Thread by thread: the time of one that has ended is gone, and would hide what others did.
        spent = sum(spent - before.get(thread, 0.0) for thread, spent in now.items())
        quiet = quiet + 1 if spent < _QUIET else 0
        before = now


def _threads(folder: Path) -> dict[tuple[int, int], float]:
    """Processor time of each thread of the processes of ``folder``, by process and thread."""
    return {
        (pid, thread): spent
        for pid in processes_of(folder)
        for thread, spent in (thread_seconds(pid) or {}).items()
    }


Root = Callable[[int], Path | None]
"""The root of the agent with this number, None for one without roots."""


def roots_in(folder: Path) -> dict[str, Root]:
    """The ways in which agents declare roots; their folders are made in ``folder``."""

    def root(name: str) -> Path:
        found = folder / "roots" / name
        found.mkdir(parents=True, exist_ok=True)
        return found

    return {
        NO_ROOTS: lambda number: None,
        EQUAL: lambda number: root("all"),
        HALF: lambda number: root("all") if number % 2 else None,
        DIFFERENT: lambda number: root(str(number)),
    }


@contextmanager
def through_mcpzip(
    command: str, config: Path, servers: Mapping[str, Server], roots: Sequence[Path | None], *, daemon: bool
) -> Iterator[list[Agent]]:
    """An agent for each of ``roots``, with a `mcpzip serve`, after its calls."""
    env = {**environment(daemon=daemon), "MCPZIP_BENCH": str(config.parent)}
    with ExitStack() as stack:
        if daemon:
            stack.enter_context(daemon_of(config))
        found: list[Agent] = []
        for root in roots:
            agent = stack.enter_context(Agent([command, "serve", "--config", str(config)], env, root))
            agent.begin()
            calls = [wrapped(f"{name}__{server.tool}", server.arguments) for name, server in servers.items()]
            agent.in_flight([agent.frame("tools/call", call) for call in calls], len(calls))
            found.append(agent)
        for agent in found:
            agent.ask("ping", {})
        yield found


def wrapped(tool: str, arguments: Mapping[str, object]) -> object:
    """The params of a call through mcpzip."""
    return {"name": "execute_tool", "arguments": {"name": tool, "arguments": arguments}}


@contextmanager
def directly(servers: Mapping[str, Server], roots: Sequence[Path | None]) -> Iterator[None]:
    """An agent for each of ``roots``, with processes of all servers, after its calls."""
    with ExitStack() as stack:
        every: list[Agent] = []
        for root in roots:
            clients = [
                stack.enter_context(Agent(server.argv, {**environment(), **server.env}, root))
                for server in servers.values()
            ]
            for client, server in zip(clients, servers.values(), strict=True):
                client.begin()
                client.call({"name": server.tool, "arguments": server.arguments})
            every += clients
        for client in every:
            client.ask("ping", {})
        yield


def measure(command: str, agents: int) -> Outcome:
    """Every way once, one after the other."""
    python, counts = interpreter_of(command), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = {kind: [root(number) for number in range(agents)] for kind, root in roots_in(folder).items()}
        try:
            servers = eight_servers(folder, python)
            config = folder / "config.json"
            entries = {
                name: {"command": server.argv[0], "args": server.argv[1:], "env": dict(server.env)}
                for name, server in servers.items()
            }
            config.write_text(json.dumps({"mcpServers": entries}))
            _show("the catalog")
            with through_mcpzip(command, config, servers, [None], daemon=False) as agent:
                agent[0].call({"name": "execute_tool", "arguments": {"name": "proxy_refresh"}})
            for kind, roots in kinds.items():
                way = f"{DAEMON}: {kind}"
                _show(way)
                with through_mcpzip(command, config, servers, roots, daemon=True) as shims:
                    settle(folder)
                    counts[way] = count(folder)
                    with sleeping(python, agents) as sleepers:
                        shim, bare = Size.of([each.pid for each in shims]), Size.of(sleepers)
            _show(ALONE)
            with through_mcpzip(command, config, servers, kinds[HALF], daemon=False):
                settle(folder)
                counts[ALONE] = count(folder)
            _show(DIRECT)
            with directly(servers, kinds[HALF]):
                settle(folder)
                counts[DIRECT] = count(folder)
        finally:
            end_all(folder)
    _show("")
    return Outcome(agents, len(servers), counts, shim, bare)


@contextmanager
def sleeping(python: str, number: int) -> Iterator[list[int]]:
    """So many interpreters that only sleep, by process id."""
    code = "import time; print(flush=True); time.sleep(1000)"
    with ExitStack() as stack:
        started = []
        for _ in range(number):
            process = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, env=environment())
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout
            process.stdout.readline()
            started.append(process.pid)
        yield started


def _show(progress: str) -> None:
    print(f"\r{progress:40}", end="", file=sys.stderr, flush=True)


def report(outcome: Outcome) -> str:
    base = outcome.counts[DIRECT]
    rows = [
        [
            way,
            f"{found.processes[OURS]}",
            f"{found.processes[SERVERS]}",
            f"{found.memory[OURS] / MEGABYTE:,.0f}",
            f"{found.memory[SERVERS] / MEGABYTE:,.0f}",
            f"{found.all_memory / MEGABYTE:,.0f}",
            f"{found.all_processes / base.all_processes:.2f}",
            f"{found.all_memory / base.all_memory:.2f}",
        ]
        for way, found in outcome.counts.items()
    ]
    head = ["way", "processes of mcpzip", "of servers", "MB of mcpzip", "of servers", "in all"]
    shim, bare = outcome.shim, outcome.bare
    sizes = [
        [name, f"{ours / MEGABYTE:.1f} MB", f"{other / MEGABYTE:.1f} MB", f"{ours / other:.2f}", "≤ 1.3"]
        for name, ours, other in (
            ("proportional", shim.proportional, bare.proportional),
            ("resident", shim.resident, bare.resident),
        )
    ]
    return "\n\n".join(
        (
            f"{outcome.agents} agents with {outcome.servers} real servers; each agent has called each server "
            "once. Without the daemon half of them declare roots. Memory: proportional set size.",
            table([*head, "processes / no proxy", "memory / no proxy"], rows),
            f"One `mcpzip serve` in front of the daemon, median of {outcome.agents}.",
            table(["memory", "mcpzip serve", "bare interpreter", "ratio", "budget"], sizes),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if not Path("/proc/self/smaps_rollup").exists():
        raise SystemExit("This system does not say what memory processes share.")
    outcome = measure(installed(options.mcpzip), options.agents)
    print(json.dumps(asdict(outcome), indent=2) if options.json else report(outcome))


if __name__ == "__main__":
    main()
