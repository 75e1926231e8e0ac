"""*Search*: what a model would read, and why each tool stands where it does."""

import json
import time

import msgspec

from mcpzip.model import sanitize
from mcpzip.model.signature import parameters, summary
from mcpzip.proxy.read_tools import ReadTools
from mcpzip.proxy.search_explanation import field_scores, moved, query_notes
from mcpzip.proxy.search_reply import search_result, shown_name
from mcpzip.proxy.search_request import SearchRequest
from mcpzip.search import Filters, Hit
from mcpzip.ui.charts import Bar, Drawn, bars
from mcpzip.ui.page import Answer, PersonVisit
from mcpzip.ui.rendering import ShownText

_LONGEST = 2_000
"""Characters of a query."""
_MOST = 20
"""Tools that a search shows at most, before those that it just missed."""
_MISSED = 5
"""Tools that are shown beyond the model's."""
_FIELDS = 4
"""Fields of a tool with a bar of their own."""
_SIGNATURE = 120
_SERVERS = 500
"""Servers that can be chosen."""


class Row(msgspec.Struct, frozen=True):
    """A tool that was found. rank: from 1. missed: whether the model doesn't read it. chart: the parts of its
    score, 0…1. fields: of its keyword score. moved: why its score was raised or lowered.
    """

    rank: int
    name: str
    server: str
    hit: Hit
    missed: bool
    about: str
    parameters: str
    chart: list[Drawn]
    fields: list[Drawn]
    moved: list[str]


async def show(visit: PersonVisit) -> Answer:
    """The page."""
    query = visit.fields.get("query", "")[:_LONGEST]
    server = visit.fields.get("server", "")
    rows: list[Row] = []
    notes: list[tuple[str, str]] = []
    text = ""
    async with visit.sources.seen() as seen:
        known = sorted(name for name, one in seen.config.servers.items() if not one.disabled)[:_SERVERS]
        usual = min(seen.config.search.default_limit, _MOST)
        limit = visit.number("limit", 1, _MOST) if visit.fields.get("limit") else usual
        if query.strip():
            filters = Filters(server if server in known else None, None)
            question = SearchRequest(query, limit, filters)
            found = await seen.search(question)
            reads = ReadTools(seen.config) if seen.config.split else ()
            result = search_result(question, found, time.time(), seen.config.search.max_tokens, reads=reads)
            text = json.loads(result)["content"][0]["text"]
            wider = SearchRequest(query, limit + _MISSED, filters)
            more = await seen.search(wider)
            searcher = await seen.searcher()
            shown = {hit.entry for hit in found.results.hits}
            notes = list(query_notes(question, found.results))
            for rank, hit in enumerate(more.results.hits, 1):
                scores = list(field_scores(question, hit, searcher).items())[:_FIELDS]
                row = _row(rank, hit, scores, missed=hit.entry not in shown)
                # What was used before, or failed, others may have used.
                rows.append(row if seen.principal is None else msgspec.structs.replace(row, moved=[]))
    return visit.page(
        "search.html",
        query=query,
        server=server,
        limit=limit,
        known=known,
        most=_MOST,
        rows=rows,
        notes=notes,
        text=ShownText(sanitize.lines(text)),
    )


def _row(rank: int, hit: Hit, scores: list[tuple[str, float]], *, missed: bool) -> Row:
    meaning = [] if hit.similarity is None else [Bar("meaning", max(hit.similarity, 0.0))]
    return Row(
        rank,
        shown_name(hit.entry),
        hit.entry.server,
        hit,
        missed,
        summary(hit.entry.description),
        parameters(hit.entry.input_schema(), _SIGNATURE),
        bars([Bar("score", hit.score, "ours"), Bar("words", hit.words), *meaning], 1.0),
        bars([Bar(field, score) for field, score in scores]),
        moved(hit),
    )
