"""Measures the memory of `mcpzip serve`, and lists its child processes, with 0, 500 and 5,000 tools on stdio
upstreams.

    python -m bench.memory [--mcpzip PATH] [--rounds N] [--servers N]

A search and a call come first, so that everything is loaded. It reports and never asserts.
"""

import argparse
import tempfile
from pathlib import Path

from bench.client import Client
from bench.processes import children, resident_bytes
from bench.subjects import HERE, Site, environment, installed, interpreter_of
from bench.tables import Samples, spread, table, times
from bench.upstream import name_of

SIZES = (0, 500, 5_000)
BARE, EVENT_LOOP, SDK = "bare interpreter", "asyncio", "empty server on the SDK"
FIRST, SECOND = "first start", "with snapshot"
MEGABYTE = 1e6


def mcpzip(site: Site, size: int, samples: Samples, when: str) -> list[str]:
    """Measures one process; returns its children's command lines, without their folders."""
    with site.open() as client:
        client.initialize()
        client.call({"name": "execute_tool", "arguments": {"name": "proxy_refresh"}})
        client.call({"name": "search_tools", "arguments": {"query": "archive the invoice of a customer"}})
        if size:
            client.call({"name": "execute_tool", "arguments": {"name": f"up0__{name_of(0)}"}})
        _note(client, f"{size:,} tools", when, samples)
        return [Path(command.split()[0]).name for command in children(client.pid) or []]


def floor(python: str, samples: Samples) -> None:
    for subject, code in ((BARE, "import sys"), (EVENT_LOOP, "import sys, asyncio, json, subprocess")):
        with Client(
            [python, "-c", f"{code}; print('{{}}', flush=True); sys.stdin.read()"], environment()
        ) as client:
            client.line()
            _note(client, subject, FIRST, samples)
    with Client([python, str(HERE / "sdk_server.py")], environment()) as client:
        client.initialize()
        client.ask("tools/list", {})
        _note(client, SDK, FIRST, samples)


def _note(client: Client, subject: str, when: str, samples: Samples) -> None:
    resident = resident_bytes(client.pid)
    if resident is None:
        raise SystemExit("This system does not say what memory a process takes.")
    samples.add(subject, when, resident)


def measure(command: str, rounds: int, servers: int) -> tuple[Samples, dict[int, list[str]]]:
    samples, started = Samples(), {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            floor(interpreter_of(command), samples)
            for size in SIZES:
                site = Site(Path(folder) / str(size), command, servers=servers if size else 0, tools=size)
                site.forget()
                mcpzip(site, size, samples, FIRST)
                started[size] = mcpzip(site, size, samples, SECOND)
    return samples, started


def report(samples: Samples, started: dict[int, list[str]], rounds: int, servers: int) -> str:
    rows = [
        [subject, spread(samples[subject, FIRST], MEGABYTE), "–", "–"] for subject in (BARE, EVENT_LOOP, SDK)
    ]
    rows += [
        [
            f"mcpzip, {size:,} tools",
            *(spread(samples[f"{size:,} tools", when], MEGABYTE) for when in (FIRST, SECOND)),
            _counted(started[size]),
        ]
        for size in SIZES
    ]
    small, large = samples["500 tools", SECOND], samples["5,000 tools", SECOND]
    ratios = [
        ["500 tools", spread(small, MEGABYTE) + " MB", "≤ 50 MB"],
        ["500 tools / asyncio", times(small.per(samples[EVENT_LOOP, FIRST])), "–"],
        ["500 tools / empty server on the SDK", times(small.per(samples[SDK, FIRST])), "–"],
        ["5,000 tools / 500 tools", times(large.per(small)), "≤ 1.3"],
    ]
    return "\n\n".join(
        (
            f"Resident MB (1,000,000 bytes), median (least) of {rounds} rounds; {servers} upstreams.",
            table(["subject", FIRST, SECOND, "its children"], rows),
            table(["what", "measured", "budget"], ratios),
        )
    )


def _counted(commands: list[str]) -> str:
    names = sorted(set(commands))
    return ", ".join(f"{commands.count(name)} × {name}" for name in names) or "none"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--servers", type=int, default=5)
    options = parser.parse_args()
    samples, started = measure(installed(options.mcpzip), options.rounds, options.servers)
    print(report(samples, started, options.rounds, options.servers))


if __name__ == "__main__":
    main()
