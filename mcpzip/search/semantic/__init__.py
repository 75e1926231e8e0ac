"""Meaning without a model to run: a table of word vectors, and the tools nearest to a query."""

from functools import cache

from mcpzip.search.semantic.table import Table


@cache
def local_table() -> Table:
    """The table that comes with the package, read once. Raises ValueError or OSError if it is damaged."""
    return Table()
