"""Rendering search results, and how they were ranked."""

from collections.abc import Iterable, Iterator

from mcpzip.catalog import Catalog
from mcpzip.cli import console
from mcpzip.cli.parameters import hint
from mcpzip.model.signature import parameters, summary
from mcpzip.proxy.search_explanation import field_scores, moved, query_notes
from mcpzip.proxy.search_reply import (
    by_need,
    heading,
    no_hits_text,
    search_details,
    shown_name,
    summary_line,
    unknown_words_text,
)
from mcpzip.proxy.search_request import SearchRequest
from mcpzip.search import Hit, Results, Searcher
from mcpzip.search.query import parse_truncated

_SERVERS_SHOWN = 12
_FIELDS_SHOWN = 3


def show(question: SearchRequest, results: Results, catalog: Catalog) -> None:
    """Prints the results for people."""
    if _show_no_hits(question, results, catalog):
        return
    if sentence := unknown_words_text(results):
        console.say(sentence)
    for hits in _by_need(results):
        table = console.Table(
            "tool", "what it does", "parameters", ">score", wide=("what it does", "parameters")
        )
        for hit in hits:
            table.row(
                _name(hit),
                summary(hit.entry.description),
                parameters(hit.entry.input_schema(), 160),
                f"{hit.score:.2f}",
            )
        table.show()
    console.say(summary_line(results))


def explain(question: SearchRequest, results: Results, searcher: Searcher, catalog: Catalog) -> None:
    """Prints the results for people, with the parts of each score."""
    ranks = {hit: rank for rank, hit in enumerate(results.hits, 1)}
    for hits in _by_need(results):
        table = console.Table(
            "tool",
            ">#",
            ">score",
            "tier",
            ">words",
            ">meaning",
            "words found in",
            "matched",
            "moved by",
            wide=("words found in", "matched", "moved by"),
        )
        for hit in hits:
            fields = field_scores(question, hit, searcher)
            table.row(
                _name(hit),
                str(ranks[hit]),
                f"{hit.score:.3f}",
                hit.tier,
                f"{hit.words:.2f}",
                "" if hit.similarity is None else f"{hit.similarity:.2f}",
                console.stack(
                    *(f"{field} {share:.2f}" for field, share in list(fields.items())[:_FIELDS_SHOWN])
                ),
                ", ".join(hit.matched),
                console.stack(*moved(hit)),
            )
        table.show()
    for label, text in query_notes(question, results):
        console.say(f"{label}: {text}")
    if not _show_no_hits(question, results, catalog):
        console.say(summary_line(results))


def as_json(question: SearchRequest, results: Results, searcher: Searcher | None) -> dict[str, object]:
    """The results for programs. searcher: given to add the explanation."""
    found = search_details(results)
    rows = found["results"]
    assert isinstance(rows, list)
    for rank, (row, hit) in enumerate(zip(rows, results.hits, strict=True), 1):
        row["description"] = hit.entry.description
        row["parameters"] = parameters(hit.entry.input_schema())
        if searcher is not None:
            fields = field_scores(question, hit, searcher)
            row["rank"] = rank
            row["matched"] = list(hit.matched)
            row["fields"] = {field: round(share, 4) for field, share in fields.items()}
    if searcher is not None:
        signs = parse_truncated(question.query)
        found["query"] = {
            "text": signs.text,
            "servers": [*signs.servers, *([question.filters.server] if question.filters.server else [])],
            "without": list(signs.excluded_words),
            "phrases": list(signs.phrases),
            "read_only": question.filters.read_only,
        }
        found["nearest_words"] = list(results.nearest_words)
        found["nearest_servers"] = list(results.nearest_servers)
    return found


def _by_need(results: Results) -> Iterator[Iterable[Hit]]:
    """The hits of each need, after printing its heading."""
    quality = dict(results.needs)
    for need, hits in by_need(results).items():
        if need:
            console.say(heading(need, quality[need]))
        yield hits


def _show_no_hits(question: SearchRequest, results: Results, catalog: Catalog) -> bool:
    """Prints why there are no hits. Returns False when there are some."""
    if results.hits:
        return False
    why = no_hits_text(question, results, catalog, _SERVERS_SHOWN)
    if not catalog.entries:
        why = f"There are no tools. {hint('servers')} says why."
    console.note(f"Nothing found in {results.searched} tools. {why}")
    return True


def _name(hit: Hit) -> console.Cell:
    also = [console.styled(f"also {name}", "dim") for name in hit.also]
    return console.stack(shown_name(hit.entry), *also)
