"""Finds the tools whose name is the query, character by character or by its words; `fusion` ranks them first.

The rule: names are compared by their words, with the server's name or without, so `get-user`, `getUser` and
"user, get" are the same name. Only `Names.literal` compares characters.
"""

from collections.abc import Iterable, Mapping

from mcpzip.model.entry import Entry
from mcpzip.model.limits import NAME_LIKE
from mcpzip.search.tokenizer import content_words, words

Pairs = list[tuple[str, str]]
"""Words and terms, of `tokenizer.words`."""
NameTable = dict[str, tuple[int, ...]]
"""Documents by name."""


class Names:
    """The names of the tools of one catalog, each with the number of its document."""

    __slots__ = ("_by_words", "_literal")

    def __init__(self, entries: Iterable[Entry] = (), by_words: NameTable | None = None) -> None:
        """entries: numbered in their order. by_words: the `table` of the same entries, where it is known."""
        self._literal: NameTable = {}
        self._by_words: NameTable = {} if by_words is None else by_words
        for number, entry in enumerate(entries):
            for key in (entry.tool, entry.name):
                _add(self._literal, key, number)

    @property
    def table(self) -> NameTable:
        """The documents by the words of their name. Must not be changed."""
        return self._by_words

    def copy(self) -> "Names":
        """A copy that can be changed."""
        return self.renumbered(None)

    def renumbered(self, numbers: Mapping[int, int] | None) -> "Names":
        """The same names with new document numbers. numbers: new by old; None: unchanged."""
        names = Names()
        for new, old in ((names._literal, self._literal), (names._by_words, self._by_words)):
            if numbers is None:
                new.update(old)
            else:
                new.update((key, tuple([numbers[n] for n in documents])) for key, documents in old.items())
        return names

    def add(self, number: int, entry: Entry, name_only: bool = False) -> None:
        """Add ``entry``. name_only: only `literal` finds it."""
        for table, key in self._keys(entry)[: 2 if name_only else None]:
            _add(table, key, number)

    def remove(self, number: int, entry: Entry) -> None:
        """Remove ``entry``, which was added under this number."""
        for table, key in self._keys(entry):
            left = tuple([other for other in table.get(key, ()) if other != number])
            if left:
                table[key] = left
            else:
                table.pop(key, None)

    def literal(self, query: str) -> tuple[int, ...]:
        """The tools whose name is ``query``, character by character."""
        return self._literal.get(query, ())

    def by_words(self, pairs: Pairs) -> tuple[int, ...]:
        """The tools whose name has the words of ``pairs`` and no others, in any order. Stop words are ignored
        unless there are no other words.
        """
        return self._by_words.get(_key(pairs), ())

    def _keys(self, entry: Entry) -> tuple[tuple[NameTable, str], ...]:
        literal = ((self._literal, entry.tool), (self._literal, entry.name))
        if len(entry.tool) > NAME_LIKE:
            return literal
        tool = words(entry.tool)
        return (
            *literal,
            (self._by_words, _key(tool)),
            (self._by_words, _key([*words(entry.server), *tool])),
        )


def _key(pairs: Pairs) -> str:
    return " ".join(sorted({term for _, term in content_words(pairs)}))


def _add(table: NameTable, key: str, number: int) -> None:
    documents = table.get(key, ())
    if key and documents[-1:] != (number,):  # numbers ascend, so a duplicate is the last
        table[key] = (*documents, number)
