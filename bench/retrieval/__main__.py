"""Reports the quality, calibration, speed and memory of `mcpzip.search` on one folder.

    python -m bench.retrieval FOLDER [--tools N] [--semantic TIER] [--rows OUT.jsonl] [--compare OLD.jsonl]

--semantic: local (the default), off, or onnx (together with the local table). --rows saves the scores of
every query; --compare reports the paired difference to saved rows.
"""

import argparse
import asyncio
import gc
import json
import statistics
import time
import tracemalloc
from dataclasses import asdict
from pathlib import Path

from bench.retrieval.dataset import Dataset, read_dataset
from bench.retrieval.metrics import Row, Scores, by_kind, difference, evaluate, interval, overall
from bench.tables import table
from mcpzip.config.schema import SemanticConfig
from mcpzip.proxy.local_search import correct_spelling
from mcpzip.search import Results, Searcher
from mcpzip.search.remote import embedder
from mcpzip.search.remote.semantic_tier import RemoteSemanticTier
from mcpzip.search.semantic import local_table
from mcpzip.search.semantic.table import Table
from mcpzip.search.tiers import TierAbsence, TierAnswer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tools", type=int, help="only the first TOOLS tools")
    parser.add_argument("--semantic", choices=("local", "off", "onnx"), default="local")
    parser.add_argument("--rows", type=Path, help="save the scores of every query in this file")
    parser.add_argument("--compare", type=Path, help="rows that were saved before")
    options = parser.parse_args()
    dataset = read_dataset(options.folder, options.tools)
    table = None if options.semantic == "off" else local_table()
    searcher = Searcher(table)
    print(f"{len(dataset.entries)} tools, {len(dataset.queries)} queries\n")
    print(_index_costs(dataset, searcher, table))
    answers: dict[str, TierAnswer] = {}
    if options.semantic == "onnx":
        answers, taken = asyncio.run(_onnx_answers(dataset, searcher))
        print(f"onnx: {taken * 1e3:.0f} ms to embed a query, p50")
    rows, results, report = _search(dataset, searcher, answers)
    print("\n" + report + "\n")
    print(_quality(rows) + "\n")
    print(_calibration(rows, results))
    if options.compare:
        print("\n" + _difference(rows, _saved(options.compare)))
    if options.rows:
        lines = [json.dumps({"id": r.id, "kind": r.kind, "scores": asdict(r.scores)}) for r in rows]
        options.rows.write_text("\n".join(lines) + "\n", encoding="utf-8")


async def _onnx_answers(dataset: Dataset, searcher: Searcher) -> tuple[dict[str, TierAnswer], float]:
    """The transformer's answer to every query, after spelling correction; and the median seconds for one."""
    tier = RemoteSemanticTier(embedder(SemanticConfig("onnx"), time.monotonic), "")
    tier.index(dataset.entries)
    await tier.settled()
    answers: dict[str, TierAnswer] = {}
    taken: list[float] = []
    for query in dataset.queries:
        text = correct_spelling(query.text, searcher.search(query.text, 1))
        began = time.perf_counter()
        answer = await tier.ask(text)
        taken.append(time.perf_counter() - began)
        if isinstance(answer, TierAbsence):
            raise SystemExit(f"onnx: {answer.reason}")
        answers[query.id] = answer
    await tier.aclose()
    return answers, statistics.median(taken)


def _index_costs(dataset: Dataset, searcher: Searcher, table: Table | None) -> str:
    """The time to build the index in a new process and to load it, and its memory."""
    began = time.perf_counter()
    searcher.index(dataset.entries, "cold")
    cold = time.perf_counter() - began
    saved = searcher.to_bytes()
    began = time.perf_counter()
    Searcher(table).index(dataset.entries, "loaded", saved)
    warm = time.perf_counter() - began
    gc.collect()
    tracemalloc.start()
    other = Searcher(table)
    other.index(dataset.entries, "measured", saved)
    other.search("warm up", 1)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (
        f"index: {cold * 1e3:.0f} ms cold, {warm * 1e3:.0f} ms from the {len(saved) / 2**20:.1f} MB "
        f"that were saved, {size / 2**20:.1f} MB of memory"
    )


def _search(
    dataset: Dataset, searcher: Searcher, answers: dict[str, TierAnswer]
) -> tuple[list[Row], list[Results], str]:
    """Scores and times of every query: uncached, cached, and as a substring scan for comparison."""
    searcher.index(dataset.entries, "timed")
    texts = [f"{entry.name} {entry.description}".lower() for entry in dataset.entries]
    rows: list[Row] = []
    results: list[Results] = []
    times: dict[str, list[float]] = {"new": [], "from the cache": [], "a scan for substrings": []}
    for query in dataset.queries:
        remote = [answers[query.id]] if query.id in answers else []
        began = time.perf_counter()
        result = searcher.search(query.text, 10, answers=remote)
        times["new"].append(time.perf_counter() - began)
        began = time.perf_counter()
        searcher.search(query.text, 10, answers=remote)
        times["from the cache"].append(time.perf_counter() - began)
        began = time.perf_counter()
        _scan(query.text, texts)
        times["a scan for substrings"].append(time.perf_counter() - began)
        results.append(result)
        names = [name for hit in result.hits for name in (hit.entry.name, *hit.also)]
        rows.append(Row(query.id, query.kind, evaluate(query, names[:10])))
    scan_median = statistics.median(times["a scan for substrings"])
    lines = []
    for name, seconds in times.items():
        centiles = statistics.quantiles(seconds, n=100)
        figures = (f"{centiles[49] * 1e3:.2f} ms", f"{centiles[94] * 1e3:.2f} ms")
        lines.append([name, *figures, f"{centiles[49] / scan_median:.3f}"])
    return rows, results, table(["a query", "p50", "p95", "p50, scans"], lines)


def _scan(query: str, texts: list[str]) -> list[int]:
    """The best ten of ``texts`` by the number of words of ``query`` that are substrings of them."""
    query_words = query.lower().split()
    counts = [sum([word in text for word in query_words]) for text in texts]
    return sorted(range(len(texts)), key=counts.__getitem__, reverse=True)[:10]


def _quality(rows: list[Row]) -> str:
    lines = [
        [kind, str(len(same)), *_cells(Scores.mean([row.scores for row in same]))]
        for kind, same in by_kind(rows).items()
    ]
    low, high = interval(rows, lambda drawn: overall(drawn).ndcg)
    lines.append(["overall", str(len(rows)), *_cells(overall(rows))])
    head = ["kind", "n", "R@1", "R@5", "R@10", "nDCG@10", "MRR@10", "empty"]
    return table(head, lines) + f"\n\noverall nDCG@10: 95 % interval [{low:.3f}, {high:.3f}]"


def _cells(scores: Scores) -> list[str]:
    return [f"{value:.3f}" for value in asdict(scores).values()]


def _calibration(rows: list[Row], results: list[Results]) -> str:
    lines = []
    for quality in ("strong", "fair", "weak", "none"):
        same = [row.scores for row, result in zip(rows, results, strict=True) if result.quality == quality]
        if same:
            mean = Scores.mean(same)
            lines.append([quality, str(len(same)), f"{mean.recall_1:.2f}", f"{mean.recall_5:.2f}"])
    return table(["quality", "n", "R@1", "R@5"], lines)


def _saved(path: Path) -> dict[str, Scores]:
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {line["id"]: Scores(**line["scores"]) for line in lines}


def _difference(rows: list[Row], before: dict[str, Scores]) -> str:
    gain, low, high = difference(rows, before)
    return f"overall nDCG@10, now − before: {gain:+.4f}, 95 % [{low:+.4f}, {high:+.4f}]"


if __name__ == "__main__":
    main()
