"""Measures what pins cost a listing: comparing it with what was approved, and deciding about it.

    python -m bench.pins [--tools N] [--rounds N]

The rules: processor time counts, and the minimum of the rounds is told, because other programs use the
machine too. Each round is a new process as far as pins are concerned: it reads the file again. It reports and
never asserts.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.tables import table
from mcpzip.catalog import Catalog, Listed
from mcpzip.config.reading import parse
from mcpzip.pins.decisions import Decisions

CHANGED = 100
"""Tools of which one word changes."""


def tools(count: int, word: str = "useful") -> list[bytes]:
    """Definitions of about 1 KB, as servers send them."""
    return [
        json.dumps(
            {
                "name": f"tool_{number}",
                "description": f"Does something {word} with the things of number {number}. " * 3,
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        f"parameter_{key}": {"type": "string", "description": "What it is to be done with."}
                        for key in range(8)
                    },
                    "required": ["parameter_0"],
                },
            },
            separators=(",", ":"),
        ).encode()
        for number in range(count)
    ]


def spaced(raw: bytes) -> bytes:
    """The same JSON in other bytes."""
    return json.dumps(json.loads(raw)).encode()


def measure(count: int, rounds: int) -> list[tuple[str, float]]:
    """The processor time of each kind of listing, in milliseconds."""
    raws = tools(count)
    others = [*tools(min(CHANGED, count), "handy"), *raws[CHANGED:]]
    found: dict[str, float] = {}

    def take(what: str, listing: list[bytes], prepare: Callable[[Path], None]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = parse(b'{"mcpServers":{"shop":{"command":"x"}}}', str(Path(folder) / "config.json"), {})
            prepare(Path(folder))
            decisions = Decisions(config, Catalog)
            update = Listed("shop", tuple(listing), 1.0)
            _ = update.record
            begin = time.thread_time()
            decisions.admit(update, None)
            took = 1000 * (time.thread_time() - begin)
            found[what] = min(took, found.get(what, took))

    def pinned(folder: Path) -> None:
        config = parse(b'{"mcpServers":{"shop":{"command":"x"}}}', str(folder / "config.json"), {})
        Decisions(config, Catalog).admit(Listed("shop", tuple(raws), 1.0), None)

    for _ in range(rounds):
        take(f"{count:,} tools at the first sight", raws, lambda folder: None)
        take(f"{count:,} tools, nothing changed", raws, pinned)
        take(f"{count:,} tools, other bytes of the same JSON", [spaced(raw) for raw in raws], pinned)
        take(f"{count:,} tools, of which {min(CHANGED, count)} changed", others, pinned)
    return list(found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = [[what, f"{took:.1f}"] for what, took in measure(options.tools, options.rounds)]
    print(table(["listing", "processor time, ms"], rows))


if __name__ == "__main__":
    main()
