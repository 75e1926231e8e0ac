"""Measures the end of `mcpzip serve`: the time until all its processes have ended. Its servers ignore the end
of their input and SIGTERM, and each has a child that does so too.

    python -m bench.ending [--mcpzip PATH] [--rounds N] [--servers N]

All ways to end alternate in every round. It reports and never asserts; the promise is two seconds. POSIX.
"""

import argparse
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.client import Client
from bench.subjects import environment, installed, interpreter_of
from bench.tables import Samples, table

STUBBORN = ("ignore-eof", "ignore-sigterm", "fork")
PROMISE = 2.0
_PATIENCE = 30.0
_LOOK = 0.005

Way = Callable[[Client], object]
WAYS: dict[str, tuple[bool, Way]] = {
    "its input ends": (False, lambda client: client.hang_up()),
    "SIGTERM": (False, lambda client: os.kill(client.pid, signal.SIGTERM)),
    "SIGTERM, a call under way": (True, lambda client: os.kill(client.pid, signal.SIGTERM)),
    "SIGKILL": (False, lambda client: os.kill(client.pid, signal.SIGKILL)),
}
"""Name -> whether it ends during a call, and what ends it."""


def ending(folder: Path, command: str, servers: int, busy: bool, end: Way) -> float:
    """Seconds until all processes have ended. Raises SystemExit if one stays."""
    records = [folder / f"{number}.jsonl" for number in range(servers)]
    config = _config(folder, interpreter_of(command), records)
    with Client([command, "serve", "--config", str(config)], environment()) as client:
        client.initialize()
        client.call({"name": "execute_tool", "arguments": {"name": "proxy_refresh", "timeout": 30}})
        below = [pid for record in records for pid in _processes(record)]
        if len(below) != 2 * servers:
            raise SystemExit(f"{len(below)} processes were started, not {2 * servers}")
        if busy:
            call = {"name": "execute_tool", "arguments": {"name": "up0__wait"}}
            client.write(client.frame("tools/call", call))
            _until(lambda: b'"tools/call"' in records[0].read_bytes())
        begun = time.perf_counter()
        end(client)
        _until(lambda: client.ended() and not any(map(_alive, below)))
        return time.perf_counter() - begun


def _config(folder: Path, python: str, records: list[Path]) -> Path:
    entries = {}
    for number, record in enumerate(records):
        scenario = folder / f"{number}.json"
        tools = [{"name": "wait", "result": {"text": "at last", "delay": 60}}]
        scenario.write_text(json.dumps({"name": f"up{number}", "tools": tools, "faults": STUBBORN}))
        record.unlink(missing_ok=True)
        args = ["-m", "mcpzip_fakes", str(scenario), "--record", str(record)]
        entries[f"up{number}"] = {"command": python, "args": args}
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": entries}))
    return config


def _processes(record: Path) -> Iterator[int]:
    for line in map(json.loads, record.read_text().splitlines()):
        if line["what"] == "start":
            yield line["pid"]
        elif line["what"] == "grandchild":
            yield line["child"]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # no such folder, or no such process any more
        return not Path("/proc/self").exists()


def _until(true: Callable[[], bool]) -> None:
    late = time.perf_counter() + _PATIENCE
    while not true():
        if time.perf_counter() > late:
            raise SystemExit(f"It still runs after {_PATIENCE:g} s.")
        time.sleep(_LOOK)


def measure(command: str, rounds: int, servers: int) -> Samples:
    """Every way once a round, in a random order."""
    samples = Samples()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name in random.sample(list(WAYS), len(WAYS)):
                samples.add(name, "", ending(Path(folder), command, servers, *WAYS[name]))
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--servers", type=int, default=2)
    options = parser.parse_args()
    samples = measure(installed(options.mcpzip), options.rounds, options.servers)
    rows = []
    for name in WAYS:
        took = samples[name, ""]
        seconds = [f"{each:.2f}" for each in (took.median, took.least, max(took.values))]
        rows.append([name, *seconds, f"{took.median / PROMISE:.2f}"])
    print(f"Seconds until nothing is left, of {options.rounds} rounds; {options.servers} stubborn servers.\n")
    print(table(["it ends because", "median", "least", "most", f"of {PROMISE:g} s"], rows))


if __name__ == "__main__":
    main()
