"""Measures how a hostile server affects calls to another one: their time, and the memory.

    python -m bench.lag [--mcpzip PATH] [--seconds N] [ATTACK…]

Each attack has a `mcpzip serve` of its own, with the hostile server and a good one, which is called
continuously. It reports and never asserts; the promise is 100 ms and 200 MB (docs/security.md).
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from bench.client import Client
from bench.processes import resident_bytes
from bench.subjects import environment, installed, interpreter_of
from bench.tables import table

ATTACKS: dict[str, dict[str, object]] = {
    "none": {},
    "schema: references": {"kind": "schema-bomb", "shape": "refs"},
    "schema: allOf": {"kind": "schema-bomb", "shape": "all-of", "size": 5_000},
    "schema: pointer": {"kind": "schema-bomb", "shape": "pointer", "size": 900_000, "count": 1},
    "schema: anchors": {"kind": "schema-bomb", "shape": "anchor", "size": 10_000},
    "a name of 300,000 characters": {"kind": "long-name"},
    "pages without end": {"kind": "endless-pages"},
    "a reply of 1 GB": {"kind": "endless", "tool": "pay"},
    "200,000 log messages": {"kind": "flood", "what": "log", "count": 200_000},
    "200,000 progress messages": {"kind": "flood", "count": 200_000},
    "20,000 pings": {"kind": "flood", "what": "ping", "count": 20_000},
    "a result of 200,000 members": {"kind": "many-keys", "count": 200_000},
}
"""Name -> the server's fault of `mcpzip-fake`."""

PAUSE = 0.002
"""Seconds between two calls to the good server."""
_SEARCH = {"name": "search_tools", "arguments": {"query": "pay a bill"}}
_LOOK = {"name": "execute_tool", "arguments": {"name": "bank__look", "arguments": {"n": 1}}}
_PAY = {"name": "execute_tool", "arguments": {"name": "evil__pay", "timeout": 30}}


def attacked(folder: Path, command: str, fault: dict[str, object], seconds: float) -> tuple[list[float], int]:
    """The seconds of each call to the good server, and the maximum increase of memory in bytes."""
    config = _config(folder, interpreter_of(command), fault)
    with Client([command, "serve", "--config", str(config)], environment()) as client:
        client.initialize()
        client.call(_LOOK)
        before = most = resident_bytes(client.pid) or 0
        took = []
        for hostile in (_SEARCH, {**_PAY, "_meta": {"progressToken": "pay"}}):
            client.write(client.frame("tools/call", hostile))
            until = time.perf_counter() + seconds / 2
            while time.perf_counter() < until:
                begun = time.perf_counter()
                client.write(client.frame("tools/call", _LOOK))
                mark = b'"id":%d,' % client.number
                while mark not in client.line()[:100]:
                    pass  # what the hostile server says
                took.append(time.perf_counter() - begun)
                most = max(most, resident_bytes(client.pid) or 0)
                time.sleep(PAUSE)
        return took, most - before


def _config(folder: Path, python: str, fault: dict[str, object]) -> Path:
    servers = {}
    for name, tool, faults in (("bank", "look", []), ("evil", "pay", [fault] if fault else [])):
        scenario = folder / f"{name}.json"
        scenario.write_text(json.dumps({"name": name, "tools": [{"name": tool}], "faults": faults}))
        servers[name] = {"command": python, "args": ["-m", "mcpzip_fakes", str(scenario)]}
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    return config


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="; ".join(ATTACKS))
    parser.add_argument("--mcpzip", help="the installed command")
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    rows = []
    for name in options.attacks or ATTACKS:
        if name not in ATTACKS:
            parser.error(f"there is no attack {name!r}; there are {', '.join(ATTACKS)}")
        with tempfile.TemporaryDirectory() as folder:
            command = installed(options.mcpzip)
            took, gained = attacked(Path(folder), command, ATTACKS[name], options.seconds)
        figures = [statistics.median(took), statistics.quantiles(took, n=100)[98], max(took)]
        rows.append([name, *(f"{each * 1e3:.1f}" for each in figures), f"{gained / 2**20:.0f}"])
    print("Calls to a good server beside a hostile one, in ms; memory gained, in MB.\n")
    print(table(["the hostile server has", "median", "99 of 100", "longest", "memory"], rows))


if __name__ == "__main__":
    main()
