"""Measures the time from spawn to the first answers of `mcpzip serve`, compared with a bare interpreter and
an empty SDK server.

    python -m bench.startup [--mcpzip PATH] [--rounds N] [--tools N] [--servers N]

All alternate in every round. It reports and never asserts.
"""

import argparse
import random
import subprocess
import tempfile
import time
from pathlib import Path

from bench.client import Client
from bench.subjects import HERE, Site, environment, installed, interpreter_of
from bench.tables import Samples, spread, table, times
from bench.upstream import name_of

BARE, SDK = "python -c pass", "empty server on the SDK"
QUICK, SILENT, NEW = "mcpzip, quick upstreams", "mcpzip, silent upstreams", "mcpzip, first start ever"
READY, LIST, SEARCH, CALL = "initialize", "tools/list", "search_tools", "execute_tool"
BUDGETS = (
    (READY, QUICK, BARE, "≤ 3"),
    (READY, SILENT, BARE, "≤ 3"),
    (READY, QUICK, SDK, "≤ 0.25"),
    (LIST, QUICK, BARE, "≤ 3"),
    (LIST, SILENT, BARE, "≤ 3"),
    (LIST, QUICK, SDK, "≤ 0.25"),
    (SEARCH, SILENT, SDK, "–"),
    (CALL, QUICK, SDK, "–"),
)


def bare(python: str, samples: Samples) -> None:
    begun = time.perf_counter()
    subprocess.run([python, "-c", "pass"], check=True, env=environment())
    samples.add(BARE, READY, time.perf_counter() - begun)
    # There is nothing to list in it, but both are held against the same: a bare interpreter.
    samples.add(BARE, LIST, time.perf_counter() - begun)


def sdk(python: str, samples: Samples) -> None:
    with Client([python, str(HERE / "sdk_server.py")], environment()) as client:
        _opening(client, SDK, samples)
        for quantity in (SEARCH, CALL):  # it has neither: its last answer is the mark
            samples.add(SDK, quantity, client.elapsed())


def mcpzip(site: Site, subject: str, samples: Samples) -> None:
    with site.open() as client:
        _opening(client, subject, samples)
        client.call({"name": "search_tools", "arguments": {"query": "archive the invoice of a customer"}})
        samples.add(subject, SEARCH, client.elapsed())
        if subject != SILENT:
            client.call(
                {"name": "execute_tool", "arguments": {"name": f"up0__{name_of(0)}", "arguments": {}}}
            )
            samples.add(subject, CALL, client.elapsed())


def _opening(client: Client, subject: str, samples: Samples) -> None:
    client.initialize()
    samples.add(subject, READY, client.elapsed())
    client.ask("tools/list", {})
    samples.add(subject, LIST, client.elapsed())


def measure(command: str, rounds: int, tools: int, servers: int) -> Samples:
    """Every subject once a round, in a random order."""
    python, samples = interpreter_of(command), Samples()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder) / "warm", command, servers=servers, tools=tools)
        new = Site(Path(folder) / "new", command, servers=servers, tools=tools)
        site.warm()

        def silent() -> None:
            site.silent(True)
            mcpzip(site, SILENT, samples)
            site.silent(False)

        def first() -> None:
            new.forget()
            mcpzip(new, NEW, samples)

        turns = [
            lambda: bare(python, samples),
            lambda: sdk(python, samples),
            lambda: mcpzip(site, QUICK, samples),
            silent,
            first,
        ]
        for _ in range(rounds):
            random.shuffle(turns)
            for turn in turns:
                turn()
    return samples


def report(samples: Samples, rounds: int, tools: int, servers: int) -> str:
    quantities = (READY, LIST, SEARCH, CALL)
    rows = []
    for subject in (BARE, SDK, QUICK, SILENT, NEW):
        shown = [READY] if subject == BARE else [READY, LIST] if subject == SDK else quantities
        rows.append(
            [subject, *(spread(samples.get(subject, q) if q in shown else None, 1e-3) for q in quantities)]
        )
    ratios = [
        [quantity, f"{subject} / {to}", times(samples[subject, quantity].per(samples[to, quantity])), budget]
        for quantity, subject, to, budget in BUDGETS
    ]
    return "\n\n".join(
        (
            f"Milliseconds from spawn to the answer, median (least) of {rounds} rounds in turns; "
            f"{tools} tools on {servers} upstreams.",
            table(["subject", *quantities], rows),
            "Ratios, of the medians (of the minima); search and call against the SDK server's `tools/list`.",
            table(["until", "ratio", "measured", "budget"], ratios),
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
