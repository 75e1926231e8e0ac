"""`mcpzip search`: what `search_tools` would find, for people and programs."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec
from rich.table import Table

from mcpzip.cli.opening import err, list_missing, out, with_proxy
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidToolError, McpzipError
from mcpzip.model.signature import parameters, summary
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.search import Question, details, reply, shown_name
from mcpzip.search import Filters, Results, Searcher


@click.command()
@click.argument("query", required=False)
@click.option("-n", "--limit", type=click.IntRange(1, 50), help="How many tools to show.")
@click.option("-s", "--server", help="Only this server's tools.")
@click.option("--json", "as_json", is_flag=True, help="Names, scores and signatures as JSON.")
@click.option("--as-model", is_flag=True, help="Exactly what the model would read.")
@click.option(
    "--catalog",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE.jsonl",
    help="Search the tools in a file: a JSON object a line with server, name, description, inputSchema.",
)
@click.option(
    "--batch",
    is_flag=True,
    help='Answer {"id","query","k"} a line on stdin with {"id","names"} a line. Needs --catalog.',
)
@click.option("-c", "--config", metavar="FILE", help="The config file.")
def search(
    query: str | None, limit: int | None, server: str | None, as_json: bool, as_model: bool,
    catalog: str | None, batch: bool, config: str | None,
) -> int:  # fmt: skip
    """Find tools by what you want to do."""
    if batch:
        if catalog is None:
            raise click.UsageError("--batch needs --catalog FILE.jsonl.")
        return _answer_batch(Path(catalog))
    if query is None:
        raise click.UsageError("Say what to search for, e.g. mcpzip search 'send a message'.")
    filters = Filters(server=server)
    if catalog is not None:
        searcher = Searcher()
        searcher.index(_read_tools(Path(catalog)), catalog)
        return _show(searcher.search(query, limit or 5, filters), as_json)
    searching: int = _search_config(
        config=config, query=query, limit=limit, filters=filters, as_json=as_json, as_model=as_model
    )  # type: ignore[call-arg]
    return searching


@with_proxy
async def _search_config(
    proxy: Proxy, *, query: str, limit: int | None, filters: Filters, as_json: bool, as_model: bool
) -> int:
    await list_missing(proxy, filters.server)
    question = Question(query, limit or proxy.config.search.default_limit, filters)
    results = await proxy.search(question)
    if as_model:
        text = json.loads(reply(question, results, proxy.catalog, proxy.troubles(), time.time()))["content"][
            0
        ]["text"]
        out.print(text, markup=False, highlight=False, soft_wrap=True)
        return 0 if results.hits else 1
    code = _show(results, as_json)
    for name, reason in sorted(proxy.troubles().items()):
        err.print(f"{name}: {reason}", markup=False, highlight=False)
    return code


def _show(results: Results, as_json: bool) -> int:
    if as_json:
        found = details(results)
        rows = found["results"]
        assert isinstance(rows, list)
        for row, hit in zip(rows, results.hits, strict=True):
            row["description"] = hit.entry.description
            row["parameters"] = parameters(hit.entry.input_schema())
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return 0 if results.hits else 1
    if not results.hits:
        err.print(_why_nothing(results), markup=False, highlight=False)
        return 1
    table = Table(box=None, pad_edge=False)
    for heading, options in (
        ("tool", {"overflow": "fold"}),
        ("what it does", {"ratio": 1}),
        ("parameters", {"ratio": 1}),
        ("score", {"justify": "right"}),
    ):
        table.add_column(heading, **options)
    for hit in results.hits:
        table.add_row(
            _plain(shown_name(hit.entry)),
            _plain(summary(hit.entry.description)),
            _plain(parameters(hit.entry.input_schema(), 160)),
            f"{hit.score:.2f}",
        )
    out.print(table)
    out.print(
        f"{len(results.hits)} of {results.matching} matches in {results.searched} tools"
        f" · {'+'.join(results.tiers)} · {results.quality}",
        highlight=False,
    )
    return 0


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


def _why_nothing(results: Results) -> str:
    said = [f"Nothing matches in {results.searched} tools."]
    if results.unknown_words:
        said.append(f"No tool knows {', '.join(map(repr, results.unknown_words))}.")
    if results.nearest_words:
        said.append(f"Nearest words: {', '.join(results.nearest_words)}.")
    if results.nearest_servers:
        said.append(f"Nearest servers: {', '.join(results.nearest_servers)}.")
    return " ".join(said)


def _read_tools(path: Path) -> Iterator[Entry]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                server = msgspec.json.decode(line, type=_Server).server
                yield Entry.parse(server, line.strip())
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidToolError) as error:
                raise McpzipError(
                    f"{path}, line {number}: not a tool ({error}); "
                    "a line is a JSON object with 'server' and 'name'."
                ) from error


class _Server(msgspec.Struct):
    server: str


class _Query(msgspec.Struct):
    query: str
    k: int = 10
    id: int | str | None = None


def _answer_batch(path: Path) -> int:
    searcher = Searcher()
    searcher.index(_read_tools(path), str(path))
    return _answer(searcher, sys.stdin.buffer)


def _answer(searcher: Searcher, lines: Iterable[bytes]) -> int:
    for line in lines:
        if not line.strip():
            continue
        try:
            asked = msgspec.json.decode(line, type=_Query)
        except msgspec.DecodeError as error:
            raise McpzipError(
                f'Not a query: {error}. A line is {{"id": 1, "query": "…", "k": 10}}.'
            ) from error
        hits = searcher.search(asked.query, asked.k).hits
        answer = {"id": asked.id, "names": [hit.entry.name for hit in hits]}
        sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
        sys.stdout.flush()
    return 0
