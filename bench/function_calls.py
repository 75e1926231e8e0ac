"""Counts what a call of 100 B costs the processes of mcpzip: function calls, turns of the event loop, system
calls.

    python -m bench.function_calls [--mcpzip PATH] [--calls N]

The rule: counts are the same on a busy machine. Each is the difference of two runs, one of which has more
calls, so that starts and ends don't count. It reports and never asserts. POSIX.
"""

import argparse
import pstats
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench.client import Client
from bench.daemons import daemon_of, within
from bench.subjects import HERE, Site, environment, installed, interpreter_of
from bench.tables import table

PARAMS = {"name": "execute_tool", "arguments": {"name": "up0__echo", "arguments": {"payload": "x" * 100}}}
ALL, OURS, WAITS = "function calls", "… of functions in Python", "waits for input (turns of the event loop)"
SYSTEM = "other system calls"
_WAITS = ("'poll' of 'select.", "'control' of 'select.kqueue'")
_SYSTEM = ("posix.read", "posix.write", "posix.wait", "'recv' of '_socket", "'send' of '_socket")
_PATIENCE = 20.0


def counts_in(file: Path) -> Counter[str]:
    """What a profile says."""
    found: Counter[str] = Counter()
    for (module, _, name), (_, calls, *_) in pstats.Stats(str(file)).stats.items():  # type: ignore[attr-defined]
        found[ALL] += calls
        found[OURS] += 0 if module == "~" else calls
        found[WAITS] += calls if any(one in name for one in _WAITS) else 0
        found[SYSTEM] += calls if any(one in name for one in _SYSTEM) else 0
    return found


class Counting:
    """Runs of the processes of one site."""

    def __init__(self, site: Site, folder: Path) -> None:
        self._site, self._folder = site, folder

    def alone(self, calls: int) -> Counter[str]:
        """Of `mcpzip serve --no-daemon`."""
        file = self._folder / "alone"
        with self._client(file, daemon=False) as client:
            _call(client, calls)
        return counts_in(file)

    def behind_a_daemon(self, calls: int) -> Counter[str]:
        """Of `mcpzip serve`, while a daemon does the work."""
        file = self._folder / "shim"
        with daemon_of(self._site.config) as daemon, self._site.open(daemon=True) as first:
            first.initialize()
            within(_PATIENCE, lambda: daemon.pid is not None)
            with self._client(file, daemon=True) as client:
                _call(client, calls)
        return counts_in(file)

    def daemon(self, calls: int) -> Counter[str]:
        """Of the daemon."""
        file = self._folder / "daemon"
        argv = self._argv(file, ["daemon", "run", "--config", str(self._site.config)])
        with daemon_of(self._site.config) as daemon:
            process = subprocess.Popen(
                argv, env=environment(daemon=True), cwd=HERE.parent, stdout=subprocess.DEVNULL
            )
            within(_PATIENCE, lambda: daemon.pid is not None)
            with self._site.open(daemon=True) as client:
                client.initialize()
                _call(client, calls)
        process.wait(_PATIENCE)
        return counts_in(file)

    def _client(self, file: Path, *, daemon: bool) -> Client:
        argv = self._argv(file, self._site.argv[1:])
        client = Client(argv, environment(daemon=daemon), cwd=HERE.parent)
        client.initialize()
        return client

    def _argv(self, file: Path, words: list[str]) -> list[str]:
        return [interpreter_of(self._site.mcpzip), "-m", "bench.counted", str(file), *words]


def _call(client: Client, calls: int) -> None:
    for _ in range(calls):
        client.call(PARAMS)


def per_call(count: Callable[[int], Counter[str]], calls: int) -> dict[str, float]:
    """What one call costs."""
    few, many = count(calls), count(2 * calls)
    return {quantity: (many[quantity] - few[quantity]) / calls for quantity in (ALL, OURS, WAITS, SYSTEM)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--calls", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder) / "site", installed(options.mcpzip), servers=2, tools=100)
        site.warm()
        counting = Counting(site, Path(folder))
        counts = [
            per_call(one, options.calls)
            for one in (counting.alone, counting.behind_a_daemon, counting.daemon)
        ]
    print(
        table(
            ["a call of 100 B", "`--no-daemon`", "`mcpzip serve`, daemon", "the daemon"],
            [
                [quantity, *(f"{one[quantity]:.1f}" for one in counts)]
                for quantity in (ALL, OURS, WAITS, SYSTEM)
            ],
        )
    )


if __name__ == "__main__":
    main()
