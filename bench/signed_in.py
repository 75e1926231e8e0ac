"""Measures concurrent calls to a server that requires OAuth: four of a second each, compared with one,
through mcpzip and with the SDK's own provider.

    python -m bench.signed_in [--mcpzip PATH] [--rounds N]

The servers are `mcpzip-fake`'s, each behind an authorization server of its own; mcpzip is signed in with
`mcpzip auth login`. Every subject runs the whole time, and all alternate in every round. It reports and never
asserts.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.request import ProxyHandler, build_opener

from bench.client import Client
from bench.subjects import HERE, environment, installed, interpreter_of
from bench.tables import Samples, spread, table, times

ABREAST = 4
WORK = "work"
SCENARIO = {
    "tools": [{"name": WORK, "result": {"text": "done", "delay": 1.0}}],
    "oauth": {"access_seconds": 86_400},
}
WAYS = {
    "legacy, JSON": ("legacy", "--json-response"),
    "legacy, SSE": ("legacy",),
    "modern": ("modern",),
}
"""The eras of the server, and its options."""
MCPZIP, SDK = "mcpzip", "SDK's provider"
ONE, FOUR = "one call", "four at once"


class Caller(Protocol):
    """A client that is signed in to a server."""

    def calls(self, count: int) -> float:
        """The seconds of ``count`` calls that start together."""


@dataclass(frozen=True)
class Ours:
    """Through `mcpzip serve`."""

    client: Client
    server: str

    def calls(self, count: int) -> float:
        params = {"name": "execute_tool", "arguments": {"name": f"{self.server}__{WORK}", "arguments": {}}}
        return self.client.in_flight([self.client.frame("tools/call", params) for _ in range(count)], count)


@dataclass(frozen=True)
class Theirs:
    """`bench/sdk_client.py`."""

    process: "subprocess.Popen[str]"

    def calls(self, count: int) -> float:
        assert self.process.stdin
        assert self.process.stdout
        print(count, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline() or "nan")


@contextmanager
def running(argv: list[str]) -> "Iterator[subprocess.Popen[str]]":
    """A process with pipes, ended afterwards."""
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def protected(python: str, folder: Path, name: str, way: str) -> Iterator[str]:
    """A server behind OAuth; its URL. way: one of `WAYS`."""
    era, *options = WAYS[way]
    file = folder / f"{name}.json"
    file.write_text(json.dumps({**SCENARIO, "name": name, "era": era}))
    with running([python, "-m", "mcpzip_fakes", str(file), "--transport", "http", *options]) as process:
        assert process.stdout
        line = process.stdout.readline()
        if not line.startswith("listening "):
            raise SystemExit(f"The fake server did not start: {line}")
        yield line.split()[1]


def sign_in(command: str, config: Path, name: str) -> None:
    """`mcpzip auth login`; the sign-in page redirects at once. Raises SystemExit."""
    process = subprocess.Popen(
        [command, "auth", "login", name, "--no-browser", "--config", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    with process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("http"):
                build_opener(ProxyHandler({})).open(line.strip(), timeout=60).close()
                break
        said = process.stderr.read()
    if process.returncode:
        raise SystemExit(f"mcpzip auth login {name}: {said}")


@contextmanager
def everybody(command: str, folder: Path) -> Iterator[dict[tuple[str, str], Caller]]:
    """Both subjects, signed in, at each of `WAYS`."""
    python, callers = interpreter_of(command), dict[tuple[str, str], Caller]()
    with ExitStack() as stack:
        names = {way: f"s{number}" for number, way in enumerate(WAYS)}
        urls = {way: stack.enter_context(protected(python, folder, names[way], way)) for way in WAYS}
        config = folder / "config.json"
        servers = {names[way]: {"type": "http", "url": urls[way]} for way in WAYS}
        config.write_text(json.dumps({"mcpServers": servers}))
        for name in names.values():
            sign_in(command, config, name)
        client = stack.enter_context(Client([command, "serve", "--config", str(config)], environment()))
        client.initialize()
        for way, name in names.items():
            argv = [python, str(HERE / "sdk_client.py"), urls[way], WORK]
            callers[MCPZIP, way] = Ours(client, name)
            callers[SDK, way] = Theirs(stack.enter_context(running(argv)))
        yield callers


def measure(command: str, rounds: int) -> Samples:
    samples = Samples()
    with tempfile.TemporaryDirectory() as folder, everybody(command, Path(folder)) as callers:
        turns = list(callers.items())
        for number in range(rounds + 1):
            print(f"\rround {number} of {rounds}", end="", file=sys.stderr, flush=True)
            random.shuffle(turns)
            for (subject, way), caller in turns:
                one, four = caller.calls(1), caller.calls(ABREAST)
                if number:  # the first is to get warm
                    samples.add(f"{subject}: {way}", ONE, one)
                    samples.add(f"{subject}: {way}", FOUR, four)
        print(file=sys.stderr)
    return samples


def report(samples: Samples, rounds: int) -> str:
    rows = []
    for way in WAYS:
        for subject in (MCPZIP, SDK):
            one, four = (samples[f"{subject}: {way}", quantity] for quantity in (ONE, FOUR))
            rows.append([way, subject, spread(one, 1, 2), spread(four, 1, 2), times(four.per(one))])
    return "\n\n".join(
        (
            f"Calls of 1 s to a server that wants OAuth, in s: median (least) of {rounds} rounds.",
            table(["server", "client", ONE, FOUR, "four / one"], rows),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(report(measure(installed(options.mcpzip), options.rounds), options.rounds))


if __name__ == "__main__":
    main()
