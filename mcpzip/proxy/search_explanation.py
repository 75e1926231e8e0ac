"""How a search was interpreted and ranked, for people."""

from collections.abc import Iterator

from mcpzip.proxy.search_request import SearchRequest
from mcpzip.search import Filters, Hit, Results, Searcher
from mcpzip.search.query import parse_truncated


def field_scores(question: SearchRequest, hit: Hit, searcher: Searcher) -> dict[str, float]:
    """The keyword score of each field of a tool, highest first."""
    found = searcher.by_field(hit.need or question.query, question.filters, hit.entry)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def moved(hit: Hit) -> list[str]:
    """What changed the score of a tool beside its text."""
    learned = [f"learned words +{hit.learned:.3g}"] if hit.learned else []
    return [*(f"{why} ×{factor:.3g}" for why, factor in hit.moved), *learned]


def query_notes(question: SearchRequest, results: Results) -> Iterator[tuple[str, str]]:
    """How the query was interpreted: labels and texts."""
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
    signs = parse_truncated(query)
    for server in (*signs.servers, filters.server):
        if server:
            yield f"of {server}"
    for word in signs.excluded_words:
        yield f"without {word!r}"
    for phrase in signs.phrases:
        yield f'with "{phrase}" where any tool has it'
    if filters.read_only is not None:
        yield "that change nothing" if filters.read_only else "that may change something"
