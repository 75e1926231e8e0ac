"""Thousands of calls through one mcpzip process while its upstreams crash and its clients reconnect.

    python -m bench.soak [--mcpzip PATH] [--calls N] [--crashes N] [--reconnects N] [--seconds N] [--stdio]

Half of the calls go to an upstream on stdio, half to one on HTTP; each crashes repeatedly before an answer.
The clients speak HTTP, in both eras; with --stdio there is one, on pipes, and it doesn't reconnect. Every
answer is compared with its request. A call that fails because of a crash is made again. Exit code 1 if an
answer was wrong or missing, or if the time ran out.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.client import Client
from bench.http_client import HttpClient
from bench.lives import Piped, Restarted, mortal, serving
from bench.processes import children, resident_bytes
from bench.subjects import environment, installed, interpreter_of
from bench.tables import table

SAMPLES = 200
WORKERS = 8
AGAIN = 0.05
"""Seconds until a call that failed because of a crash is made again."""
MOST_AGAIN = 400
UPSTREAMS = ("stdio", "http")


class Talk(Protocol):
    """A client: `tools/call` gives a text, and whether it reports an error."""

    def call(self, tool: str, arguments: dict[str, object]) -> tuple[str, bool]: ...


@dataclass
class Tally:
    """Counters of all clients. wrong: the wrong answers."""

    counts: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, what: str) -> int:
        with self.lock:
            self.counts[what] += 1
            return self.counts[what]

    def amiss(self, what: str) -> None:
        with self.lock:
            self.wrong.append(what)


@dataclass(frozen=True)
class Sample:
    """The process after a number of calls."""

    calls: int
    resident: int
    files: int | None


@dataclass(frozen=True)
class Plan:
    """The numbers of calls, crashes and reconnects."""

    calls: int
    crashes: int
    reconnects: int
    seconds: float
    stdio: bool

    @property
    def workers(self) -> int:
        return 1 if self.stdio else WORKERS

    @property
    def every(self) -> int:
        """The calls between two crashes, including the unanswered one."""
        return max(2, self.calls // max(1, self.crashes))


class Worker(threading.Thread):
    """Clients in sequence, alternating legacy and modern, each with its part of the calls."""

    def __init__(
        self, number: int, url: str, talk: Talk | None, plan: Plan, tally: Tally, due: float
    ) -> None:
        super().__init__(name=f"client {number}")
        self._number, self._url, self._talk = number, url, talk
        self._plan, self._tally, self._due = plan, tally, due
        self._lives = 0

    def run(self) -> None:
        count = self._plan.calls // self._plan.workers
        lives = max(1, self._plan.reconnects // self._plan.workers)
        try:
            for life in range(lives):
                self._live(range(life * count // lives, (life + 1) * count // lives))
        except Exception as error:
            self._tally.amiss(f"{self.name}: {type(error).__name__}: {error}")

    def _live(self, numbers: range) -> None:
        if self._talk is not None:
            self._calls(self._talk, numbers)
            return
        self._lives += 1
        era = ("legacy", "modern")[(self._lives + self._number) % 2]
        client = HttpClient(self._url, era)
        client.begin()
        self._tally.add(f"{era} clients")
        half = numbers.start + len(numbers) // 2
        self._calls(client, range(numbers.start, half))
        client.hang_up()
        self._calls(client, range(half, numbers.stop))
        client.leave()

    def _calls(self, talk: Talk, numbers: range) -> None:
        for number in numbers:
            upstream = UPSTREAMS[number % len(UPSTREAMS)]
            text = f"{self._number}/{number} " + "ä" * (number % 50)
            for _ in range(MOST_AGAIN):
                if time.monotonic() > self._due:
                    return
                said, failed = talk.call(
                    "execute_tool", {"name": f"{upstream}__echo", "arguments": {"text": text}}
                )
                if not failed:
                    break
                if not said.startswith(f"{upstream}: "):
                    self._tally.amiss(f"asked {upstream} for {text!r}, was told {said[:200]!r}")
                with self._tally.lock:
                    self._tally.told[kind_of(said)] += 1
                time.sleep(AGAIN)
            if said == f"{upstream}: {text}":
                self._tally.add("right")
            else:
                self._tally.amiss(f"asked {upstream} for {text!r}, heard {said[:200]!r}")


def kind_of(said: str) -> str:
    """The kind of a call's error after a crash, in a word or two."""
    if "may have run" in said:
        return "may have run"
    return "tried again later" if "tried again" in said else "not reached"


def open_files(pid: int) -> int | None:
    """How many descriptors ``pid`` has open (Linux)."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return None


class Sampler(threading.Thread):
    """Samples the process after each part of the calls."""

    def __init__(self, pid: int, plan: Plan, tally: Tally) -> None:
        super().__init__(name="sampler")
        self._pid, self._plan, self._tally = pid, plan, tally
        self._over = threading.Event()
        self.samples: list[Sample] = []

    def run(self) -> None:
        seen = -1
        while not self._over.wait(0.02):
            done = self._tally.counts["right"]
            if done * SAMPLES // self._plan.calls > seen:
                seen = done * SAMPLES // self._plan.calls
                resident = resident_bytes(self._pid)
                if resident is None:
                    continue
                self.samples.append(Sample(done, resident, open_files(self._pid)))
                print(f"\r{done:,} of {self._plan.calls:,} calls", end="", file=sys.stderr, flush=True)

    def stop(self) -> None:
        self._over.set()
        self.join()
        print(file=sys.stderr)


@dataclass(frozen=True)
class Outcome:
    """One soak. seconds: what it took; children: what mcpzip had running at the end."""

    plan: Plan
    tally: Tally
    samples: Sequence[Sample]
    seconds: float
    crashes: dict[str, int]
    children: list[str]


def soak(command: str, plan: Plan) -> Outcome:
    python, tally = interpreter_of(command), Tally()
    with tempfile.TemporaryDirectory() as folder:
        deaths = {name: Path(folder) / f"deaths-{name}" for name in UPSTREAMS}
        stdio, http = (mortal(python, plan.every, deaths[name]) for name in UPSTREAMS)
        restarted = Restarted(http)
        try:
            config = Path(folder) / "config.json"
            servers = {
                "stdio": {"command": stdio[0], "args": stdio[1:]},
                "http": {"type": "http", "url": f"http://127.0.0.1:{restarted.port}/mcp"},
            }
            config.write_text(json.dumps({"mcpServers": servers}))
            if plan.stdio:
                argv = [command, "serve", "--config", str(config)]
                with Client(argv, environment()) as client:
                    client.initialize()
                    samples, seconds, left = _run(client.pid, "", Piped(client), plan, tally)
            else:
                with serving(command, config) as (pid, url):
                    samples, seconds, left = _run(pid, url, None, plan, tally)
        finally:
            restarted.stop()
        crashes = {name: file.stat().st_size if file.exists() else 0 for name, file in deaths.items()}
    return Outcome(plan, tally, samples, seconds, crashes, left)


def _run(
    pid: int, url: str, talk: Talk | None, plan: Plan, tally: Tally
) -> tuple[list[Sample], float, list[str]]:
    begun = time.monotonic()
    workers = [Worker(number, url, talk, plan, tally, begun + plan.seconds) for number in range(plan.workers)]
    sampler = Sampler(pid, plan, tally)
    for thread in (sampler, *workers):
        thread.start()
    for worker in workers:
        worker.join()
    sampler.stop()
    return sampler.samples, time.monotonic() - begun, children(pid) or []


def trend(calls: Sequence[int], values: Sequence[float]) -> tuple[float, float, float]:
    """Median of the first and of the last quarter, and how much is added in 1,000 calls (Theil and Sen)."""
    quarter = max(1, len(values) // 4)
    slopes = [
        (values[later] - values[earlier]) / (calls[later] - calls[earlier])
        for earlier in range(len(values))
        for later in range(earlier + 1, len(values))
        if calls[later] > calls[earlier]
    ]
    slope = statistics.median(slopes) if slopes else math.nan
    return statistics.median(values[:quarter]), statistics.median(values[-quarter:]), slope * 1000


def report(outcome: Outcome) -> str:
    tally, samples = outcome.tally, outcome.samples
    calls = [sample.calls for sample in samples]
    rows = [_row("resident MB", calls, [sample.resident / 1e6 for sample in samples], 1)]
    files = [sample.files for sample in samples if sample.files is not None]
    if len(files) == len(samples):
        rows.append(_row("open files", calls, files, 0))
    told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(tally.told.items())) or "none"
    counts = [
        ["calls answered right", f"{tally.counts['right']:,} of {outcome.plan.calls:,}"],
        ["wrong or missing answers", f"{len(tally.wrong):,}"],
        ["calls told of a crash, and made again", told],
        *[[f"crashes of the {name} upstream", f"{count:,}"] for name, count in outcome.crashes.items()],
        *[[f"{era} clients", f"{tally.counts[f'{era} clients']:,}"] for era in ("legacy", "modern")],
        ["its children at the end", f"{len(outcome.children)}"],
        ["seconds", f"{outcome.seconds:.0f}"],
    ]
    head = ["of the process", "first quarter", "last quarter", "added in 1,000 calls"]
    return "\n\n".join(
        (
            table(["what", "how many"], counts),
            table(head, rows),
            *[f"wrong: {each}" for each in tally.wrong[:10]],
        )
    )


def _row(name: str, calls: Sequence[int], values: Sequence[float], digits: int) -> list[str]:
    first, last, slope = trend(calls, values)
    return [name, f"{first:.{digits}f}", f"{last:.{digits}f}", f"{slope:+.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--crashes", type=int, default=200)
    parser.add_argument("--reconnects", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--stdio", action="store_true", help="one client on pipes")
    given = parser.parse_args()
    plan = Plan(given.calls, given.crashes, given.reconnects, given.seconds, given.stdio)
    outcome = soak(installed(given.mcpzip), plan)
    print(report(outcome))
    right = plan.calls // plan.workers * plan.workers == outcome.tally.counts["right"]
    sys.exit(0 if right and not outcome.tally.wrong else 1)


if __name__ == "__main__":
    main()
