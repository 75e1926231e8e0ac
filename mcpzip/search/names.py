"""Finding a tool by what it is called.

The rule: names are compared by their words, so `get-user`, `getUser` and "user, get" are one; with the server
before it or without. Only `Names.literal` looks at the characters themselves.
"""

from collections.abc import Sequence

from mcpzip.model.entry import Entry
from mcpzip.search.tokenizer import content, words


class Names:
    """The names of the tools of one catalog. A document is a position in the entries given."""

    __slots__ = ("_literal", "_spoken")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._literal: dict[str, tuple[int, ...]] = {}
        self._spoken: dict[str, tuple[int, ...]] = {}
        for document, entry in enumerate(entries):
            _add(self._literal, entry.tool, document)
            _add(self._literal, entry.name, document)
            tool = words(entry.tool)
            _add(self._spoken, _key(tool), document)
            _add(self._spoken, _key(words(entry.server) + tool), document)

    def literal(self, query: str) -> tuple[int, ...]:
        """The tools called exactly ``query``, character by character."""
        return self._literal.get(query, ())

    def spoken(self, pairs: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        """The tools whose name has the words of ``pairs`` (of `words`), all and no other, in any order.

        Stop words do not count unless there are no others.
        """
        return self._spoken.get(_key(pairs), ())


def _key(pairs: Sequence[tuple[str, str]]) -> str:
    return " ".join(sorted({term for _, term in content(list(pairs))}))


def _add(table: dict[str, tuple[int, ...]], key: str, document: int) -> None:
    known = table.get(key, ())
    if key and document not in known:
        table[key] = (*known, document)
