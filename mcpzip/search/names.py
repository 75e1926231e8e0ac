"""Finds the tools whose name is the query, character by character or by its words; `fusion` ranks them first.

The rule: names are compared by their words, with the server's name or without, so `get-user`, `getUser` and
"user, get" are the same name. Only `Names.literal` compares characters.
"""

from collections.abc import Mapping

from mcpzip.model.entry import Entry
from mcpzip.model.limits import NAME_LIKE
from mcpzip.search.text_table import NumbersByText
from mcpzip.search.tokenizer import content_words, words

Pairs = list[tuple[str, str]]
"""Words and terms, of `tokenizer.words`."""
NameTable = dict[str, tuple[int, ...]]
"""Documents by name."""
StoredNames = NumbersByText
"""The same in the index file."""


class Names:
    """The names of the tools of one catalog, each with the number of its document."""

    __slots__ = ("_by_words", "_literal")

    def __init__(self, literal: StoredNames | None = None, by_words: StoredNames | None = None) -> None:
        """literal, by_words: the tables of the same names, where these are stored; then nothing can be added
        or removed.
        """
        self._literal: NameTable | StoredNames = {} if literal is None else literal
        self._by_words: NameTable | StoredNames = {} if by_words is None else by_words

    @property
    def tables(self) -> tuple[NameTable, NameTable]:
        """The documents by their names, and by the words of these."""
        return self._literal.copy(), self._by_words.copy()

    def copy(self) -> "Names":
        """A copy that can be changed."""
        names = Names()
        names._literal, names._by_words = self.tables
        return names

    def renumbered(self, numbers: Mapping[int, int]) -> "Names":
        """The same names with new document numbers. numbers: new by old."""
        names = Names()
        names._literal, names._by_words = (
            {key: tuple([numbers[n] for n in documents]) for key, documents in table.items()}
            for table in self.tables
        )
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
        return self._literal.get(query) or ()

    def by_words(self, pairs: Pairs) -> tuple[int, ...]:
        """The tools whose name has the words of ``pairs`` and no others, in any order. Stop words are ignored
        unless there are no other words.
        """
        return self._by_words.get(_key(pairs)) or ()

    def _keys(self, entry: Entry) -> tuple[tuple[NameTable, str], ...]:
        literal, by_words = self._literal, self._by_words
        if not isinstance(literal, dict) or not isinstance(by_words, dict):
            raise TypeError("names in a file can't be changed")
        keys = ((literal, entry.tool), (literal, entry.name))
        if len(entry.tool) > NAME_LIKE:
            return keys
        tool = words(entry.tool)
        return (*keys, (by_words, _key(tool)), (by_words, _key([*words(entry.server), *tool])))


def _key(pairs: Pairs) -> str:
    return " ".join(sorted({term for _, term in content_words(pairs)}))


def _add(table: NameTable, key: str, number: int) -> None:
    documents = table.get(key, ())
    if key and documents[-1:] != (number,):  # numbers ascend, so a duplicate is the last
        table[key] = (*documents, number)
