"""Measures what a kept result costs, beside the same result passed on whole.

    python -m bench.kept_results [--mcpzip PATH] [--rounds N]

All ways alternate in every round: the upstream alone, a proxy that keeps no results (``"results": "off"``),
and one that keeps them, as by default. A time is from the request to the last byte of the answer; nobody
parses it. Beside them is the time in which `json.loads` reads the answer. It reports and never asserts.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.client import Client
from bench.subjects import HERE, environment, installed, interpreter_of
from bench.tables import Samples, Series, spread, table, times

SIZES = (("1 kB", 1_000, 40), ("100 kB", 100_000, 10), ("1 MB", 1_000_000, 4), ("10 MB", 10_000_000, 1))
"""Name, bytes of the text, calls a round. The first is not kept."""
KINDS = ("log", "rows")
DIRECT, WHOLE, KEPT, ALL, PART, SCAN = "no proxy", "whole", "kept", "{}", "a part", "json.loads"
_HANDLE = re.compile(rb"Kept as (r[0-9]+-[a-z2-7]+)")


def measure(command: str, rounds: int) -> Samples:
    """The seconds of each way, kind and size."""
    python, samples = interpreter_of(command), Samples()
    argv = [python, "-I", "-S", str(HERE / "large_upstream.py")]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        clients = {DIRECT: stack.enter_context(Client(argv))}
        for way, settings in ((WHOLE, {"results": "off"}), (KEPT, {})):
            config = Path(folder) / f"{way}.json"
            servers = {"up": {"command": argv[0], "args": argv[1:]}}
            config.write_text(json.dumps({"mcpServers": servers, "shared": False, **settings}))
            proxy = Client([command, "serve", "--config", str(config)], environment())
            clients[way] = stack.enter_context(proxy)
        for client in clients.values():
            client.initialize()
        for number in range(rounds + 1):
            print(f"\rround {number} of {rounds}", end="", file=sys.stderr, flush=True)
            for kind in KINDS:
                for name, size, count in SIZES:
                    ways = list(clients)
                    random.shuffle(ways)
                    for way in ways:
                        took = [_round(clients[way], way, kind, size) for _ in range(count)]
                        for part in took[0] if number else ():  # the first is to get warm
                            series = Series(tuple(times[part] for times in took))
                            samples.add(part, f"{kind} {name}", series.median)
        print(file=sys.stderr)
    return samples


def _round(client: Client, way: str, kind: str, size: int) -> dict[str, float]:
    """The seconds of a call; if its result was kept, also of reading all of it and a part."""
    arguments: dict[str, object] = {"bytes": size}
    if way == DIRECT:
        took, answer = _asked(client, {"name": kind, "arguments": arguments})
        begun = time.perf_counter()
        text = json.loads(answer)["result"]["content"][0]["text"]
        if kind == "rows":
            json.loads(text)
        return {way: took, SCAN: time.perf_counter() - begun}
    took, answer = _executed(client, f"up__{kind}", arguments)
    match = _HANDLE.search(answer[:1_000])
    if (match is not None) != (way == KEPT and size > 1_000):
        raise SystemExit(f"{way}, {size} bytes: {answer[:300]!r}")
    if match is None:
        return {way: took}
    handle = match[1].decode()
    everything, whole = _executed(client, handle, {})
    if len(whole) < size:
        raise SystemExit(f"{size} bytes: the whole has {len(whole)}")
    part: dict[str, object] = {"tail": 20} if kind == "log" else {"path": "[0:20].number"}
    return {way: took, ALL: everything, PART: _executed(client, handle, part)[0]}


def _executed(client: Client, name: str, arguments: dict[str, object]) -> tuple[float, bytes]:
    return _asked(client, {"name": "execute_tool", "arguments": {"name": name, "arguments": arguments}})


def _asked(client: Client, params: object) -> tuple[float, bytes]:
    """The seconds of a call, and the answer's line."""
    frame = client.frame("tools/call", params)
    begun = time.perf_counter()
    client.write(frame)
    line = client.line()
    while b'"id"' not in line[:40]:  # a notification
        line = client.line()
    return time.perf_counter() - begun, line


def report(samples: Samples, rounds: int) -> str:
    """The table: milliseconds, and ratios to the result passed on whole."""
    rows = []
    for kind in KINDS:
        for name, _, _ in SIZES:
            quantity = f"{kind} {name}"
            whole = samples[WHOLE, quantity]
            row = [f"{kind}, {name}"]
            for way in (DIRECT, SCAN, WHOLE, KEPT, PART, ALL):
                series = samples.get(way, quantity)
                row.append(spread(series, 1e-3, 2))
                if way in (KEPT, ALL):
                    row.append("–" if series is None else times(series.per(whole)))
            rows.append(row)
    head = [
        "result",
        DIRECT,
        SCAN,
        WHOLE,
        KEPT,
        "kept / whole",
        "then a part",
        "then all of it",
        "all / whole",
    ]
    return "\n\n".join(
        (f"Milliseconds, median (least) of {rounds} rounds; ratios by both.", table(head, rows))
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(report(measure(installed(options.mcpzip), options.rounds), options.rounds))


if __name__ == "__main__":
    main()
