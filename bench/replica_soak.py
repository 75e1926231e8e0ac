"""Thousands of calls through replicas of `mcpzip serve --http` that are killed, with a store that fails.

    python -m bench.replica_soak [--mcpzip PATH] [--replicas N] [--store redis|postgres] [--calls N]
                                 [--rate N] [--kill SECONDS] [--fail SECONDS]

Each request goes to the next replica that can be reached, in both eras, on a connection of its own. Half of
the calls go to a server over stdio, which each replica has for itself, half to one over HTTP that requires a
sign-in: its tokens are good for some seconds, and a refresh token that is shown twice ends the sign-in (RFC
9700). All replicas share the sign-in in the store. A replica is killed every ``--kill`` seconds; the store is
in turn killed, paused, read-only and full, and its copy takes its place, every ``--fail`` seconds.

A call whose error says that nothing ran is made again; one that may have run is not. Both servers note the
calls that reach them. Exit code 1 if an answer was wrong, a call ran twice, or the sign-in was lost.
"""

import argparse
import base64
import http.client
import itertools
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcpzip_fakes.oauth.controls import AuthControls
from mcpzip_fakes.record import Line, Record

from bench.cluster import Killer, Replica, running, write_config
from bench.http_client import HttpClient, RefusedError
from bench.replicas import STORES
from bench.signed_in import sign_in
from bench.store_servers import StoreServer
from bench.store_servers import running as store_running
from bench.subjects import HERE, environment, installed, interpreter_of
from bench.tables import table

WORKERS = 8
LIFE = 40
"""Calls of one client, after which another one begins."""
TOKEN_SECONDS = 4
FAULT_SECONDS = 3.0
AGAIN, PATIENCE = 0.1, 120.0
"""Seconds until a call of which nothing ran is made again, and for how long."""
RIGHT, UNKNOWN = "answered right", "may have run"
_NUMBER = re.compile(r"[0-9][0-9.,]*")


@dataclass
class Tally:
    """What became of the calls. again: how often one was made again, by what was said. wrong: sentences."""

    counts: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    outcome: dict[int, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ended(self, number: int, outcome: str) -> None:
        """The call with this number has ended."""
        with self.lock:
            self.outcome[number] = outcome
            self.counts[outcome] += 1

    def count(self, what: str) -> None:
        """One more of what is named."""
        with self.lock:
            self.counts[what] += 1

    def amiss(self, what: str) -> None:
        """Something that may not happen."""
        with self.lock:
            self.wrong.append(what)


class Worker(threading.Thread):
    """Clients in sequence, alternating legacy and modern."""

    def __init__(
        self, urls: list[str], numbers: Iterator[int], begun: float, rate: float, tally: Tally
    ) -> None:
        super().__init__()
        self._urls, self._numbers, self._tally = urls, numbers, tally
        self._begun_at, self._rate = begun, rate

    def run(self) -> None:
        try:
            for era in itertools.cycle(("legacy", "modern")):
                numbers = list(itertools.islice(self._numbers, LIFE))
                if not numbers:
                    return
                self._live(era, numbers)
        except Exception as error:
            self._tally.amiss(f"{type(error).__name__}: {error}")

    def _live(self, era: str, numbers: list[int]) -> None:
        client = self._begun(era)
        self._tally.count(f"{era} clients")
        for number in numbers:
            time.sleep(max(0.0, self._begun_at + number / self._rate - time.monotonic()))
            self._call(client, number)
        try:
            client.leave()
        except (OSError, http.client.HTTPException, RefusedError):
            pass  # its home has just been killed

    def _begun(self, era: str) -> HttpClient:
        end = time.monotonic() + PATIENCE
        while True:
            urls = random.sample(self._urls, len(self._urls))
            client = HttpClient(urls[0], era, urls[1:], fresh=True)
            try:
                client.begin()
                return client
            except (OSError, http.client.HTTPException):
                if time.monotonic() > end:
                    raise
                time.sleep(AGAIN)

    def _call(self, client: HttpClient, number: int) -> None:
        tool, argument = (("shop__echo", "number"), ("local__note", "number"))[number % 2]
        arguments: dict[str, object] = {argument: number, **({} if number % 2 == 0 else {"ms": 0})}
        end = time.monotonic() + PATIENCE
        while True:
            try:
                said, failed = client.call("execute_tool", {"name": tool, "arguments": arguments})
            except ConnectionRefusedError:
                said, failed = "no replica can be reached", True
            except RefusedError as error:
                said, failed = str(error), True
                if "HTTP 404" in said:
                    self._tally.amiss(f"{number}: a session was lost: {said}")
            except (OSError, http.client.HTTPException):
                said, failed = UNKNOWN, True  # the replica was killed, or it never got the request
            if not failed:
                expected = json.dumps({"number": number}) if number % 2 == 0 else str(number)
                if json.loads(said) != json.loads(expected):
                    self._tally.amiss(f"asked for {number}, heard {said[:200]!r}")
                self._tally.ended(number, RIGHT)
                return
            if "may have run" in said:
                self._tally.ended(number, UNKNOWN)
                return
            with self._tally.lock:
                self._tally.again[_NUMBER.sub("N", said)[:200]] += 1
            if time.monotonic() > end:
                self._tally.amiss(f"{number}: not answered for {PATIENCE:.0f} s: {said[:300]}")
                self._tally.ended(number, "given up")
                return
            time.sleep(AGAIN)


class Failing(threading.Thread):
    """Has the store fail in turn in each way, once in so many seconds. faults: how often in which way."""

    def __init__(self, store: StoreServer, seconds: float) -> None:
        super().__init__(name="store")
        self._store, self._seconds = store, seconds
        self._over = threading.Event()
        self.faults: Counter[str] = Counter()
        self.error: Exception | None = None

    def run(self) -> None:
        ways = itertools.cycle((self._killed, self._paused, self._read_only, self._full, self._copied))
        try:
            while not self._over.wait(self._seconds):
                way = next(ways)
                way()
                self.faults[way.__name__.strip("_").replace("_", "-")] += 1
        except Exception as error:
            self.error = error

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _killed(self) -> None:
        self._store.kill()
        time.sleep(FAULT_SECONDS)
        self._store.start()

    def _paused(self) -> None:
        self._store.signal_all(signal.SIGSTOP)
        time.sleep(FAULT_SECONDS)
        self._store.signal_all(signal.SIGCONT)

    def _read_only(self) -> None:
        self._store.read_only(on=True)
        time.sleep(FAULT_SECONDS)
        self._store.read_only(on=False)

    def _full(self) -> None:
        self._store.full()
        time.sleep(FAULT_SECONDS)
        self._store.emptied()

    def _copied(self) -> None:
        self._store.fail_over()


@contextmanager
def shop(python: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """The server that requires a sign-in: its URL, and the file of what it was asked."""
    scenario, record = folder / "shop.json", folder / "shop.jsonl"
    oauth = {"access_seconds": TOKEN_SECONDS, "refresh": "rotate"}
    scenario.write_text(json.dumps({"name": "shop", "tools": ["echo"], "oauth": oauth}))
    words = [str(scenario), "--transport", "http", "--record", str(record)]
    process = subprocess.Popen(
        [python, "-m", "mcpzip_fakes", *words], stdout=subprocess.PIPE, text=True, env=environment()
    )
    with process:
        assert process.stdout
        try:
            line = process.stdout.readline()
            if not line.startswith("listening "):
                raise SystemExit(f"The fake server did not start: {line}")
            yield line.split()[1], record
        finally:
            process.kill()


@dataclass(frozen=True)
class Outcome:
    """One soak."""

    tally: Tally
    kills: int
    faults: Counter[str]
    seconds: float
    refreshes: int
    lost: str
    ran: Counter[int]

    @property
    def wrong(self) -> list[str]:
        """What may not happen."""
        twice = [number for number, count in self.ran.items() if count > 1]
        never = [n for n, what in self.tally.outcome.items() if what == RIGHT and not self.ran[n]]
        found = list(self.tally.wrong)
        found += [f"{len(twice)} calls ran twice, such as {twice[0]}"] if twice else []
        found += [f"{len(never)} calls were answered and never ran, such as {never[0]}"] if never else []
        return [*found, f"the sign-in was lost: {self.lost}"] if self.lost else found


def soak(command: str, given: argparse.Namespace) -> Outcome:
    python, tally = interpreter_of(command), Tally()
    with (
        tempfile.TemporaryDirectory() as name,
        store_running(STORES[given.store]()) as store,
        shop(python, Path(name)) as (url, record),
    ):
        folder = Path(name)
        notes = folder / "notes"
        argv = [python, "-I", "-S", str(HERE / "noting.py"), str(notes)]
        servers = {
            "shop": {"type": "http", "url": url, "auth": {"mcp_remote": False}},
            "local": {"command": argv[0], "args": argv[1:]},
        }
        keys = [base64.b64encode(b"s" * 32).decode()]
        config = write_config(folder, servers, store={"url": store.url, "keys": keys})
        sign_in(command, config, "shop")
        with running(command, config, given.replicas) as replicas:
            begun, numbers = time.monotonic(), _Numbers(given.calls)
            urls = [each.url for each in replicas]
            workers = [Worker(urls, numbers, begun, given.rate, tally) for _ in range(WORKERS)]
            killer, failing = Killer(replicas, given.kill), Failing(store, given.fail)
            for thread in (*workers, killer, failing):
                thread.start()
            _watch(workers, tally, given.calls)
            took = time.monotonic() - begun
            killer.stop()
            failing.stop()
            if failing.error:
                raise failing.error
            lost = _signed_in_everywhere(replicas)
        tokens = AuthControls.at(url).tokens("refresh")
        ended = [token.ended for token in tokens]
        if ended != ["rotated"] * (len(ended) - 1) + [""]:
            lost = lost or f"refresh tokens ended as {Counter(ended)}"
        ran = Counter(filter(None, map(_echoed, Record.load(record).sent())))
        ran.update(int(line) for line in notes.read_text().splitlines() if line.isdigit())
    return Outcome(tally, killer.kills, failing.faults, took, len(tokens) - 1, lost, ran)


def _echoed(line: Line) -> int | None:
    """The number of a call that the shop has run: that of its result. Calls with old tokens were not run."""
    try:
        return int(json.loads(line.message["result"]["content"][0]["text"])["number"])  # type: ignore[index, call-overload]
    except (KeyError, TypeError, ValueError, IndexError):
        return None


class _Numbers:
    """1, 2, 3 … for all threads."""

    def __init__(self, most: int) -> None:
        self._numbers, self._lock = iter(range(1, most + 1)), threading.Lock()

    def __iter__(self) -> "_Numbers":
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._numbers)


def _watch(workers: list[Worker], tally: Tally, calls: int) -> None:
    for worker in workers:
        while worker.is_alive():
            worker.join(1.0)
            print(f"\r{len(tally.outcome):,} of {calls:,} calls", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _signed_in_everywhere(replicas: list[Replica]) -> str:
    """What is said at the first replica that isn't signed in within a minute."""
    for replica in replicas:
        client, end, said = HttpClient(replica.url, "modern"), time.monotonic() + 60, ""
        while time.monotonic() < end:
            said, failed = client.call("execute_tool", {"name": "shop__echo", "arguments": {"last": 1}})
            if not failed:
                break
            time.sleep(AGAIN)
        else:
            return said[:300]
    return ""


def report(outcome: Outcome, given: argparse.Namespace) -> str:
    counts, tally = outcome.tally.counts, outcome.tally
    rows = [
        ["replicas, store", f"{given.replicas}, {given.store}"],
        ["calls", f"{given.calls:,} in {outcome.seconds:.0f} s"],
        *[[what, f"{counts[what]:,}"] for what in (RIGHT, UNKNOWN, "given up")],
        ["made again, because nothing ran", f"{tally.again.total():,}"],
        ["replicas killed", f"{outcome.kills}"],
        ["faults of the store", ", ".join(f"{count} {way}" for way, count in outcome.faults.items()) or "0"],
        ["refreshes of the one sign-in", f"{outcome.refreshes}"],
        *[[f"{era} clients", f"{counts[f'{era} clients']:,}"] for era in ("legacy", "modern")],
        ["wrong", f"{len(outcome.wrong)}"],
    ]
    again = [f"{count:,} × {said}" for said, count in tally.again.most_common(5)]
    return "\n\n".join(
        (table(["what", "how many"], rows), *again, *[f"wrong: {e}" for e in outcome.wrong[:10]])
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--store", choices=[*STORES], default="redis")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=100.0, help="calls a second")
    parser.add_argument("--kill", type=float, default=10.0)
    parser.add_argument("--fail", type=float, default=7.0)
    given = parser.parse_args()
    outcome = soak(installed(given.mcpzip), given)
    print(report(outcome, given))
    sys.exit(1 if outcome.wrong else 0)


if __name__ == "__main__":
    main()
