"""Measures the time that the proxy adds to a call over HTTP, compared with a direct call over HTTP. Between
pipes: `python -m bench --only latency`.

    python -m bench.latency_http [--mcpzip PATH] [--rounds N]

Every subject runs the whole time, and all alternate in every round. It reports and never asserts.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.client import Client
from bench.http_client import HttpClient
from bench.lives import Piped, Restarted, mortal, serving
from bench.subjects import environment, installed, interpreter_of
from bench.tables import Samples, Series, spread, table, times

MEGABYTE = 1_000_000
NEVER = 1 << 60
"""Calls after which the upstream over HTTP may crash."""
STRAIGHT = "direct, HTTP"
WEB_WAYS = (STRAIGHT, "HTTP → stdio", "HTTP → stdio, modern", "stdio → HTTP", "HTTP → HTTP")
WEB_PROBES = (("100 B", 100, 100), ("1 MB both ways", MEGABYTE, 3))
"""Quantity, bytes there and back, calls a round."""


def measure(command: str, rounds: int) -> Samples:
    """Measures the same upstream directly and through mcpzip, over each transport."""
    python, samples = interpreter_of(command), Samples()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        argv = mortal(python, NEVER, Path(os.devnull))
        upstream = Restarted(argv)
        stack.callback(upstream.stop)
        url = f"http://127.0.0.1:{upstream.port}/mcp"
        servers = {"piped": {"command": argv[0], "args": argv[1:]}, "web": {"type": "http", "url": url}}
        config = Path(folder) / "config.json"
        config.write_text(json.dumps({"mcpServers": servers}))
        _, ours = stack.enter_context(serving(command, config))
        piped = stack.enter_context(Client([command, "serve", "--config", str(config)], environment()))
        piped.initialize()
        legacy, modern, straight = (
            HttpClient(ours, "legacy"),
            HttpClient(ours, "modern"),
            HttpClient(url, "legacy"),
        )
        talks: tuple[HttpClient | Piped, ...] = (straight, legacy, modern, Piped(piped), legacy)
        tools = ("echo", "piped__echo", "piped__echo", "web__echo", "web__echo")
        ways = list(zip(WEB_WAYS, talks, tools, strict=True))
        for client in (straight, legacy, modern):
            client.begin()
        for number in range(rounds + 1):
            print(f"\rHTTP, round {number} of {rounds}", end="", file=sys.stderr, flush=True)
            for quantity, size, count in WEB_PROBES:
                random.shuffle(ways)
                for way, talk, tool in ways:
                    took = Series(tuple(_asked(talk, tool, "x" * size) for _ in range(count)))
                    if number:  # the first is to get warm
                        samples.add(way, quantity, took.median)
        print(file=sys.stderr)
    return samples


def _asked(talk: HttpClient | Piped, tool: str, text: str) -> float:
    """The seconds of one call."""
    arguments: dict[str, object] = {"text": text}
    if "__" in tool:
        tool, arguments = "execute_tool", {"name": tool, "arguments": arguments}
    begun = time.perf_counter()
    said, failed = talk.call(tool, arguments)
    took = time.perf_counter() - begun
    if failed or not said.endswith(text):
        raise SystemExit(f"{tool}: {said[:300]!r}")
    return took


def report(samples: Samples, rounds: int) -> str:
    rows = []
    for way in WEB_WAYS:
        figures = []
        for quantity, _, _ in WEB_PROBES:
            figures += [
                spread(samples[way, quantity], 1e-3, 2),
                times(samples[way, quantity].per(samples[STRAIGHT, quantity])),
            ]
        rows.append([way, *figures])
    head = ["client → upstream"]
    for quantity, _, _ in WEB_PROBES:
        head += [f"{quantity} (ms)", "/ direct"]
    return "\n\n".join(
        (f"One call at a time where a leg is HTTP, median (least) of {rounds} rounds.", table(head, rows))
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    print(report(measure(installed(options.mcpzip), options.rounds), options.rounds))


if __name__ == "__main__":
    main()
