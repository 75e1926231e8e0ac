"""The local semantic tier: embeddings from a table of word vectors, and the tools nearest to a query."""

from functools import cache

from mcpzip.search.semantic.table import Table


@cache
def local_table() -> Table:
    """The package's table, read at the first call. Raises ValueError or OSError where it is damaged."""
    return Table()
