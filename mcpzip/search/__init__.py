"""Search for tools: tokenizer, inverted index, ranking, query cache. Pure: no I/O, no clock."""

from mcpzip.search.query import Filters
from mcpzip.search.searcher import Hit, Quality, Results, Searcher

__all__ = ["Filters", "Hit", "Quality", "Results", "Searcher"]
