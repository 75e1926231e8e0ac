"""Finding a tool by what it is called, in full or by its beginning.

The rule: a name is compared by its words, so `get-user`, `getUser` and "get user" are one name; with or without the server
before it. Only `literal` looks at the characters themselves.
"""

from bisect import bisect_left
from collections.abc import Sequence

from mcpzip.model.entry import Entry
from mcpzip.search.tokenizer import tokenize, words

_MOST_BEGUN = 64


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
                _add(self._spoken, said(tokenize(name, keep_stop_words=True)), document)
        self._begun = sorted(begun)

    def literal(self, query: str) -> tuple[int, ...]:
        """The tools called exactly ``query``, character by character."""
        return self._literal.get(query, ())

    def spoken(self, query: str) -> tuple[int, ...]:
        """The tools whose name has the words of ``query`` (see `said`), all of them and no other, in any order."""
        return self._spoken.get(query, ())

    def begun(self, query: Sequence[str]) -> tuple[int, ...]:
        """The tools whose name begins with the words of ``query``, first by name; none when they are too many to mean one.

        The last word may be unfinished when it isn't the only one: "list chan", but "post" is no beginning of "postgres".
        """
        if not query:
            return ()
        start = " ".join(query) + (" " if len(query) == 1 else "")
        low, high = bisect_left(self._begun, (start, 0)), bisect_left(self._begun, (start + "\U0010ffff", 0))
        return tuple(sorted({document for _, document in self._begun[low:high]})) if high - low <= _MOST_BEGUN else ()


def said(terms: Sequence[str]) -> str:
    """The key of a name or query for `Names.spoken`: its distinct terms in order of the alphabet."""
    return " ".join(sorted(set(terms)))


def _add(table: dict[str, tuple[int, ...]], key: str, document: int) -> None:
    known = table.get(key, ())
    if document not in known:
        table[key] = (*known, document)
