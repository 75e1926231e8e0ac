"""Reads a folder of tools, queries and relevance judgements.

    tools.jsonl or tools.jsonl.gz   a tool per line: {"server", "name", "description", "inputSchema", …}
    queries.jsonl                   a query per line: {"qid", "kind", "query"}
    qrels.tsv                       after a header: qid, server__name, relevance, group (tab-separated)

Relevance 2 is right, 1 acceptable. A query has one or more needs. The group is the need that a tool answers;
the right tools of a need are interchangeable.
"""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mcpzip.model.entry import Entry


@dataclass(frozen=True)
class Query:
    """relevance: by tool name, 1 or 2. needs: for each need, the right tools."""

    id: str
    kind: str
    text: str
    relevance: dict[str, int]
    needs: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Dataset:
    entries: tuple[Entry, ...]
    queries: tuple[Query, ...]


def read_dataset(folder: Path, most: int | None = None) -> Dataset:
    """The dataset in ``folder``, with at most ``most`` tools, and without queries that have no right tool.

    Raises FileNotFoundError for a missing file, ValueError for a malformed judgement.
    """
    entries = tuple(_entries(folder, most))
    known = {entry.name for entry in entries}
    relevance: dict[str, dict[str, int]] = {}
    needs: dict[str, dict[str, set[str]]] = {}
    for line in _lines(folder / "qrels.tsv")[1:]:
        try:
            query, tool, grade, group = line.split("\t")
        except ValueError:
            raise ValueError(f"{folder / 'qrels.tsv'}: a line has four columns, not {line!r}") from None
        if tool not in known:
            continue
        grades = relevance.setdefault(query, {})
        grades[tool] = max(int(grade), grades.get(tool, 0))
        if int(grade) == 2:
            needs.setdefault(query, {}).setdefault(group, set()).add(tool)
    queries = []
    for line in _lines(folder / "queries.jsonl"):
        query = json.loads(line)
        if query["qid"] in needs:
            groups = tuple(frozenset(tools) for tools in needs[query["qid"]].values())
            queries.append(
                Query(query["qid"], query["kind"], query["query"], relevance[query["qid"]], groups)
            )
    return Dataset(entries, tuple(queries))


def write_dataset(folder: Path, entries: Iterable[Entry], queries: Iterable[Query]) -> None:
    """Write the files of a dataset, so that `read_dataset` reads them. A query without an id gets one."""
    folder.mkdir(parents=True, exist_ok=True)
    tools = [json.dumps({"server": entry.server, **json.loads(entry.raw)}) for entry in entries]
    asked: list[str] = []
    judgements = ["qid\ttool\trelevance\tgroup"]
    for number, query in enumerate(queries):
        name = query.id or f"q{number}"
        asked.append(json.dumps({"qid": name, "kind": query.kind, "query": query.text}))
        for group, need in enumerate(query.needs):
            judgements += [f"{name}\t{tool}\t2\t{group}" for tool in sorted(need)]
        others = sorted(tool for tool, grade in query.relevance.items() if grade == 1)
        judgements += [f"{name}\t{tool}\t1\t-1" for tool in others]
    for name, lines in (("tools.jsonl", tools), ("queries.jsonl", asked), ("qrels.tsv", judgements)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _entries(folder: Path, most: int | None) -> Iterator[Entry]:
    path = folder / "tools.jsonl"
    lines = _lines(path if path.exists() else folder / "tools.jsonl.gz")
    for line in lines[:most]:
        tool = json.loads(line)
        server = tool.pop("server")
        yield Entry.parse(server, json.dumps(tool, ensure_ascii=False).encode())


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()
