"""Finding a tool by what it is called, in full or by its beginning.

The rule: names are compared by their words, so `get-user`, `getUser` and "get user" are one; with the server
before it or without. Only `Names.literal` looks at the characters themselves.
"""

from bisect import bisect_left
from collections.abc import Sequence

from mcpzip.model.entry import Entry
from mcpzip.search.tokenizer import tokenize, words

_LAST = "\U0010ffff"  # sorts after every word


class Names:
    """The names of the tools of one catalog. A document is a position in the entries given."""

    __slots__ = ("_begun", "_literal", "_spoken")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._literal: dict[str, tuple[int, ...]] = {}
        self._spoken: dict[str, tuple[int, ...]] = {}
        begun: list[tuple[str, int]] = []
        for document, entry in enumerate(entries):
            _add(self._literal, entry.tool, document)
            _add(self._literal, entry.name, document)
            tool = " ".join(word for word, _ in words(entry.tool))
            server = " ".join(word for word, _ in words(entry.server))
            for name in dict.fromkeys((tool, f"{server} {tool}")):
                begun.append((name, document))
                if key := said(tokenize(name, keep_stop_words=True)):
                    _add(self._spoken, key, document)
        self._begun = sorted(begun)

    def literal(self, query: str) -> tuple[int, ...]:
        """The tools called exactly ``query``, character by character."""
        return self._literal.get(query, ())

    def spoken(self, query: str) -> tuple[int, ...]:
        """The tools whose name has the words of ``query`` (see `said`), all and no other, in any order."""
        return self._spoken.get(query, ())

    def begun(self, query: Sequence[str]) -> range:
        """Where the names that begin with the words of ``query`` stand, for `between`.

        The last word may be unfinished if it isn't the only one: "list chan", but "post" doesn't begin
        "postgres".
        """
        if not query:
            return range(0)
        start = " ".join(query) + (" " if len(query) == 1 else "")
        return range(bisect_left(self._begun, (start, 0)), bisect_left(self._begun, (start + _LAST, 0)))

    def between(self, places: range) -> set[int]:
        """The tools whose names stand at ``places``."""
        return {self._begun[place][1] for place in places}


def said(terms: Sequence[str]) -> str:
    """The key of a name or a query for `Names.spoken`: its distinct terms, sorted."""
    return " ".join(sorted(set(terms)))


def _add(table: dict[str, tuple[int, ...]], key: str, document: int) -> None:
    known = table.get(key, ())
    if document not in known:
        table[key] = (*known, document)
