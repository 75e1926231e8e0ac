"""Measures calls through 1, 2 and 4 replicas of `mcpzip serve --http`, each request to the next replica.

    python -m bench.replicas [--mcpzip PATH] [--rounds N] [--calls N] [--store redis|postgres|none]

All replicas run the whole time, and their numbers alternate in every round. With few processors the clients
and the replicas take each other's time. So the processor time that the replicas take for a call is measured,
too: with a processor each, N replicas answer N / time calls in a second. With a store, its operations during
the calls are counted, less those in as long a time without calls. It reports and never asserts.
"""

import argparse
import base64
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from bench.cluster import Replica, running, write_config
from bench.http_client import HttpClient
from bench.processes import cpu_seconds
from bench.store_servers import PostgresServer, RedisServer, StoreServer
from bench.store_servers import running as store_running
from bench.subjects import installed, interpreter_of, upstream_argv
from bench.tables import Samples, spread, table

COUNTS = (1, 2, 4)
ERAS = ("modern", "legacy")
WORKERS = 8
RATE, PROCESSOR, ASKED = "calls a second", "processor ms a call", "store operations"
PAYLOAD = "x" * 100
STORES = {"redis": RedisServer, "postgres": PostgresServer}


class Worker(threading.Thread):
    """A client that makes so many calls, each request to the next replica."""

    def __init__(self, urls: Sequence[str], era: str, calls: int, begin: threading.Barrier) -> None:
        super().__init__()
        self._client = HttpClient(urls[0], era, urls[1:])
        self._calls, self._begin = calls, begin
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._client.begin()
            for step in range(self._calls + 1):
                said, failed = self._client.call(
                    "execute_tool", {"name": "up__echo", "arguments": {"payload": PAYLOAD}}
                )
                if failed or said != PAYLOAD:
                    raise RuntimeError(f"echo: {said[:300]!r}")  # a SystemExit would end this thread alone
                if not step:  # it is connected everywhere
                    self._begin.wait()
            self._client.leave()
        except Exception as error:
            self.error = error
            self._begin.abort()


def calls_at(replicas: Sequence[Replica], era: str, calls: int) -> tuple[float, float]:
    """So many calls at ``replicas``: seconds, and the replicas' processor time."""
    begin = threading.Barrier(WORKERS + 1)
    urls = [each.url for each in replicas]
    workers = [Worker(random.sample(urls, len(urls)), era, calls // WORKERS, begin) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    try:
        begin.wait()
    except threading.BrokenBarrierError:
        raise SystemExit(f"{era}: {[worker.error for worker in workers if worker.error]}") from None
    begun, used = time.perf_counter(), processor_time(replicas)
    for worker in workers:
        worker.join()
    took, spent = time.perf_counter() - begun, processor_time(replicas) - used
    if errors := [worker.error for worker in workers if worker.error]:
        raise SystemExit(f"{era}: {errors[0]!r}")
    return took, spent


def processor_time(replicas: Sequence[Replica]) -> float:
    """In s; their servers over stdio aren't in it."""
    return sum(cpu_seconds(each.process.pid) or 0 for each in replicas)


@contextmanager
def store_of(kind: str) -> Iterator[StoreServer | None]:
    """A store of its own; None without one."""
    with store_running(STORES[kind]()) if kind in STORES else nullcontext() as server:
        yield server


def measure(command: str, rounds: int, calls: int, kind: str) -> Samples:
    samples, python = Samples(), interpreter_of(command)
    argv = upstream_argv(python)
    servers = {"up": {"command": argv[0], "args": argv[1:]}}
    with ExitStack() as stack:
        store = stack.enter_context(store_of(kind))
        more = {"store": {"url": store.url, "keys": [base64.b64encode(b"s" * 32).decode()]}} if store else {}
        clusters = {}
        for count in COUNTS:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            config = write_config(folder, servers, **more)
            clusters[count] = stack.enter_context(running(command, config, count))
        turns = [(count, era) for count in COUNTS for era in ERAS]
        for number in range(rounds + 1):
            print(f"\rround {number} of {rounds}", end="", file=sys.stderr, flush=True)
            random.shuffle(turns)
            for count, era in turns:
                before = store.operations() if store else 0
                took, spent = calls_at(clusters[count], era, calls)
                between = store.operations() if store else 0
                if store:
                    time.sleep(took)
                after = store.operations() if store else 0
                if number:  # the first is to get warm
                    subject = f"{count} {era}"
                    samples.add(subject, RATE, calls / took)
                    samples.add(subject, PROCESSOR, spent / calls * 1000)
                    samples.add(subject, ASKED, (between - before) - (after - between))
        print(file=sys.stderr)
    return samples


def report(samples: Samples, rounds: int, calls: int, kind: str) -> str:
    rows = []
    for era in ERAS:
        for count in COUNTS:
            rate, time_ = (samples[f"{count} {era}", quantity] for quantity in (RATE, PROCESSOR))
            alone = samples[f"1 {era}", PROCESSOR]
            rows.append(
                [
                    era,
                    str(count),
                    spread(rate, 1, 0),
                    spread(time_, 1, 3),
                    f"{count * 1000 / time_.median:,.0f}",
                    f"{count * alone.median / time_.median:.2f}",
                    spread(samples[f"{count} {era}", ASKED], 1, 0) if kind in STORES else "no store",
                ]
            )
    head = ["era", "replicas", RATE, PROCESSOR, "with a processor each", "growth", f"{ASKED}, less idle ones"]
    text = f"{rounds} rounds of {calls:,} calls by {WORKERS} clients, store: {kind}; median (least)."
    return f"{text}\n\n{table(head, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=4_000)
    parser.add_argument("--store", choices=(*STORES, "none"), default="redis")
    given = parser.parse_args()
    samples = measure(installed(given.mcpzip), given.rounds, given.calls, given.store)
    print(report(samples, given.rounds, given.calls, given.store))


if __name__ == "__main__":
    main()
