"""The inverted index: for every term, the tools it stands in and what it is worth there.

The rule: an index is built whole from a catalog, never changed, and depends on the set of entries only, not on their order. A document
is a position in ``entries``, which are sorted by name, so that "lower document first" is "by name".

What a term is worth in a tool is BM25F (Robertson, Zaragoza & Taylor, CIKM 2004): frequencies are weighted by field and normalised
by field length, added, and only then saturated. It is computed at build time; a query adds up floats.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from mcpzip.model.entry import Entry
from mcpzip.search.fields import Fields
from mcpzip.search.tokenizer import is_stop_word, stem, words
from mcpzip.search.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """weight: how often a word in this field counts; length: 0 ignores the field's length, 1 divides by it in full."""

    weight: float
    length: float


FIELD_WEIGHTS: dict[str, FieldWeight] = {
    "name": FieldWeight(3.0, 0.6),
    "server": FieldWeight(1.5, 0.3),
    "title": FieldWeight(1.5, 0.6),
    "description": FieldWeight(1.0, 0.75),
    "parameters": FieldWeight(0.5, 0.75),
    "values": FieldWeight(0.3, 0.75),
    "parameter_descriptions": FieldWeight(0.2, 0.75),
}
SATURATION = 1.2  # BM25's k1

# Fields whose words a query may be repaired to, and whose written-apart words are also indexed joined.
_SPELLING_FIELDS = frozenset({"name", "server", "title", "description", "parameters"})


class Index:
    """All tools of one catalog version, searchable. Immutable; safe to read from several threads."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: tuple[Entry, ...] = tuple(sorted(entries, key=lambda entry: (entry.name, entry.raw)))
        self.names: list[tuple[int, ...]] = []
        self.terms: dict[str, int] = {}
        self._build()

    def _build(self) -> None:
        terms = self.terms
        documents: list[dict[str, list[int]]] = []
        totals: Counter[str] = Counter()
        spelled: Counter[str] = Counter()
        written: list[dict[str, list[str]]] = []
        for entry in self.entries:
            fields = Fields.of(entry)
            document: dict[str, list[int]] = {}
            spelling: dict[str, list[str]] = {}
            distinct: set[str] = set()
            for name in FIELD_WEIGHTS:
                pairs = words(getattr(fields, name))
                if name != "name":
                    pairs = [pair for pair in pairs if not is_stop_word(pair[1])]
                if not pairs:
                    continue
                document[name] = [terms.setdefault(term, len(terms)) for _, term in pairs]
                totals[name] += len(pairs)
                if name in _SPELLING_FIELDS:
                    spelling[name] = [word for word, _ in pairs]
                    distinct.update(spelling[name])
            spelled.update(distinct)
            documents.append(document)
            written.append(spelling)
            self.names.append(tuple(document.get("name", ())))
        for document, spelling in zip(documents, written, strict=True):
            for name, spellings in spelling.items():
                for left, right in pairwise(spellings):
                    joined = left + right
                    if joined in spelled:
                        document[name].append(terms[stem(joined)])
        self.vocabulary = Vocabulary(spelled)
        self._weigh(documents, totals)

    def _weigh(self, documents: Sequence[dict[str, list[int]]], totals: Counter[str]) -> None:
        count = len(documents)
        averages = {name: totals[name] / count for name in totals}
        postings: list[list[tuple[int, float]]] = [[] for _ in self.terms]
        for number, document in enumerate(documents):
            weights: dict[int, float] = {}
            for name, found in document.items():
                field = FIELD_WEIGHTS[name]
                share = field.weight / (1 - field.length + field.length * len(found) / averages[name])
                for term in found:
                    weights[term] = weights.get(term, 0.0) + share
            for term, weight in weights.items():
                postings[term].append((number, weight / (SATURATION + weight)))
        self.rarity = array("d", (log(1 + (count - len(p) + 0.5) / (len(p) + 0.5)) for p in postings))
        self.offsets = array("I", [0])
        self.documents = array("I")
        self.worths = array("f")
        for rarity, posting in zip(self.rarity, postings, strict=True):
            self.documents.extend(number for number, _ in posting)
            self.worths.extend(rarity * worth for _, worth in posting)
            self.offsets.append(len(self.documents))

    def postings(self, term: int) -> "tuple[array[int], array[float]]":
        """The documents of ``term`` in order, and what it is worth in each."""
        start, end = self.offsets[term], self.offsets[term + 1]
        return self.documents[start:end], self.worths[start:end]

    def worth(self, term: int, document: int) -> float:
        """What ``term`` is worth in ``document``; 0 when it doesn't stand there."""
        end = self.offsets[term + 1]
        place = bisect_left(self.documents, document, self.offsets[term], end)
        return self.worths[place] if place < end and self.documents[place] == document else 0.0
