"""Where each term stands, and what it is worth there.

The rule: the bulk lies in three flat arrays, as a file holds them (they may be views of one); what came since
lies beside it, by term, until it is worth packing. Nothing here changes once made: `with_added` and `packed`
make anew what differs and share the rest.

    documents[offsets[t] : offsets[t + 1]], worths[…]    the documents of term t, rising; its worth in each
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from struct import Struct

Posting = tuple[int, float]
"""A document, and what a term is worth in it."""
PAIR = Struct("=If")
"""A posting as bytes. The garbage collector, which stops everybody, looks at every list and array there is,
and at no bytes.
"""


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of all terms, by number. added: of some terms, the documents that came later,
    as `PAIR`s.
    """

    offsets: Sequence[int] = field(default_factory=lambda: array("I", (0,)))
    documents: Sequence[int] = field(default_factory=lambda: array("I"))
    postings_of: Sequence[float] = field(default_factory=lambda: array("f"))
    added: Mapping[int, bytes] = field(default_factory=dict)

    def of(self, term: int) -> Iterable[Posting]:
        """The postings of ``term``, documents rising."""
        start, end = self._span(term)
        packed = zip(self.documents[start:end], self.postings_of[start:end], strict=True)
        if term not in self.added:
            return packed
        return chain(packed, PAIR.iter_unpack(self.added[term]))

    def count(self, term: int) -> int:
        """In how many documents ``term`` stands."""
        start, end = self._span(term)
        return end - start + len(self.added.get(term, b"")) // PAIR.size

    def has(self, term: int, document: int) -> bool:
        """Whether ``term`` stands in ``document``."""
        start, end = self._span(term)
        place = bisect_left(self.documents, document, start, end)
        if place < end and self.documents[place] == document:
            return True
        later = memoryview(self.added.get(term, b"")).cast("I")[::2]  # between the worths
        place = bisect_left(later, document)
        return place < len(later) and later[place] == document

    def with_added(self, more: Mapping[int, bytes]) -> "Postings":
        """These and ``more``, by term; the documents of ``more`` are higher than any before."""
        added = dict(self.added)
        for term, postings in more.items():
            before = added.get(term)
            added[term] = postings if before is None else before + postings
        return Postings(self.offsets, self.documents, self.postings_of, added)

    def packed(self, terms: Iterable[int], renumbered: Mapping[int, int] | None) -> "Postings":
        """The postings of ``terms``, numbered in that order, all flat.

        renumbered: the new number, rising with the old, of every document that stays; None: all do, as is.
        """
        offsets, documents, worths = array("I", (0,)), array("I"), array("f")
        for term in terms:
            for document, worth in self.of(term):
                number = document if renumbered is None else renumbered.get(document)
                if number is not None:
                    documents.append(number)
                    worths.append(worth)
            offsets.append(len(documents))
        return Postings(offsets, documents, worths)

    def _span(self, term: int) -> tuple[int, int]:
        if term + 1 >= len(self.offsets):
            return 0, 0
        return self.offsets[term], self.offsets[term + 1]
