"""Finding a tool by what it is called.

The rule: names are compared by their words, so `get-user`, `getUser` and "user, get" are one; with the server
before it or without. Only `Names.literal` looks at the characters themselves.
"""

from collections.abc import Iterable, Mapping

from mcpzip.model.entry import Entry
from mcpzip.model.limits import NAME_LIKE
from mcpzip.search.tokenizer import content, words

Pairs = list[tuple[str, str]]  # of `words`
Spoken = dict[str, tuple[int, ...]]


class Names:
    """The names of the tools of one catalog, by the numbers they are added with."""

    __slots__ = ("_literal", "_spoken")

    def __init__(self, entries: Iterable[Entry] = (), spoken: Spoken | None = None) -> None:
        """Of ``entries``, numbered in their order. spoken: what `table` gave for just these."""
        self._literal: Spoken = {}
        self._spoken: Spoken = {} if spoken is None else spoken
        for number, entry in enumerate(entries):
            for key in (entry.tool, entry.name):
                _add(self._literal, key, number)

    @property
    def table(self) -> Spoken:
        """By the words of a name, the tools of that name. Not to be changed."""
        return self._spoken

    def copy(self) -> "Names":
        """A copy, to be changed."""
        return self.renumbered(None)

    def renumbered(self, numbers: Mapping[int, int] | None) -> "Names":
        """The same names with other numbers, by the old; None: with the same."""
        names = Names()
        for table, its in ((names._literal, self._literal), (names._spoken, self._spoken)):
            if numbers is None:
                table.update(its)
            else:
                table.update((key, tuple([numbers[old] for old in old])) for key, old in its.items())
        return names

    def add(self, number: int, entry: Entry, brief: bool = False) -> None:
        """Take in ``entry``. brief: to be found as it is written only."""
        for table, key in self._keys(entry)[: 2 if brief else None]:
            _add(table, key, number)

    def remove(self, number: int, entry: Entry) -> None:
        """Take out ``entry``, added under this number."""
        for table, key in self._keys(entry):
            left = tuple([other for other in table.get(key, ()) if other != number])
            if left:
                table[key] = left
            else:
                table.pop(key, None)

    def literal(self, query: str) -> tuple[int, ...]:
        """The tools called exactly ``query``, character by character."""
        return self._literal.get(query, ())

    def spoken(self, pairs: Pairs) -> tuple[int, ...]:
        """The tools whose name has the words of ``pairs``, all and no other, in any order.

        Stop words do not count unless there are no others.
        """
        return self._spoken.get(_key(pairs), ())

    def _keys(self, entry: Entry) -> tuple[tuple[Spoken, str], ...]:
        literal = ((self._literal, entry.tool), (self._literal, entry.name))
        if len(entry.tool) > NAME_LIKE:
            return literal
        tool = words(entry.tool)
        return (
            *literal,
            (self._spoken, _key(tool)),
            (self._spoken, _key([*words(entry.server), *tool])),
        )


def _key(pairs: Pairs) -> str:
    return " ".join(sorted({term for _, term in content(pairs)}))


def _add(table: Spoken, key: str, number: int) -> None:
    known = table.get(key, ())
    if key and known[-1:] != (number,):  # numbers rise
        table[key] = (*known, number)
