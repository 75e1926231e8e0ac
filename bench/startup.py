"""Measures the time from spawn to the first answers of `mcpzip serve`: with a daemon that runs, with one that
has to be started, and without one.

    python -m bench.startup [--mcpzip PATH] [--rounds N] [--tools N] [--servers N]

All alternate in every round with a bare interpreter, of which the figures are multiples. It reports and never
asserts. POSIX. With other load, `chrt -f 10 python -m bench.startup` measures as if there was none.
"""

import argparse
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from bench.client import Client
from bench.daemons import Daemon, daemon_of
from bench.subjects import SEARCH, Site, environment, installed, interpreter_of
from bench.tables import Samples, spread, table, times
from bench.upstream import name_of

BARE = "python -c pass"
RUNS, STARTS, ALONE = "the daemon runs", "it has to start", "--no-daemon"
WAYS = (RUNS, STARTS, ALONE)
FIRST, READY = "initialize, first start ever", "initialize"
FOUND, DEAD, CALLED = "first search, silent upstreams", "the same, one never answered", "first call"
CALL = {"name": "execute_tool", "arguments": {"name": f"up0__{name_of(0)}", "arguments": {}}}


@dataclass(frozen=True)
class Row:
    """What is waited for. site: the kind of folder. silent: whether the upstreams answer nothing. params: of
    the call after `initialize`; None for none. budget: in bare interpreters. ways: in which it makes sense.
    """

    name: str
    site: str
    silent: bool
    params: object | None
    budget: str
    ways: tuple[str, ...] = WAYS


ROWS = (
    Row(FIRST, "new", False, None, "≤ 3", (STARTS, ALONE)),
    Row(READY, "warm", False, None, "≤ 3"),
    Row(FOUND, "warm", True, SEARCH, "≤ 7"),
    Row(DEAD, "dead", True, SEARCH, "≤ 7"),
    Row(CALLED, "warm", False, CALL, "≤ 10"),
)


def bare(python: str, samples: Samples) -> None:
    begun = time.perf_counter()
    subprocess.run([python, "-c", "pass"], check=True, env=environment())
    samples.add(BARE, BARE, time.perf_counter() - begun)


def start(site: Site, way: str, row: Row, samples: Samples) -> None:
    """One spawn until the answer that ``row`` names."""
    if row.site == "new":
        site.forget()
    with daemon_of(site.config) if way == STARTS else nullcontext():
        site.silent(row.silent)
        try:
            with site.open(daemon=way != ALONE) as client:
                client.initialize()
                if row.params is not None:
                    client.call(row.params)
                samples.add(way, row.name, client.elapsed())
        finally:
            site.silent(False)


def measure(command: str, rounds: int, tools: int, servers: int) -> Samples:
    """Every way and row once a round, in a random order."""
    python, samples = interpreter_of(command), Samples()
    with tempfile.TemporaryDirectory() as folder:
        sites = {
            (way, kind): Site(Path(folder) / f"{at}-{kind}", command, servers=servers, tools=tools)
            for at, way in enumerate(WAYS)
            for kind in ("new", "warm", "dead")
        }
        for (_, kind), site in sites.items():
            if kind != "new":
                site.warm()
                site.index()
            if kind == "dead":
                site.add_dead()
        running = [(sites[RUNS, kind], Daemon(sites[RUNS, kind].config)) for kind in ("warm", "dead")]
        try:
            clients = [_served(site) for site, _ in running]
            _in_turns(python, rounds, sites, samples)
            for client in clients:
                client.close()
        finally:
            for _, daemon in running:
                daemon.stop()
    return samples


def _served(site: Site) -> Client:
    """A client that keeps the daemon of ``site`` running, and has used it."""
    client = site.open(daemon=True)
    client.initialize()
    client.call(SEARCH)
    client.call(CALL)
    return client


def _in_turns(python: str, rounds: int, sites: dict[tuple[str, str], Site], samples: Samples) -> None:
    turns: list[Callable[[], None]] = [lambda: bare(python, samples)]
    turns += [_turn(sites[way, row.site], way, row, samples) for row in ROWS for way in row.ways]
    for _ in range(rounds):
        random.shuffle(turns)
        for turn in turns:
            turn()


def _turn(site: Site, way: str, row: Row, samples: Samples) -> Callable[[], None]:
    return lambda: start(site, way, row, samples)


def report(samples: Samples, rounds: int, tools: int, servers: int) -> str:
    bare = samples[BARE, BARE]
    rows = [[BARE, *[spread(bare, 1e-3)] * len(WAYS)]]
    ratios = []
    for row in ROWS:
        found = [samples.get(way, row.name) for way in WAYS]
        rows.append([row.name, *(spread(series, 1e-3) for series in found)])
        ratios.append(
            [row.name, *("–" if each is None else times(each.per(bare)) for each in found), row.budget]
        )
    return "\n\n".join(
        (
            f"Milliseconds from spawn to the answer, median (least) of {rounds} rounds in turns; "
            f"{tools} tools on {servers} upstreams.",
            table(["until", *WAYS], rows),
            f"Multiples of `{BARE}`, of the medians (of the minima).",
            table(["until", *WAYS, "budget"], ratios),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tools", type=int, default=500)
    parser.add_argument("--servers", type=int, default=5)
    options = parser.parse_args()
    samples = measure(installed(options.mcpzip), options.rounds, options.tools, options.servers)
    print(report(samples, options.rounds, options.tools, options.servers))


if __name__ == "__main__":
    main()
