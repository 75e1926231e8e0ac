"""The postings lists of an inverted index: the documents of each term, and its weight in each.

The rule: most postings are in three flat arrays, as they are in the index file (and may be views of it).
Postings added later are stored by term until `compacted` makes new arrays. Nothing here changes once made:
`with_added` and `compacted` return new postings, which share what is equal.

    documents[offsets[t] : offsets[t + 1]], weights[…]    term t's documents, ascending; its weight in each
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from struct import Struct

import msgspec

Posting = tuple[int, float]
"""A document, and the weight of a term in it."""
POSTING = Struct("=If")
"""A posting as bytes, which, unlike lists and arrays, the garbage collector need not traverse."""


class Postings(msgspec.Struct, frozen=True):
    """The postings of all terms, by term number. added: of some terms, packed `POSTING`s added later."""

    offsets: Sequence[int] = msgspec.field(default_factory=lambda: array("I", (0,)))
    documents: Sequence[int] = msgspec.field(default_factory=lambda: array("I"))
    weights: Sequence[float] = msgspec.field(default_factory=lambda: array("f"))
    added: Mapping[int, bytes] = {}

    def of(self, term: int) -> Iterable[Posting]:
        """The postings of ``term``, documents ascending."""
        start, end = self._span(term)
        flat = zip(self.documents[start:end], self.weights[start:end], strict=True)
        if term not in self.added:
            return flat
        return chain(flat, POSTING.iter_unpack(self.added[term]))

    def count(self, term: int) -> int:
        """The number of documents of ``term``."""
        start, end = self._span(term)
        return end - start + len(self.added.get(term, b"")) // POSTING.size

    def has(self, term: int, document: int) -> bool:
        """Whether ``document`` has ``term``."""
        return self.weights_in(term, (document,))[0] != 0.0

    def weights_in(self, term: int, documents: Sequence[int]) -> list[float]:
        """The weight of ``term`` in each of ``documents``; 0 in one that does not have it."""
        start, end = self._span(term)
        known, weights = self.documents, self.weights
        added = self.added.get(term, b"")
        added_documents = memoryview(added).cast("I")[::2]  # every second number is a weight
        found: list[float] = []
        for document in documents:
            i = bisect_left(known, document, start, end)
            if i < end and known[i] == document:
                found.append(weights[i])
            elif added and (i := bisect_left(added_documents, document)) < len(added_documents):
                number, weight = POSTING.unpack_from(added, i * POSTING.size)
                found.append(weight if number == document else 0.0)
            else:
                found.append(0.0)
        return found

    def with_added(self, more: Mapping[int, bytes]) -> "Postings":
        """These postings and ``more``, by term, whose documents have higher numbers than all others."""
        added = dict(self.added)
        for term, postings in more.items():
            before = added.get(term)
            added[term] = postings if before is None else before + postings
        return Postings(self.offsets, self.documents, self.weights, added)

    def compacted(self, terms: Iterable[int], renumbered: Mapping[int, int] | None) -> "Postings":
        """The postings of ``terms``, numbered in that order, in flat arrays only.

        renumbered: the new numbers, in the same order, of the documents that are kept; None: all are kept,
        with their numbers.
        """
        offsets, documents, weights = array("I", (0,)), array("I"), array("f")
        for term in terms:
            if renumbered is None:
                start, end = self._span(term)
                documents.extend(self.documents[start:end])
                weights.extend(self.weights[start:end])
                if added := self.added.get(term):
                    documents.extend(memoryview(added).cast("I")[::2])
                    weights.extend(memoryview(added).cast("f")[1::2])
            else:
                kept = [(renumbered[old], weight) for old, weight in self.of(term) if old in renumbered]
                documents.extend([new for new, _ in kept])
                weights.extend([weight for _, weight in kept])
            offsets.append(len(documents))
        return Postings(offsets, documents, weights)

    def _span(self, term: int) -> tuple[int, int]:
        if term + 1 >= len(self.offsets):
            return 0, 0
        return self.offsets[term], self.offsets[term + 1]
