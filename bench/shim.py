"""Measures `mcpzip serve` in front of a running daemon: the time that is added to a call, and the calls a
second of many agents. Its start: `python -m bench --only catalog,startup`.

    python -m bench.shim [--mcpzip PATH] [--rounds N] [--one-processor]

Beside it, in turns: the upstream without a proxy, and `mcpzip serve --no-daemon`. With ``--one-processor`` no
process has to wake another processor, which takes a virtual machine longer than mcpzip's own work on a step:
what it takes here is measured first, between two processes with a pipe each way. It reports and never
asserts. POSIX.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.client import Client
from bench.crowd import Crowd
from bench.daemons import daemon_of
from bench.processes import cpu_seconds, resident_bytes
from bench.subjects import Site, environment, installed, interpreter_of, upstream_argv
from bench.tables import Samples, Series, spread, table, times

DIRECT, SHIM, ALONE = "direct", "mcpzip, daemon", "mcpzip --no-daemon"
SMALL, REPLY, RATE = "100 B", "1 MB of result", "calls a second"
CPU, DAEMON_CPU = "processor of the process, 100 B", "processor of the daemon, 100 B"
AGENTS, WINDOW, EACH = 8, 8, 500
"""Agents at once, calls of each in flight, calls of each a round."""
TOOLS, SERVERS = 500, 5
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Subject:
    """A way to the upstream. ``dress``: a tool and its arguments -> the params of `tools/call`."""

    name: str
    client: Client
    dress: Callable[[str, dict[str, object]], object]

    def ask(self, tool: str, arguments: dict[str, object]) -> float:
        """The seconds of one call."""
        frame = self.client.frame("tools/call", self.dress(tool, arguments))
        begun = time.perf_counter()
        self.client.write(frame)
        line = self.client.line()
        took = time.perf_counter() - begun
        if b'"result"' not in line[:60] or b'"isError":true' in line[-200:]:
            raise SystemExit(f"{self.name}: {line[:300]!r}")
        return took

    def cpu(self) -> float | None:
        return cpu_seconds(self.client.pid)


def plain(tool: str, arguments: dict[str, object]) -> object:
    return {"name": tool, "arguments": arguments}


def wrapped(tool: str, arguments: dict[str, object]) -> object:
    return {"name": "execute_tool", "arguments": {"name": f"up0__{tool}", "arguments": arguments}}


def measure(command: str, rounds: int) -> Samples:
    """Every subject in turns: single calls, and those of many agents at once."""
    python, samples = interpreter_of(command), Samples()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        site = Site(Path(folder), command, servers=SERVERS, tools=TOOLS)
        site.warm()
        daemon = stack.enter_context(daemon_of(site.config))
        upstream = upstream_argv(python, tools=TOOLS // SERVERS)
        openings: dict[str, Callable[[], Client]] = {
            DIRECT: lambda: Client(upstream, environment()),
            SHIM: lambda: site.open(daemon=True),
            ALONE: lambda: site.open(),
        }
        subjects, crowds = [], {}
        for name, opening in openings.items():
            dress = plain if name == DIRECT else wrapped
            clients = [stack.enter_context(opening()) for _ in range(AGENTS)]
            for client in clients:
                client.initialize()
            subjects.append(Subject(name, clients[0], dress))
            crowds[name] = Crowd(clients, dress("echo", {"payload": "x" * 100}), WINDOW)
            crowds[name].calls(50)
            subjects[-1].ask("blob", {"bytes": MEGABYTE})
        pid = daemon.pid
        for number in range(rounds):
            _show(f"calls, round {number + 1} of {rounds}")
            random.shuffle(subjects)
            for subject in subjects:
                before = [subject.cpu(), cpu_seconds(pid) if pid else None]
                small = [subject.ask("echo", {"payload": "x" * 100}) for _ in range(300)]
                after = [subject.cpu(), cpu_seconds(pid) if pid else None]
                samples.add(subject.name, SMALL, Series(tuple(small)).median)
                quantities = (CPU, DAEMON_CPU) if subject.name == SHIM else (CPU,)
                for quantity, then, now in zip(quantities, before, after, strict=False):
                    if then is not None and now is not None:
                        samples.add(subject.name, quantity, (now - then) / len(small))
            for subject in subjects:
                large = [subject.ask("blob", {"bytes": MEGABYTE}) for _ in range(10)]
                samples.add(subject.name, REPLY, Series(tuple(large)).median)
            for subject in subjects:
                samples.add(subject.name, RATE, crowds[subject.name].calls(EACH) / (AGENTS * EACH))
        for subject in subjects:
            samples.add(subject.name, "resident", resident_bytes(subject.client.pid) or 0)
    _show("")
    return samples


def waking(asker: int, answerer: int) -> float:
    """The seconds in which a process on the processor ``asker`` has the answer of one on ``answerer``, to a
    byte in a pipe: two wakes. The median of 2,000.
    """
    (questions, ask), (answers, answer) = os.pipe(), os.pipe()
    before = os.sched_getaffinity(0)
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {answerer})
        os.close(ask)
        while byte := os.read(questions, 1):
            os.write(answer, byte)
        os._exit(0)
    took = []
    try:
        os.sched_setaffinity(0, {asker})
        for _ in range(2_000):
            begun = time.perf_counter()
            os.write(ask, b"?")
            os.read(answers, 1)
            took.append(time.perf_counter() - begun)
    finally:
        for descriptor in (ask, questions, answers, answer):
            os.close(descriptor)
        os.waitpid(child, 0)
        os.sched_setaffinity(0, before)
    return statistics.median(took)


def report_waking() -> str:
    """What it takes to wake a process on the same processor and on another one."""
    first, *others = sorted(os.sched_getaffinity(0))
    rows = [["the same processor", f"{waking(first, first) * 1e6:.0f}"]]
    if others:
        rows.append(["another one", f"{waking(first, others[0]) * 1e6:.0f}"])
    return table(["a byte to a process and back (two wakes)", "µs"], rows)


def _show(progress: str) -> None:
    print(f"\r{progress:40}", end="", file=sys.stderr, flush=True)


def report(samples: Samples, rounds: int) -> str:
    ways = (DIRECT, ALONE, SHIM)
    rows = [
        [f"{quantity} ({unit})", *(spread(samples.get(way, quantity), 1e-3, 3) for way in ways)]
        for quantity, unit in (
            (SMALL, "ms, one call at a time"),
            (REPLY, "ms"),
            (RATE, f"ms a call, {AGENTS} agents, {WINDOW} in flight each"),
            (CPU, "ms a call"),
            (DAEMON_CPU, "ms a call"),
        )
    ]
    figures = []
    for way in (DIRECT, ALONE):
        ours, other = samples[SHIM, SMALL], samples[way, SMALL]
        added = f"{(ours.median - other.median) * 1e3:.3f} ({(ours.least - other.least) * 1e3:.3f}) ms"
        figures.append([f"100 B: added to {way}", added, "≤ 0.2 ms"])
    figures.append(["1 MB of result / direct", times(samples[SHIM, REPLY].per(samples[DIRECT, REPLY])), "–"])
    for way, budget in ((SHIM, "≥ 10,000"), (ALONE, "–"), (DIRECT, "–")):
        rate = samples[way, RATE]
        figures.append([f"{RATE}, {way}", f"{1 / rate.median:,.0f} ({1 / rate.least:,.0f})", budget])
    return "\n\n".join(
        (
            f"Medians (least) of {rounds} rounds in turns; a round's figure is the median of its calls.",
            table(["", *ways], rows),
            table(["what", "measured", "budget"], figures),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--one-processor", action="store_true", help="all processes on one (Linux)")
    options = parser.parse_args()
    command = installed(options.mcpzip)
    if hasattr(os, "sched_setaffinity"):
        print(report_waking(), end="\n\n")
        if options.one_processor:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    elif options.one_processor:
        parser.error("--one-processor: this system doesn't let a process choose its processors")
    print(report(measure(command, options.rounds), options.rounds))


if __name__ == "__main__":
    main()
