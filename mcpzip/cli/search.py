"""`mcpzip search`: the results of `search_tools`, for people and programs."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace

from mcpzip.catalog import Catalog, ServerRecord
from mcpzip.cli import console, explain
from mcpzip.cli.console import warn
from mcpzip.cli.parameters import config_option, examples, hint, server_names
from mcpzip.cli.proxy_session import list_missing, open_proxy
from mcpzip.config import Config, config_path, load, parse
from mcpzip.config.schema import MAX_LIMIT, SemanticConfig
from mcpzip.model import sanitize
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidToolError, McpzipError
from mcpzip.proxy.local_search import new_searcher
from mcpzip.proxy.read_tools import ReadTools
from mcpzip.proxy.search_reply import held_lines, search_result
from mcpzip.proxy.search_request import SearchReport, SearchRequest
from mcpzip.proxy.tool_search import ToolSearch
from mcpzip.search import Filters, Searcher
from mcpzip.search.remote import remote_tiers


@dataclass(frozen=True, slots=True)
class _Request:
    """The query on the command line, and the form of the output."""

    query: str
    limit: int | None
    filters: Filters
    as_json: bool
    as_model: bool
    explain: bool

    def question(self, default_limit: int) -> SearchRequest:
        return SearchRequest(self.query, self.limit or default_limit, self.filters)


@click.command(
    epilog=examples(
        "mcpzip search 'send a message to my team'",
        ("mcpzip search 'open issues' --server github -n 3", "at most three tools of one server"),
        ("mcpzip search 'delete a file' --explain", "why each was found"),
        ("mcpzip search 'what time is it' --as-model", "what an agent's model reads"),
    )
)
@click.argument("query", required=False)
@click.option("-n", "--limit", type=click.IntRange(1, MAX_LIMIT), help="How many tools to show.")
@click.option("-s", "--server", shell_complete=server_names, help="Only this server's tools.")
@click.option("--read-only/--writes", default=None, help="Only tools that are read-only, or only the others.")
@click.option(
    "--explain", "explained", is_flag=True, help="Show why each tool was found and how it was ranked."
)
@click.option("--json", "as_json", is_flag=True, help="Names, scores and signatures as JSON.")
@click.option("--as-model", is_flag=True, help="Exactly what the model would read.")
@click.option(
    "--semantic",
    metavar="local|onnx|ollama|URL|off",
    help="The semantic tier, instead of the config's.",
)
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
@config_option
def search(
    query: str | None, limit: int | None, server: str | None, read_only: bool | None, explained: bool,
    as_json: bool, as_model: bool, semantic: str | None, catalog: str | None, batch: bool, config: str | None,
) -> int:  # fmt: skip
    """Find tools by what you want to do."""
    tier = _semantic(semantic) if semantic is not None else None
    if batch:
        if catalog is None:
            raise click.UsageError("--batch needs --catalog FILE.jsonl.")
        return asyncio.run(_answer_batch(Path(catalog), config, tier))
    if query is None:
        raise click.UsageError(f"Say what to search for, e.g. {hint('search', 'send a message')}")
    request = _Request(query, limit, Filters(server, read_only), as_json, as_model, explained)
    if catalog is not None:
        return asyncio.run(_search_file(Path(catalog), config, tier, request))
    return asyncio.run(_search_config(config, tier, request))


def _semantic(text: str) -> SemanticConfig:
    """``text`` parsed like the config's ``search.semantic``. Raises ConfigError."""
    document = json.dumps({"search": {"semantic": text}, "mcpServers": {}})
    return parse(document.encode(), "--semantic", {}).search.semantic


async def _search_config(config: str | None, semantic: SemanticConfig | None, request: _Request) -> int:
    async with open_proxy(config_path(config, os.environ), semantic) as proxy:
        await list_missing(proxy, request.filters.server)
        with console.spinner("embedding the catalog", aside=True):
            await proxy.wait_until_indexed()
        question = request.question(proxy.config.search.default_limit)
        found = await proxy.search(question)
        code = _show(request, question, found, await proxy.searcher(), proxy.config)
        if not request.as_model:
            for name, reason in sorted(found.unavailable.items()):
                console.note(sanitize.one_line(f"{name}: {reason}"))
            for line in held_lines(found):
                console.note(sanitize.one_line(line.removeprefix("-- ")))
        return code


async def _search_file(
    path: Path, config: str | None, semantic: SemanticConfig | None, request: _Request
) -> int:
    async with _open_file(path, config, semantic) as file:
        question = request.question(file.config.search.default_limit)
        results = await file.finder.search(question, file.searcher, file.catalog)
        found = SearchReport(results, file.catalog, {})
        return _show(request, question, found, file.searcher, file.config)


def _show(
    request: _Request, question: SearchRequest, found: SearchReport, searcher: Searcher, config: Config
) -> int:
    results, catalog = found.results, found.catalog
    if request.as_model:
        reads = ReadTools(config) if config.split else ()
        result = search_result(question, found, time.time(), config.search.max_tokens, reads=reads)
        text = json.loads(result)["content"][0]["text"]
        console.say(text)
    elif request.as_json:
        explainer = searcher if request.explain else None
        console.data(explain.as_json(question, results, explainer))
    elif request.explain:
        explain.explain(question, results, searcher, catalog)
    else:
        explain.show(question, results, catalog)
    return 0 if results.hits else 1


# --- the tools in a file ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SearchedFile:
    """The indexed tools of a file."""

    config: Config
    catalog: Catalog
    searcher: Searcher
    finder: ToolSearch


@asynccontextmanager
async def _open_file(
    path: Path, config: str | None, semantic: SemanticConfig | None
) -> AsyncIterator[_SearchedFile]:
    """Uses the settings of ``config`` if it is given, else the defaults without any API key."""
    where = config_path(config, os.environ)
    loaded = load(where, os.environ) if config is not None else Config(where, {})
    search = loaded.search if semantic is None else replace(loaded.search, semantic=semantic)
    # The vectors that embedding servers return are cached under the file's own name.
    loaded = replace(loaded, path=os.path.join(os.path.dirname(where), path.name), search=search)
    entries = list(_read_tools(path))
    servers: dict[str, list[Entry]] = {}
    for entry in entries:
        servers.setdefault(entry.server, []).append(entry)
    catalog = Catalog({name: ServerRecord(name, tuple(tools)) for name, tools in servers.items()})
    searcher = new_searcher(search, warn)
    searcher.index(entries, str(path))
    remote = remote_tiers(loaded)
    finder = ToolSearch({}, None, remote)
    try:
        if remote is not None:
            finder.index(catalog)
            await remote.settled()
        yield _SearchedFile(loaded, catalog, searcher, finder)
    finally:
        await finder.close()


def _read_tools(path: Path) -> Iterator[Entry]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                server = msgspec.json.decode(line, type=_ToolLine).server
                yield Entry.parse(server, line.strip())
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidToolError) as error:
                raise McpzipError(
                    f"{path}, line {number}: not a tool ({error}); "
                    "a line is a JSON object with 'server' and 'name'."
                ) from error


class _ToolLine(msgspec.Struct):
    server: str


class _QueryLine(msgspec.Struct):
    query: str
    k: int = 10
    id: int | str | None = None


async def _answer_batch(path: Path, config: str | None, semantic: SemanticConfig | None) -> int:
    async with _open_file(path, config, semantic) as file:
        return await _answer(file, sys.stdin.buffer)


async def _answer(file: _SearchedFile, lines: Iterable[bytes]) -> int:
    warned: set[str] = set()
    for line in lines:
        if not line.strip():
            continue
        try:
            query = msgspec.json.decode(line, type=_QueryLine)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise McpzipError(
                f'Not a query: {error}. A line is {{"id": 1, "query": "…", "k": 10}}.'
            ) from error
        results = await file.finder.search(
            SearchRequest(query.query, query.k, Filters()), file.searcher, file.catalog
        )
        for absence in results.absent:
            if absence.reason not in warned:
                warned.add(absence.reason)
                warn(f"{absence.tier} ({absence.method}) is absent: {absence.reason}")
        names = [name for hit in results.hits for name in (hit.entry.name, *hit.also)]
        answer = {"id": query.id, "names": names[: max(query.k, 0)]}
        console.data_line(answer)
    return 0
