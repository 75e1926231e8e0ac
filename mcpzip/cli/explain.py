"""What a search found, as people and programs are shown it, and why it found that."""

from collections.abc import Iterable, Iterator

from rich.markup import escape
from rich.table import Table

from mcpzip.catalog import Catalog
from mcpzip.cli.opening import err, out
from mcpzip.model.signature import parameters, summary
from mcpzip.proxy.search import (
    Question,
    account,
    by_need,
    details,
    heading,
    no_word_known,
    shown_name,
    why_nothing,
)
from mcpzip.search import Filters, Hit, Results, Searcher
from mcpzip.search.query import read

_SERVERS_SHOWN = 12
_FIELDS_SHOWN = 3


def show(question: Question, results: Results, catalog: Catalog) -> None:
    """For people: what was found."""
    if _nothing(question, results, catalog):
        return
    if said := no_word_known(results):
        out.print(said, markup=False, highlight=False)
    for hits in _headed(results):
        table = _table("tool", "what it does", "parameters", ">score")
        for hit in hits:
            table.add_row(
                _name(hit),
                escape(summary(hit.entry.description)),
                escape(parameters(hit.entry.input_schema(), 160)),
                f"{hit.score:.2f}",
            )
        out.print(table)
    out.print(account(results), markup=False, highlight=False)


def explain(question: Question, results: Results, searcher: Searcher, catalog: Catalog) -> None:
    """For people: what was found, and why."""
    ranks = {hit: rank for rank, hit in enumerate(results.hits, 1)}
    for hits in _headed(results):
        table = _table(
            ">#", "tool", ">score", "tier", ">words", ">meaning", "words found in", "matched", "moved by"
        )
        for hit in hits:
            fields = _fields(question, hit, searcher)
            table.add_row(
                str(ranks[hit]),
                _name(hit),
                f"{hit.score:.3f}",
                hit.tier,
                f"{hit.words:.2f}",
                "" if hit.similarity is None else f"{hit.similarity:.2f}",
                "\n".join(f"{field} {share:.2f}" for field, share in list(fields.items())[:_FIELDS_SHOWN]),
                escape(", ".join(hit.matched)),
                "\n".join(f"{why} ×{factor:.3g}" for why, factor in hit.moved),
            )
        if table.row_count:
            out.print(table)
    for what, said in _understanding(question, results):
        out.print(f"{what}: {said}", markup=False, highlight=False)
    if not _nothing(question, results, catalog):
        out.print(account(results), markup=False, highlight=False)


def as_json(question: Question, results: Results, searcher: Searcher | None) -> dict[str, object]:
    """For programs. searcher: what found it, if it is to be explained."""
    found = details(results)
    rows = found["results"]
    assert isinstance(rows, list)
    for rank, (row, hit) in enumerate(zip(rows, results.hits, strict=True), 1):
        row["description"] = hit.entry.description
        row["parameters"] = parameters(hit.entry.input_schema())
        if searcher is not None:
            fields = _fields(question, hit, searcher)
            row["rank"] = rank
            row["matched"] = list(hit.matched)
            row["fields"] = {field: round(share, 4) for field, share in fields.items()}
    if searcher is not None:
        signs = read(question.query)
        found["query"] = {
            "text": signs.text,
            "servers": [*signs.servers, *([question.filters.server] if question.filters.server else [])],
            "without": list(signs.without),
            "phrases": list(signs.phrases),
            "read_only": question.filters.read_only,
        }
        found["nearest_words"] = list(results.nearest_words)
        found["nearest_servers"] = list(results.nearest_servers)
    return found


def _fields(question: Question, hit: Hit, searcher: Searcher) -> dict[str, float]:
    """What the words are worth in each field of a tool, most first."""
    found = searcher.by_field(hit.need or question.query, question.filters, hit.entry)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _understanding(question: Question, results: Results) -> Iterator[tuple[str, str]]:
    """How the query was read: each thing that there is to say, and what it is called."""
    if results.corrected:
        yield "read", ", ".join(f"{wrong!r} as {right!r}" for wrong, right in results.corrected)
    if results.unknown_words:
        yield "no tool knows", ", ".join(map(repr, results.unknown_words))
    if filters := list(_filters(question.query, question.filters)):
        yield "only", ", ".join(filters)
    for need, quality in results.needs:
        yield "need", f'"{need}" ({quality})'
    yield "tiers", ", ".join(results.tiers)
    for absence in results.absent:
        yield "absent", f"{absence.tier} ({absence.method}): {absence.reason}"


def _filters(query: str, filters: Filters) -> Iterator[str]:
    signs = read(query)
    for server in (*signs.servers, filters.server):
        if server:
            yield f"of {server}"
    for word in signs.without:
        yield f"without {word!r}"
    for phrase in signs.phrases:
        yield f'with "{phrase}" where any tool has it'
    if filters.read_only is not None:
        yield "that change nothing" if filters.read_only else "that may change something"


def _headed(results: Results) -> Iterator[Iterable[Hit]]:
    """The hits, those for each need under its heading."""
    quality = dict(results.needs)
    for need, hits in by_need(results).items():
        if need:
            out.print(heading(need, quality[need]), markup=False, highlight=False)
        yield hits


def _nothing(question: Question, results: Results, catalog: Catalog) -> bool:
    if results.hits:
        return False
    why = why_nothing(question, results, catalog, _SERVERS_SHOWN)
    if not catalog.entries:
        why = "There are no tools. `mcpzip servers` says why."
    err.print(f"Nothing found in {results.searched} tools. {why}", markup=False, highlight=False)
    return True


def _name(hit: Hit) -> str:
    also = "".join(f"\n[dim]also {escape(name)}[/]" for name in hit.also)
    return escape(shown_name(hit.entry)) + also


def _table(*headings: str) -> Table:
    """A table of these columns; ``>`` before a heading stands for numbers."""
    table = Table(box=None, pad_edge=False)
    for each in headings:
        number = each.startswith(">")
        table.add_column(
            each.lstrip(">"),
            justify="right" if number else "left",
            overflow="fold",
            ratio=1 if each in ("what it does", "parameters") else None,
        )
    return table
