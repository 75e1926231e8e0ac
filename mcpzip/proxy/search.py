"""`search_tools`: the reply a model reads (pure).

The rule: one line a tool and one status line, never empty-handed: what could not be searched is named with
its reason, and a query that matches nothing says why and what comes nearest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from mcpzip.catalog import Catalog
from mcpzip.model.ages import age
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.model.signature import signature
from mcpzip.proxy.metatools import MAX_LIMIT, REFRESH, STATUS
from mcpzip.proxy.reply import text_result
from mcpzip.search import Filters, Hit, Results

_REASON_LENGTH = 100
_TROUBLES_SHOWN = 4

_signature = lru_cache(maxsize=2_048)(signature)
"""Reading schemas is half of the work of a search, and the same tools are found again and again."""

ADMIN_TOOLS = tuple(
    Entry.parse("mcpzip", raw)
    for raw in (
        b'{"name":"%b","description":"Status of the proxy: its servers, their tools, what is wrong",'
        b'"annotations":{"readOnlyHint":true}}' % STATUS.encode(),
        b'{"name":"%b","description":"Refresh the proxy: list the tools of all servers again",'
        b'"annotations":{"idempotentHint":true}}' % REFRESH.encode(),
    )
)
"""mcpzip's own tools: run through `execute_tool` and found by search under their plain names."""


def shown_name(entry: Entry) -> str:
    """The name to call ``entry`` by."""
    return entry.tool if entry in ADMIN_TOOLS else entry.name


@dataclass(frozen=True, slots=True)
class Question:
    """A `search_tools` request, checked."""

    query: str
    limit: int
    filters: Filters


class _Arguments(msgspec.Struct):
    query: str | None = None
    limit: int | None = None
    server: str | None = None
    read_only: bool | None = None


def read_question(raw: bytes | None, default_limit: int) -> Question:
    """Raises InvalidArgumentsError. A limit out of range is moved into it; one spelled as text is read."""
    try:
        arguments = msgspec.convert(msgspec.json.decode(raw or b"{}"), _Arguments, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"search_tools can't read its arguments: {error}.") from error
    if arguments.query is None:
        raise InvalidArgumentsError("'query' is missing: say in plain words what you want to do.")
    limit = min(max(arguments.limit or default_limit, 1), MAX_LIMIT)
    return Question(arguments.query, limit, Filters(arguments.server or None, arguments.read_only))


def reply(
    question: Question, results: Results, catalog: Catalog, troubles: Mapping[str, str], now: float
) -> bytes:
    """The result of `search_tools`. troubles: why a server could not be searched live, by name."""
    lines = [_line(hit.entry) for hit in results.hits]
    if not lines:
        lines = _nothing(question, results, catalog)
    lines.append(_status(results, catalog, troubles, now))
    return text_result("\n".join(lines), meta={"search": details(results)})


def details(results: Results) -> dict[str, object]:
    """What people and tests want to know of ``results`` beyond the names (`_meta["mcpzip/search"]`)."""
    return {
        "quality": results.quality,
        "matching": results.matching,
        "searched": results.searched,
        "tiers": list(results.tiers),
        "results": [_detail(hit) for hit in results.hits],
    }


def _detail(hit: Hit) -> dict[str, object]:
    detail: dict[str, object] = {
        "name": shown_name(hit.entry),
        "score": round(hit.score, 4),
        "tier": hit.tier,
    }
    if hit.similarity is not None:
        detail["similarity"] = round(hit.similarity, 4)
    return detail


def _line(entry: Entry) -> str:
    return f"{entry.tool}: {entry.description}" if entry in ADMIN_TOOLS else _signature(entry)


def _nothing(question: Question, results: Results, catalog: Catalog) -> list[str]:
    if not catalog.entries:
        return ["There are no tools yet. Call proxy_status through execute_tool to see why."]
    server = question.filters.server
    if server is not None and server not in catalog.servers:
        return [f"There is no server {server!r}. The servers: {_some(sorted(catalog.servers))}."]
    if not question.query.strip():
        return [
            f"The query is empty: say in plain words what you want to do. The servers: {_counted(catalog)}."
        ]
    said = []
    if results.unknown_words:
        said.append(f"No tool knows {', '.join(map(repr, results.unknown_words))}.")
    else:
        said.append("No tool matches.")
    if results.nearest_words:
        said.append(f"Nearest words: {', '.join(results.nearest_words)}.")
    if nearest := [server for server in results.nearest_servers if server in catalog.servers]:
        said.append(f"Nearest servers: {_some(nearest)}.")
    else:
        said.append(f"Servers: {_counted(catalog)}.")
    return [" ".join(said)]


def _status(results: Results, catalog: Catalog, troubles: Mapping[str, str], now: float) -> str:
    count = f"{len(results.hits)} of {results.matching} matches in {results.searched} tools"
    parts = [count, "+".join(results.tiers), results.quality] if results.hits else [count]
    if results.corrected:
        parts.append("read " + ", ".join(f"{wrong!r} as {right!r}" for wrong, right in results.corrected))
    status = "-- " + " · ".join(part for part in parts if part)
    for server, why in sorted(troubles.items())[:_TROUBLES_SHOWN]:
        record = catalog.servers.get(server)
        known = (
            f"tools of {age(now - record.fetched_at)} ago" if record and record.fetched_at else "no tools yet"
        )
        status += f"\n-- {server} not live ({known}): {shortened(why)}"
    if len(troubles) > _TROUBLES_SHOWN:
        status += f"\n-- {len(troubles) - _TROUBLES_SHOWN} more servers not live; see proxy_status"
    return status


def shortened(reason: str) -> str:
    """``reason`` cut to what a status line has room for."""
    return reason if len(reason) <= _REASON_LENGTH else reason[: _REASON_LENGTH - 1] + "…"


def _counted(catalog: Catalog) -> str:
    return _some(
        [f"{name} ({len(record.entries)})" for name, record in catalog.servers.items() if record.entries]
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
