"""Finding a tool by what it is called.

The rule: names are compared by their words, so `get-user`, `getUser` and "user, get" are one; with the server
before it or without. Only `Names.literal` looks at the characters themselves.
"""

from mcpzip.model.entry import Entry
from mcpzip.search.tokenizer import content, words

Pairs = list[tuple[str, str]]  # of `words`


class Names:
    """The names of the tools of one catalog, by the numbers they are added with."""

    __slots__ = ("_literal", "_spoken")

    def __init__(self) -> None:
        self._literal: dict[str, tuple[int, ...]] = {}
        self._spoken: dict[str, tuple[int, ...]] = {}

    def add(self, number: int, entry: Entry, tool: Pairs) -> None:
        """Take in ``entry``, the words of whose own name are ``tool``."""
        _add(self._literal, entry.tool, number)
        _add(self._literal, entry.name, number)
        _add(self._spoken, _key(tool), number)
        _add(self._spoken, _key([*words(entry.server), *tool]), number)

    def literal(self, query: str) -> tuple[int, ...]:
        """The tools called exactly ``query``, character by character."""
        return self._literal.get(query, ())

    def spoken(self, pairs: Pairs) -> tuple[int, ...]:
        """The tools whose name has the words of ``pairs``, all and no other, in any order.

        Stop words do not count unless there are no others.
        """
        return self._spoken.get(_key(pairs), ())


def _key(pairs: Pairs) -> str:
    return " ".join(sorted({term for _, term in content(pairs)}))


def _add(table: dict[str, tuple[int, ...]], key: str, number: int) -> None:
    known = table.get(key, ())
    if key and number not in known:
        table[key] = (*known, number)
