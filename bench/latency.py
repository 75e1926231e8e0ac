"""Measures the time that the proxy adds to a call: over stdio, compared with a direct call and with a relay
that only copies bytes; over HTTP, compared with a direct call over HTTP.

    python -m bench.latency [--mcpzip PATH] [--rounds N]

Every subject runs the whole time, and all alternate in every round. It reports and never asserts.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.client import Client
from bench.http_client import HttpClient
from bench.lives import Piped, Restarted, mortal, serving
from bench.processes import cpu_seconds
from bench.subjects import HERE, Site, environment, installed, interpreter_of, upstream_argv
from bench.tables import Samples, Series, spread, table, times

DIRECT, RELAY, MCPZIP = "direct", "bare relay", "mcpzip"
SMALL, REPLY, BOTH, PARALLEL, RATE = "100 B", "1 MB back", "1 MB both ways", "64 × 50 ms", "64 in flight"
SMALL_CPU, LARGE_CPU = "processor, 100 B", "processor, 1 MB back"
TIMES = (SMALL, REPLY, BOTH, PARALLEL, RATE)
SHOWN = (
    (SMALL, "ms, one call at a time"),
    (RATE, "ms a call"),
    (REPLY, "ms"),
    (BOTH, "ms"),
    (PARALLEL, "ms in all"),
    (SMALL_CPU, "ms a call"),
    (LARGE_CPU, "ms a call"),
)
MEGABYTE = 1_000_000
WINDOW = 64
NEVER = 1 << 60
"""Calls after which the upstream over HTTP may crash."""
STRAIGHT = "direct, HTTP"
WEB_WAYS = (STRAIGHT, "HTTP → stdio", "HTTP → stdio, modern", "stdio → HTTP", "HTTP → HTTP")
WEB_PROBES = ((SMALL, 100, 100), (BOTH, MEGABYTE, 3))
"""Quantity, bytes there and back, calls a round."""


@dataclass(frozen=True)
class Subject:
    """A way to the upstream. ``dress``: a tool and its arguments -> the params of `tools/call`."""

    name: str
    client: Client
    dress: Callable[[str, dict[str, object]], object]

    def ask(self, tool: str, arguments: dict[str, object]) -> float:
        """The seconds of one call."""
        frame = self.client.frame("tools/call", self.dress(tool, arguments))
        begun = time.perf_counter()
        self.client.write(frame)
        line = self.client.line()
        took = time.perf_counter() - begun
        if b'"result"' not in line[:60] or b'"isError":true' in line[-200:]:
            raise SystemExit(f"{self.name}: {line[:300]!r}")
        return took

    def frames(self, tool: str, arguments: dict[str, object], count: int) -> list[bytes]:
        return [self.client.frame("tools/call", self.dress(tool, arguments)) for _ in range(count)]

    def cpu(self) -> float | None:
        return cpu_seconds(self.client.pid)


def plain(tool: str, arguments: dict[str, object]) -> object:
    return {"name": tool, "arguments": arguments}


def wrapped(tool: str, arguments: dict[str, object]) -> object:
    return {"name": "execute_tool", "arguments": {"name": f"up0__{tool}", "arguments": arguments}}


def measure(command: str, rounds: int) -> Samples:
    python, samples = interpreter_of(command), Samples()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        site = Site(Path(folder) / "site", command, servers=2, tools=500)
        site.warm()
        upstream = upstream_argv(python, tools=250)
        relay = [python, "-I", "-S", str(HERE / "relay.py"), *upstream]
        subjects = [
            Subject(DIRECT, stack.enter_context(Client(upstream, environment())), plain),
            Subject(RELAY, stack.enter_context(Client(relay, environment())), plain),
            Subject(MCPZIP, stack.enter_context(site.open()), wrapped),
        ]
        for subject in subjects:
            subject.client.initialize()
            for _ in range(200):
                subject.ask("echo", {"payload": "warm"})
            subject.ask("blob", {"bytes": MEGABYTE})
        for number in range(rounds):
            print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
            for probe in (_small, _reply, _both, _parallel, _rate):
                random.shuffle(subjects)
                for subject in subjects:
                    probe(subject, samples)
        print(file=sys.stderr)
    return samples


def _small(subject: Subject, samples: Samples) -> None:
    arguments: dict[str, object] = {"payload": "x" * 100}
    _repeat(subject, samples, SMALL, SMALL_CPU, 300, "echo", arguments)


def _reply(subject: Subject, samples: Samples) -> None:
    _repeat(subject, samples, REPLY, LARGE_CPU, 10, "blob", {"bytes": MEGABYTE})


def _both(subject: Subject, samples: Samples) -> None:
    _repeat(subject, samples, BOTH, "", 5, "echo", {"payload": "y" * MEGABYTE})


def _repeat(
    subject: Subject,
    samples: Samples,
    quantity: str,
    cpu: str,
    count: int,
    tool: str,
    arguments: dict[str, object],
) -> None:
    before = subject.cpu()
    took = Series(tuple(subject.ask(tool, arguments) for _ in range(count)))
    after = subject.cpu()
    samples.add(subject.name, quantity, took.median)
    if cpu and before is not None and after is not None:
        samples.add(subject.name, cpu, (after - before) / count)


def _parallel(subject: Subject, samples: Samples) -> None:
    frames = subject.frames("sleep", {"ms": 50}, WINDOW)
    samples.add(subject.name, PARALLEL, subject.client.in_flight(frames, WINDOW))


def _rate(subject: Subject, samples: Samples) -> None:
    frames = subject.frames("echo", {"payload": "x" * 100}, 2000)
    samples.add(subject.name, RATE, subject.client.in_flight(frames, WINDOW) / len(frames))


def measure_web(command: str, rounds: int) -> Samples:
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


def report_web(samples: Samples, rounds: int) -> str:
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


@dataclass(frozen=True)
class Compared:
    """One quantity of the three subjects, in seconds."""

    direct: Series
    relay: Series
    ours: Series

    @property
    def added(self) -> tuple[float, float]:
        """The time that the proxy adds, by medians and by minima."""
        return self.ours.median - self.direct.median, self.ours.least - self.direct.least

    @property
    def again(self) -> tuple[float, float]:
        """The added time, as a share of the direct time."""
        median, least = self.ours.per(self.direct)
        return median - 1, least - 1

    @property
    def beyond_relay(self) -> tuple[float, float]:
        """Its time as a multiple of the bare relay's."""
        return self.ours.per(self.relay)


def report(samples: Samples, rounds: int) -> str:
    ways = (DIRECT, RELAY, MCPZIP)
    rows = [
        [f"{quantity} ({shown})", *(spread(samples.get(way, quantity), 1e-3, 3) for way in ways)]
        for quantity, shown in SHOWN
    ]
    of = {quantity: Compared(*(samples[way, quantity] for way in ways)) for quantity in TIMES}
    rate, parallel = of[RATE], of[PARALLEL]
    added, least = (f"{seconds * 1e3:.3f}" for seconds in of[SMALL].added)
    figures = [
        ["100 B: added", f"{added} ({least}) ms", "≤ 0.2 ms"],
        ["100 B: time / bare relay", times(of[SMALL].beyond_relay), "–"],
        [
            "64 in flight: calls a second",
            f"{1 / rate.ours.median:,.0f} ({1 / rate.ours.least:,.0f})",
            "≥ 8,000",
        ],
        ["64 in flight: calls a second / direct", times(rate.direct.per(rate.ours)), "–"],
        ["1 MB back: added / direct", times(of[REPLY].again), "≤ 1"],
        ["1 MB both ways: added / direct", times(of[BOTH].again), "≤ 1"],
        [
            "64 calls of 50 ms: time / 50 ms",
            times((parallel.ours.median / 0.05, parallel.ours.least / 0.05)),
            "≤ 1.2",
        ],
        ["64 calls of 50 ms: time / direct", times(parallel.ours.per(parallel.direct)), "–"],
    ]
    return "\n\n".join(
        (
            f"Medians (least) of {rounds} rounds in turns; a round's figure is the median of its calls.",
            table(["", *ways], rows),
            "Ratios, of the medians (of the minima).",
            table(["what", "measured", "budget"], figures),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    command, rounds = installed(options.mcpzip), options.rounds
    print(report(measure(command, rounds), rounds), end="\n\n")
    print(report_web(measure_web(command, rounds), rounds))


if __name__ == "__main__":
    main()
