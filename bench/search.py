"""Measures search and its index by the number of tools: the time to index new tools by their words and by
their meaning, to open a stored catalog and index, and to search; memory, and the sizes of the files.

    python -m bench.search [--sizes N,N,…] [--tools FILE] [--json OUT]

Tools are made up (`bench.made_up`). --tools: real ones instead, a JSON object a line (gzip if it ends with
.gz) with ``server`` beside the tool's own members; where a size is above their number all are used. Each size
runs in two new processes, one that makes the files and one that opens them. Seconds are processor time, which
other load changes less. It reports and never asserts.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import made_up
from bench.processes import resident_bytes
from bench.tables import table
from mcpzip.catalog import Catalog, ServerRecord, snapshot
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.search import Searcher
from mcpzip.search.semantic import local_table
from mcpzip.system.mapped_files import map_state, release

SIZES = (50, 500, 5_000, 50_000, 100_000)
QUERIES = 200
MEGABYTE = 1e6
FILES = ("tools.json", "tools.bin", "index.bin")
CONFIG = "/config.json"  # of the snapshot, which is not read

Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--tools", help="real tools, a JSON object a line")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--part", choices=("make", "open"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.part:
        part = make if options.part == "make" else open_again
        print(json.dumps(part(Path(options.folder), sizes[0], options.tools)))
        return
    found = {size: measure(size, options.tools) for size in sizes}
    print(report(found))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def measure(size: int, tools: str | None) -> Figures:
    """The figures of one size."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in ("make", "open"):
            argv = [sys.executable, "-m", "bench.search", "--part", part, "--folder", folder]
            argv += ["--sizes", str(size), *(["--tools", tools] if tools else [])]
            done = subprocess.run(argv, check=True, capture_output=True, text=True)
            figures |= json.loads(done.stdout)
    return figures


def make(folder: Path, size: int, tools: str | None) -> Figures:
    """Index new tools and write the files."""
    entries = read(tools, size) if tools else list(made_up.entries(size))
    searcher = Searcher(local_table())
    begun = time.process_time()
    searcher.index(entries, "new", words_first=True)
    words = time.process_time() - begun
    while searcher.pending:
        searcher.add_meaning(len(entries))
    meaning = time.process_time() - begun
    searcher.forget()
    servers: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.tool):
        servers.setdefault(entry.server, []).append(entry)
    records = {name: ServerRecord(name, tuple(those)) for name, those in servers.items()}
    warnings = snapshot.save(str(folder / "tools.json"), CONFIG, Catalog(records))
    if warnings:
        raise SystemExit("\n".join(warnings))
    (folder / "index.bin").write_bytes(searcher.to_bytes())
    return {"tools": len(entries), "words": words, "meaning": meaning}


def open_again(folder: Path, size: int, tools: str | None) -> Figures:
    """Open the files in a process that has done nothing else, and search."""
    before = _resident()
    begun = time.process_time()
    catalog, _ = snapshot.load(str(folder / "tools.json"), CONFIG)
    opened = time.process_time()
    searcher = Searcher(local_table())
    kept = map_state(str(folder / "index.bin"), limits.INDEX)
    searcher.index(catalog.entries, "stored", kept)
    release(kept)
    loaded = time.process_time()
    asked = _requests(catalog.entries, size) if tools else made_up.queries(size, QUERIES)
    searcher.search("warm up", 10)
    times = []
    for query in asked:
        start = time.process_time()
        searcher.search(query, 10)
        times.append(time.process_time() - start)
    files = sum((folder / name).stat().st_size for name in FILES)
    return {
        "catalog": opened - begun,
        "index": loaded - opened,
        "p50": statistics.median(times),
        "p95": statistics.quantiles(times, n=20)[-1],
        "memory": _resident(),
        "added": _resident() - before,
        "files": files,
    }


def read(path: str, most: int) -> list[Entry]:
    """The first tools of a file. Raises OSError, ValueError."""
    data = Path(path).read_bytes()
    text = (gzip.decompress(data) if path.endswith(".gz") else data).decode()
    found = []
    for line in text.splitlines()[:most]:
        tool = json.loads(line)
        server = tool.pop("server")
        found.append(Entry.parse(server, json.dumps(tool, ensure_ascii=False).encode()))
    return found


def _requests(entries: tuple[Entry, ...], size: int) -> list[str]:
    """The beginnings of the descriptions of tools that are evenly spread."""
    step = max(len(entries) // QUERIES, 1)
    return [" ".join(entry.description.split()[:8]) or entry.tool for entry in entries[::step]]


def _resident() -> float:
    return float(resident_bytes(os.getpid()) or 0)


def report(found: dict[int, Figures]) -> str:
    head = [
        "tools",
        "new: words, s",
        "new: meaning too, s",
        "stored catalog, s",
        "stored index, s",
        "search p50, ms",
        "p95, ms",
        "resident, MB",
        "added, MB",
        "files, MB",
    ]
    rows = []
    for figures in found.values():
        seconds = [f"{figures[name]:.3g}" for name in ("words", "meaning", "catalog", "index")]
        milliseconds = [f"{figures[name] * 1e3:.2f}" for name in ("p50", "p95")]
        sizes = [f"{figures[name] / MEGABYTE:.1f}" for name in ("memory", "added", "files")]
        rows.append([f"{int(figures['tools']):,}", *seconds, *milliseconds, *sizes])
    return table(head, rows)


if __name__ == "__main__":
    main()
