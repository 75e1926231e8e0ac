"""Search for tools: tokenizer, inverted index, ranking, query cache. Pure: no I/O, no clock.

The rule: names are imported on first use, because a first call waits for whatever a start imports, and needs
no search.
"""

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from mcpzip.search.confidence import Quality
    from mcpzip.search.query import Filters
    from mcpzip.search.searcher import Hit, Results, Searcher

__all__ = ["Filters", "Hit", "Quality", "Results", "Searcher"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mcpzip.search import query, searcher

    value: object = getattr(query if name == "Filters" else searcher, name)
    globals()[name] = value
    return value
