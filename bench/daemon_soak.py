"""Clients that come and go at one daemon, while servers crash, the daemon is killed, calls are cancelled and
clients are killed.

    python -m bench.daemon_soak [--mcpzip PATH] [--minutes N] [--clients N] [--kills N] [--crashes N]
    python -m bench.daemon_soak --starts N [--mcpzip PATH]

Each call carries a number of its own, which the server notes before it answers. Exit code 1 if an answer was
wrong or missing, a call ran twice, a call ran whose client was told otherwise, a process or a socket is left,
or the daemon's memory grew. The daemon is killed in the first six tenths of the time; its memory is measured
in the rest. With --starts: two clients at once, again and again, must find one daemon. Linux.
"""

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.daemon_starts import starts
from bench.daemons import Daemon, end_all, processes_of, within
from bench.processes import resident_bytes
from bench.soak import open_files
from bench.subjects import HERE, environment, installed, interpreter_of
from bench.tables import table
from bench.visitors import Tally, Visitor

SERVERS = ("north", "south", "west")
KILLING = 0.6
"""The part of the time in which the daemon is killed."""
WARM = 20.0
"""Seconds after the last kill until the memory is measured."""
GROWTH = 1.1
"""Times that the daemon's memory may be in the last third of that time what it was in the first."""
LEFT = 15.0
"""Seconds in which everything has to be gone after the last client."""
MEGABYTE = 1e6


@dataclass(frozen=True)
class Plan:
    """The numbers of clients at a time, of kills of the daemon and of crashes of servers in ``seconds``."""

    seconds: float
    clients: int
    kills: int
    crashes: int


@dataclass(frozen=True)
class Sample:
    """The daemon ``pid`` at a time (monotonic s): resident bytes and open files."""

    at: float
    pid: int
    resident: int
    files: int


def noted(notes: Path) -> tuple[list[int], Counter[int]]:
    """The process ids of the servers, and how often each number was run."""
    started, numbers = [], Counter[int]()
    for line in notes.read_text().splitlines() if notes.exists() else ():
        if line.startswith("start "):
            started.append(int(line.split()[1]))
        else:
            numbers[int(line)] += 1
    return started, numbers


class Soak:
    """One run. samples: of the daemon, one a second."""

    def __init__(self, command: str, folder: Path, plan: Plan) -> None:
        self.tally, self.plan, self.folder = Tally(), plan, folder
        self.samples: list[Sample] = []
        self.left: dict[int, str] = {}
        self.notes = folder / "notes"
        config = folder / "config.json"
        program = [interpreter_of(command), "-I", "-S", str(HERE / "noting.py"), str(self.notes)]
        servers = {name: {"command": program[0], "args": program[1:]} for name in SERVERS}
        config.write_text(json.dumps({"mcpServers": servers, "daemon": {"idle_minutes": 0}}))
        self.daemon = Daemon(config)
        argv, tools = [command, "serve", "--config", str(config)], [f"{name}__note" for name in SERVERS]
        env = environment(daemon=True)
        self._visitors = [Visitor(argv, env, tools, self.tally, seed) for seed in range(plan.clients)]

    def run(self) -> None:
        """Until everything is over and checked."""
        begun = time.monotonic()
        killers = [
            threading.Thread(target=self._kill_daemons, args=(begun,)),
            threading.Thread(target=self._crash_servers, args=(begun,)),
        ]
        for thread in (*self._visitors, *killers):
            thread.start()
        while time.monotonic() - begun < self.plan.seconds:
            self._sample()
            calls, wrong = len(self.tally.calls), len(self.tally.wrong)
            print(
                f"\r{time.monotonic() - begun:.0f} s: {calls:,} calls, {wrong} wrong ",
                end="",
                file=sys.stderr,
            )
            time.sleep(1)
        print(file=sys.stderr)
        for visitor in self._visitors:
            visitor.over.set()
        for thread in (*self._visitors, *killers):
            thread.join()
        if not within(LEFT, lambda: not processes_of(self.folder)):
            self.left = processes_of(self.folder)
            self.tally.wrong += [f"process {pid} is left: {command}" for pid, command in self.left.items()]
        if os.path.lexists(self.daemon.socket):
            self.tally.amiss(f"{self.daemon.socket} is left")
        self.tally.check(noted(self.notes)[1])

    def _sample(self) -> None:
        pid = self.daemon.pid
        if pid is not None:
            resident, files = resident_bytes(pid), open_files(pid)
            if resident is not None and files is not None:
                self.samples.append(Sample(time.monotonic(), pid, resident, files))

    def _kill_daemons(self, begun: float) -> None:
        for number in range(self.plan.kills):
            self._wait_until(begun + self.plan.seconds * KILLING * (number + 1) / self.plan.kills)
            if not within(20, self._kill_daemon):
                self.tally.amiss("no daemon runs")

    def _kill_daemon(self) -> bool:
        pid = self.daemon.pid
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.tally.add("daemons killed")
            return True
        return False

    def _crash_servers(self, begun: float) -> None:
        for number in range(self.plan.crashes):
            self._wait_until(begun + self.plan.seconds * (number + 1) / (self.plan.crashes + 1))
            within(5, self._crash_server)

    def _crash_server(self) -> bool:
        started = set(noted(self.notes)[0][-100:])
        living = [pid for pid in processes_of(self.folder) if pid in started]
        if not living:
            return False
        with suppress(ProcessLookupError):
            os.kill(random.choice(living), signal.SIGKILL)
            self.tally.add("servers crashed")
            return True
        return False

    def _wait_until(self, moment: float) -> None:
        time.sleep(max(0.0, moment - time.monotonic()))

    def memory(self) -> tuple[list[float], list[float]] | None:
        """Median resident MB and open files of the last daemon, in the first and in the last third of its
        time; None if it was too short.
        """
        if not self.samples:
            return None
        last = [each for each in self.samples if each.pid == self.samples[-1].pid]
        last = [each for each in last if each.at > last[0].at + WARM]
        third = len(last) // 3
        if third < 5:
            return None
        parts = (last[:third], last[-third:])
        resident = [statistics.median(each.resident for each in part) / MEGABYTE for part in parts]
        return resident, [statistics.median(each.files for each in part) for part in parts]


def soak(command: str, plan: Plan) -> int:
    """Runs it, prints the report. Returns the exit code."""
    with tempfile.TemporaryDirectory() as name:
        run = Soak(command, Path(name), plan)
        try:
            run.run()
        finally:
            end_all(Path(name))
        memory = run.memory()
        tally = run.tally
        if memory is not None and memory[0][1] > GROWTH * memory[0][0]:
            tally.amiss(f"the daemon grew from {memory[0][0]:.1f} to {memory[0][1]:.1f} MB")
        started, numbers = noted(run.notes)
    outcomes = Counter(tally.calls.values())
    rows = [
        ["calls", f"{len(tally.calls):,}"],
        *[[f"calls: {outcome}", f"{count:,}"] for outcome, count in sorted(outcomes.items())],
        ["numbers that servers noted", f"{len(numbers):,}"],
        ["numbers noted twice", f"{sum(times > 1 for times in numbers.values())}"],
        *[[what, f"{count:,}"] for what, count in sorted(tally.counts.items())],
        ["processes of servers", f"{len(started):,}"],
        ["processes left", f"{len(run.left)}"],
        ["violations", f"{len(tally.wrong)}"],
    ]
    print(table(["what", "how many"], rows), end="\n\n")
    if memory is not None:
        head = ["of the last daemon", "first third", "last third"]
        shown = [["resident MB", *(f"{each:.1f}" for each in memory[0])]]
        shown.append(["open files", *(f"{each:.0f}" for each in memory[1])])
        print(table(head, shown), end="\n\n")
    for text, count in tally.errors.most_common(8):
        print(f"{count:6,} × {text[:200]}")
    _print_wrong(tally.wrong)
    return 1 if tally.wrong else 0


def _print_wrong(wrong: Sequence[str]) -> None:
    for each in wrong[:20]:
        print(f"wrong: {each}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--crashes", type=int, default=100)
    parser.add_argument("--starts", type=int, default=0, help="only: so many starts of two clients at once")
    given = parser.parse_args()
    command = installed(given.mcpzip)
    if given.starts:
        wrong = starts(command, given.starts)
        _print_wrong(wrong)
        sys.exit(1 if wrong else 0)
    sys.exit(soak(command, Plan(given.minutes * 60, given.clients, given.kills, given.crashes)))


if __name__ == "__main__":
    main()
