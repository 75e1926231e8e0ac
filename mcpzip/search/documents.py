"""The tools of an index by number: those that were indexed by this process, and those of the index file.

The rule: a document of the file is decoded when it is first asked for. Only which tool it is is known before.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Never

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.search.semantic.vectors import Packed

Key = bytes
"""Identifies a tool: a digest of its server and its JSON."""

PENDING: Packed = b""
"""The vector of a tool that is indexed by its words, and whose vector is computed later."""

_CACHED = 4_096  # documents of the file


class Document(msgspec.Struct, frozen=True):
    """A tool in an index.

    name: with its server. name_terms: the distinct terms of the tool's own name, in order, stop words too.
    verbs: the families of the name's verb. vector: its embedding, None if it has none, or `PENDING`; that of
    a document of the index file has `Documents.vector` alone. rare_words: how many of its words are rare.
    name_only: whether only its name was indexed.
    """

    entry: Entry
    name: str
    key: Key
    name_terms: tuple[int, ...]
    verbs: int
    vector: Packed | None
    rare_words: int
    name_only: bool


def _no_file(number: int) -> Never:
    raise IndexError(number)


class Stored(msgspec.Struct, frozen=True):
    """The documents of an index file.

    entries: by number. name_only: the numbers of those that were indexed by their names only. document,
    vector: the document of a number, and its vector alone.
    """

    entries: Sequence[Entry] = ()
    name_only: Sequence[int] = ()
    document: Callable[[int], Document] = _no_file
    vector: Callable[[int], Packed | None] = _no_file


class Documents:
    """Documents by number, None for a removed one. Changed by the update that builds an index only."""

    __slots__ = ("_added", "_cache", "_changed", "_stored")

    def __init__(self, added: Sequence[Document] = (), stored: Stored = Stored()) -> None:  # noqa: B008
        """added: the documents whose numbers follow those of ``stored``."""
        self._stored = stored
        self._added: list[Document | None] = list(added)
        self._changed: dict[int, Document | None] = {}  # documents of the file that were replaced
        self._cache: dict[int, Document] = {}

    def __len__(self) -> int:
        return len(self._stored.entries) + len(self._added)

    def __getitem__(self, number: int) -> Document | None:
        document = self._cache.get(number)
        if document is not None:
            return document
        stored = len(self._stored.entries)
        if number >= stored:
            return self._added[number - stored]
        if number in self._changed:
            return self._changed[number]
        document = self._stored.document(number)
        if len(self._cache) >= _CACHED:
            self._cache = {}
        self._cache[number] = document
        return document

    def __setitem__(self, number: int, document: Document | None) -> None:
        stored = len(self._stored.entries)
        if number >= stored:
            self._added[number - stored] = document
        else:
            self._changed[number] = document
            self._cache.pop(number, None)

    def __iter__(self) -> Iterator[Document | None]:
        return map(self.__getitem__, range(len(self)))

    def append(self, document: Document) -> None:
        """Add ``document`` under the next number."""
        self._added.append(document)

    def vector(self, number: int) -> Packed | None:
        """The vector of the document with this number, which is not removed."""
        if number < len(self._stored.entries) and number not in self._changed:
            return self._stored.vector(number)
        document = self[number]
        return document.vector if document else None

    def copy(self) -> "Documents":
        """A copy that can be changed."""
        copied = Documents(stored=self._stored)
        copied._added, copied._changed = self._added.copy(), self._changed.copy()
        return copied

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """The numbers and the tools of the documents that are not removed."""
        changed = self._changed
        for number, entry in enumerate(self._stored.entries):
            if number not in changed or changed[number] is not None:
                yield number, entry
        for number, document in enumerate(self._added, len(self._stored.entries)):
            if document is not None:
                yield number, document.entry

    def pending(self) -> list[int]:
        """The documents whose vectors are pending. No document of a file is."""
        first = len(self._stored.entries)
        own = [*self._changed.items(), *enumerate(self._added, first)]
        return sorted(number for number, document in own if document and document.vector == PENDING)

    def vectors(self) -> dict[int, Packed]:
        """The vectors of the documents that have one, numbers ascending."""
        found: dict[int, Packed] = {}
        for number in range(len(self)):
            if vector := self.vector(number):
                found[number] = vector
        return found

    def name_only(self) -> Iterator[Entry]:
        """The tools that were indexed by their names only."""
        entries, changed = self._stored.entries, self._changed
        yield from [entries[number] for number in self._stored.name_only if number not in changed]
        own = [*changed.values(), *self._added]
        yield from [document.entry for document in own if document and document.name_only]
