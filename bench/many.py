"""Measures many servers at once: the time to the first search, the time until all are listed, and the loop's
longest turn.

    python -m bench.many [--mcpzip PATH] [--servers N] [--tools N]

The servers take 0.2 to 5 s to start, much of it processor time, and hold 50 to 300 MB each. First they are
started two at a time without mcpzip, for comparison; then in a first run of mcpzip without a catalog, then in
a second run with one. It reports and never asserts. Takes some minutes.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue

from bench.client import Client
from bench.subjects import HERE, environment, installed, interpreter_of
from bench.tables import table

_WARM = 10.0
"""Seconds of the second run, in which its servers are listed again."""
_EVERY = 1.0
_PATIENCE = 600.0


def argv_of(python: str, number: int, servers: int, tools: int) -> list[str]:
    """The command line of server ``number``; light and heavy ones in a fixed random order."""
    place = (number * 37 % servers) / max(servers - 1, 1)
    seconds = 0.2 * 25**place
    cpu, size = min(0.6 * seconds, 1.0), 50 + number * 53 % 251
    heavy = [f"{cpu:.2f}", f"{seconds - cpu:.2f}", str(size)]
    more = ["--seed", str(number), "--tools", str(tools)]
    return [python, "-I", "-S", str(HERE / "heavy.py"), *heavy, *more]


def two_at_a_time(commands: list[list[str]]) -> float:
    """Seconds until all were listed, each ended before the next."""
    waiting: SimpleQueue[list[str]] = SimpleQueue()
    for argv in commands:
        waiting.put(argv)

    def work() -> None:
        while True:
            try:
                argv = waiting.get_nowait()
            except Empty:
                return
            with Client(argv, environment()) as client:
                client.initialize()
                client.ask("tools/list", {})

    begun = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun


class Run:
    """One run of mcpzip, and its answers."""

    def __init__(self, python: str, config: Path, turns: Path) -> None:
        turns.unlink(missing_ok=True)
        self._turns = turns
        words = ["-m", "bench.turns", str(turns), "serve", "--config", str(config)]
        env = {**environment(), "PYTHONPATH": str(HERE.parent)}
        self.client = Client([python, *words], env)
        self.client.initialize()
        begun = time.perf_counter()
        self.first_text = self._search()
        self.first = time.perf_counter() - begun
        self.since_start = self.client.elapsed()
        self.slowest = 0.0

    def _search(self) -> str:
        arguments = {"query": "create an invoice for a customer"}
        content = self.client.call({"name": "search_tools", "arguments": arguments})["content"]
        return str(content[0]["text"])  # type: ignore[index]

    def search(self) -> None:
        begun = time.perf_counter()
        self._search()
        self.slowest = max(self.slowest, time.perf_counter() - begun)

    def listed(self) -> int:
        """The number of servers that are listed."""
        call = {"name": "execute_tool", "arguments": {"name": "proxy_status"}}
        text = str(self.client.call(call)["content"][0]["text"])  # type: ignore[index]
        return sum(", listed " in line for line in text.splitlines())

    def turns(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self._turns.read_text())
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--servers", type=int, default=80)
    parser.add_argument("--tools", type=int, default=40, help="of each server")
    options = parser.parse_args()
    python, many = interpreter_of(installed(options.mcpzip)), options.servers
    commands = [argv_of(python, number, many, options.tools) for number in range(many)]
    print(f"{many} servers, {options.tools} tools each; {os.cpu_count()} processors.", flush=True)
    reference = two_at_a_time(commands)
    with tempfile.TemporaryDirectory() as folder:
        config, turns = Path(folder) / "config.json", Path(folder) / "turns.json"
        named = {f"up{number}": {"command": a[0], "args": a[1:]} for number, a in enumerate(commands)}
        config.write_text(json.dumps({"mcpServers": named}))
        cold = Run(python, config, turns)
        with cold.client:
            while cold.listed() < many and cold.client.elapsed() < _PATIENCE:
                cold.search()
                time.sleep(_EVERY)
            listed = cold.client.elapsed()
            cold_turns = cold.turns()
        warm = Run(python, config, turns)
        with warm.client:
            while warm.client.elapsed() < _WARM:
                warm.search()
                time.sleep(_EVERY / 4)
            warm_turns = warm.turns()
    print(f"\nThe first answer:\n{cold.first_text}\n")
    rows = [
        ["first search, cold", f"{cold.first:.2f} s", "2 s"],
        ["… since the process was started", f"{cold.since_start:.2f} s", ""],
        ["later searches, while servers start, at most", f"{cold.slowest:.2f} s", "2 s"],
        ["all listed", f"{listed:.1f} s", f"{2 * reference:.1f} s"],
        ["… started two at a time", f"{reference:.1f} s", ""],
        ["first search, warm", f"{warm.first:.2f} s", "0.3 s"],
        ["later searches, warm, at most", f"{warm.slowest:.2f} s", "0.3 s"],
    ]
    for name, found in (("cold", cold_turns), ("warm", warm_turns)):
        rows.append([f"longest turn, {name}, wall", f"{found['wall']} ms", "50 ms"])
        rows.append([f"longest turn, {name}, processor", f"{found['cpu']} ms", "50 ms"])
    print(table(["", "measured", "promised"], rows))
    for name, found in (("cold", cold_turns), ("warm", warm_turns)):
        print(f"\n{name}: the longest ran {found['wall_ran']}; by processor {found['cpu_ran']}")


if __name__ == "__main__":
    main()
