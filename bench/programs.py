"""Measures programs (`run_code`): what one costs, and many calls in one and one by one; how long a ping waits
while a hostile program runs; and how mcpzip exits after programs.

    python -m bench.programs [--mcpzip PATH] [--rounds N] [--exits N]

It reports and never asserts; the promises are in docs/programs.md.
"""

import argparse
import collections
import json
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

from bench.client import Client, RefusedError
from bench.subjects import environment, installed, interpreter_of
from bench.tables import table

CALLS = 50
WARM = 30
HOSTILE = {
    "a loop without end": "while True:\n    pass",
    "memory without end": "x = []\nwhile True:\n    x.append('a' * 1_000_000)",
    "a value of 40 MB": "'a' * 40_000_000",
    "a list of 1,000,000 numbers": "list(range(1_000_000))",
    "100,000 lines printed": "for n in range(100_000):\n    print('line', n)",
    "an argument of 20 MB": "shop__look(x='a' * 20_000_000)",
    "100 calls at once": ("import asyncio\nlen(await asyncio.gather(*[shop__look() for n in range(100)]))"),
    "variables of 20 MB": "kept = ['a' * 1_000 for n in range(20_000)]",
    "a source that is hard to read": "with " + "a," * 16_000 + "b: pass",
}
"""Name -> program."""
PAUSE = 0.002
"""Seconds between two pings."""


def config(folder: Path, python: str) -> Path:
    """A config with programs and a server whose tool reads."""
    scenario = folder / "shop.json"
    reads = {"name": "look", "annotations": {"readOnlyHint": True}, "result": {"text": "a look"}}
    scenario.write_text(json.dumps({"name": "shop", "tools": [reads]}))
    server = {"command": python, "args": ["-m", "mcpzip_fakes", str(scenario)]}
    path = folder / "config.json"
    path.write_text(json.dumps({"mcpServers": {"shop": server}, "code": {"effects": "deny"}}))
    return path


def run(client: Client, code: str) -> float:
    """Seconds of a program."""
    begun = time.perf_counter()
    client.call({"name": "run_code", "arguments": {"code": code}})
    return time.perf_counter() - begun


def look(client: Client) -> float:
    """Seconds of a call by `execute_tool`."""
    begun = time.perf_counter()
    client.call({"name": "execute_tool", "arguments": {"name": "shop__look"}})
    return time.perf_counter() - begun


def costs(command: str, rounds: int) -> list[list[str]]:
    """Least milliseconds of each kind."""
    found: dict[str, list[float]] = collections.defaultdict(list)
    loop = f"for n in range({CALLS}):\n    shop__look()"
    gather = f"import asyncio\nlen(await asyncio.gather(*[shop__look() for n in range({CALLS})]))"
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = config(Path(folder), interpreter_of(command))
            with Client([command, "serve", "--config", str(path)], environment()) as client:
                client.initialize()
                look(client)
                found["the first program of a process"].append(run(client, "1"))
                found["a further one"].append(statistics.median(run(client, "1") for _ in range(WARM)))
                found["with one call"].append(
                    statistics.median(run(client, "shop__look()") for _ in range(9))
                )
                found["one execute_tool"].append(statistics.median(look(client) for _ in range(WARM)))
                found[f"{CALLS} execute_tool, one by one"].append(sum(look(client) for _ in range(CALLS)))
                found[f"a program with {CALLS} calls, one by one"].append(run(client, loop))
                found[f"a program with {CALLS} calls, side by side"].append(run(client, gather))
    return [[what, f"{1e3 * min(each):.1f}"] for what, each in found.items()]


def pings(command: str) -> list[list[str]]:
    """Milliseconds of pings of the same client while a hostile program runs."""
    rows = []
    for name, code in {"nothing": "", **HOSTILE}.items():
        with tempfile.TemporaryDirectory() as folder:
            path = config(Path(folder), interpreter_of(command))
            with Client([command, "serve", "--config", str(path)], environment()) as client:
                client.initialize()
                look(client)
                run(client, "1")
                took, begun = pinged(client, code)
        figures = [statistics.median(took), max(took)]
        rows.append([name, *(f"{1e3 * each:.1f}" for each in figures), f"{begun:.1f}"])
    return rows


def pinged(client: Client, code: str) -> tuple[list[float], float]:
    """The seconds of pings until the program ``code`` has ended (1 s without one), and those of it."""
    started, took, is_over = time.perf_counter(), [], False
    marks: list[bytes] = []
    if code:
        client.write(client.frame("tools/call", {"name": "run_code", "arguments": {"code": code}}))
        marks.append(b'"id":%d,' % client.number)
    while not is_over:
        begun = time.perf_counter()
        client.write(client.frame("ping", {}))
        mark = b'"id":%d,' % client.number
        while mark not in (line := client.line()[:100]):
            is_over = is_over or any(each in line for each in marks)
        took.append(time.perf_counter() - begun)
        is_over = is_over or (not code and begun - started > 1)
        time.sleep(PAUSE)
    return took, time.perf_counter() - started


def exits(command: str, count: int) -> collections.Counter[str]:
    """How often each exit code comes after a program: after the end of input, SIGTERM, and, each third time,
    after a worker of the sandbox was killed.
    """
    found: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = config(Path(folder), interpreter_of(command))
        for number in range(count):
            client = Client([command, "serve", "--config", str(path)], environment())
            client.initialize()
            run(client, "1")
            if number % 3 == 2:
                for worker in workers_of(client.pid):
                    os.kill(worker, signal.SIGKILL)
                try:
                    run(client, "1")
                except RefusedError:
                    found["a program that failed because its worker was killed"] += 1
            if number % 2:
                os.kill(client.pid, signal.SIGTERM)
            client.close()
            found[f"exit code {client.exit_code}"] += 1
    return found


def workers_of(parent: int) -> list[int]:
    """The processes of the sandbox that ``parent`` has started (Linux)."""
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        children = (task / "children").read_text().split()
        found += [int(each) for each in children if b"monty" in Path(f"/proc/{each}/cmdline").read_bytes()]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--exits", type=int, default=30)
    options = parser.parse_args()
    command = installed(options.mcpzip)
    print(table(["what", "least ms"], costs(command, options.rounds)), "\n")
    print("Pings of a client while its program runs, in ms; seconds of the program.\n")
    print(table(["the program has", "median", "longest", "seconds"], pings(command)), "\n")
    for what, times in exits(command, options.exits).items():
        print(f"{what}: {times}")


if __name__ == "__main__":
    main()
