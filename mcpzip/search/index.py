"""The inverted index: for every term, the tools it stands in and what it is worth there.

The rule: an index is built whole from a set of entries, never changes, and does not depend on their order. A
*document* is a position in ``entries``, which are sorted by name, so that the lower of two documents is the
first by name.

What a term is worth in a tool is BM25F (Robertson, Zaragoza & Taylor, "Simple BM25 extension to multiple
weighted fields", CIKM 2004): counts are weighted by field and normalised by the field's length, added up, and
only then saturated. That is done here, once; a query only adds up.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from mcpzip.model.entry import Entry
from mcpzip.search.fields import Fields
from mcpzip.search.names import Names
from mcpzip.search.tokenizer import is_stop_word, words
from mcpzip.search.verbs import families, first_verb
from mcpzip.search.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """weight: what a word counts in this field; length: 0 ignores how long the field is, 1 divides by it."""

    weight: float
    length: float


# In the order of `Fields`. Set by cross-validation and rounded: no constant of this package has a neighbour
# that is better by more than .001 of nDCG@10 (`python -m bench.retrieval.constants`). Beside each, what is
# lost without the field.
FIELD_WEIGHTS: dict[str, FieldWeight] = {
    "name": FieldWeight(3.0, 0.6),  # −.023; the length of a name doesn't matter
    "server": FieldWeight(2.0, 0.3),  # −.013
    "title": FieldWeight(1.5, 0.6),  # a second name, for the few that have one: half the name's weight
    "description": FieldWeight(1.0, 0.7),  # −.060; a length of .2 or .9: −.005, −.003
    "parameters": FieldWeight(0.8, 0.3),  # −.004
    "values": FieldWeight(0.2, 0.3),  # nothing on average; the only place that says "webp" or "weekly"
    "parameter_descriptions": FieldWeight(0.4, 0.3),  # −.003
}
SATURATION = 1.2  # BM25's k1, at its textbook value; .9: −.002, 2: −.002

_REMEMBERED = 16_384  # written words, while an index is built


class Index:
    """The tools of one catalog, searchable. Never changes; any number of threads may read it.

    entries: by name. terms: every indexed term and its number. rarity: by term, its inverse document
    frequency, above 0. rarest: the rarity of a term that stands nowhere. vocabulary, names: lookups of words
    and of tools. verbs: the verb families of the terms that have any.

    By document: name_terms, the distinct terms of the tool's name in order; name_rarity, the sum of their
    rarities; verb, the families of the name's verb; server, a number. By server: servers, its name;
    server_terms, the terms of that. sizes: how many tools have a (server, read_only).
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: tuple[Entry, ...] = tuple(sorted(entries, key=lambda entry: (entry.name, entry.raw)))
        self.terms: dict[str, int] = {}
        self.rarest = log(1 + (len(self.entries) + 0.5) / 0.5)
        reader = _Reader(self.terms)
        self.names = Names()
        for document, entry in enumerate(self.entries):
            self.names.add(document, entry, reader.read(entry))
        self._weigh(reader)
        self.vocabulary = Vocabulary({word: self.frequency([term]) for word, term in reader.spelled.items()})
        self._describe_names(reader)

    def worths(self, term: int) -> Iterable[tuple[int, float]]:
        """``(document, worth)`` of every document ``term`` stands in, in order."""
        start, end = self._offsets[term], self._offsets[term + 1]
        return zip(self._documents[start:end], self._worths[start:end], strict=True)

    def frequency(self, terms: Iterable[int]) -> int:
        """In how many documents ``terms`` stand, those with several counted for each."""
        return sum(self._offsets[term + 1] - self._offsets[term] for term in terms)

    def has(self, document: int, term: int) -> bool:
        """Whether ``term`` stands in ``document``."""
        end = self._offsets[term + 1]
        place = bisect_left(self._documents, document, self._offsets[term], end)
        return place < end and self._documents[place] == document

    def _weigh(self, reader: "_Reader") -> None:
        count = len(self.entries)
        documents = [array("I") for _ in self.terms]
        weights = [array("f") for _ in self.terms]
        fields = [
            (field.weight, 1 - field.length, field.length * count / (total or 1))
            for field, total in zip(FIELD_WEIGHTS.values(), reader.totals, strict=True)
        ]
        for document, texts in enumerate(reader.texts()):
            sums: dict[int, float] = {}
            for place, length, found in texts:
                weight, flat, slope = fields[place]
                share = weight / (flat + slope * length)
                for term in found:
                    sums[term] = sums.get(term, 0.0) + share
            for term, total in sums.items():
                documents[term].append(document)
                weights[term].append(total / (SATURATION + total))
        self.rarity = array("d")
        self._offsets = array("I", (0,))
        self._documents = array("I")
        self._worths = array("f")
        for standing, shares in zip(documents, weights, strict=True):
            rarity = log(1 + (count - len(standing) + 0.5) / (len(standing) + 0.5))
            self.rarity.append(rarity)
            self._documents.extend(standing)
            self._worths.extend([rarity * share for share in shares])
            self._offsets.append(len(self._documents))

    def _describe_names(self, reader: "_Reader") -> None:
        self.sizes = Counter((entry.server, entry.read_only) for entry in self.entries)
        self.name_terms = reader.names
        self.name_rarity = array("f", (sum(self.rarity[term] for term in name) for name in reader.names))
        self.verbs = {number: bits for term, number in self.terms.items() if (bits := families(term))}
        self.verb = array("I", reader.verbs)
        numbers: dict[str, int] = {}
        self.server = array("I", (numbers.setdefault(entry.server, len(numbers)) for entry in self.entries))
        self.servers = tuple(numbers)
        self.server_terms = [
            tuple(self.terms[term] for _, term in words(server) if term in self.terms)
            for server in self.servers
        ]


class _Reader:
    """The first pass: every field of every entry as term numbers, and what must be known of all to weigh any.

    totals: by field, the terms of all entries. names, verbs: by entry, the terms and the verb families of its
    name. spelled: every word met and its term.
    """

    def __init__(self, terms: dict[str, int]) -> None:
        self.terms = terms
        self.totals = [0] * len(FIELD_WEIGHTS)
        self.names: list[tuple[int, ...]] = []
        self.verbs: list[int] = []
        self.spelled: dict[str, int] = {}
        self._written = _Written(self)
        self._found = array("I")  # the terms of all fields of all entries, one after the other
        self._lengths = array("I")  # how many of them each field has

    def number(self, word: str, term: str) -> int:
        """The number of ``term``, that ``word`` stands for."""
        number = self.spelled[word] = self.terms.setdefault(term, len(self.terms))
        return number

    def read(self, entry: Entry) -> list[tuple[str, str]]:
        """Take in the next entry; the words of its name."""
        fields = Fields.of(entry)
        name = words(fields.name)
        numbers = [self.number(*pair) for pair in name]  # with its stop words: "who am i" is one
        self.names.append(tuple(dict.fromkeys(numbers)))
        self.verbs.append(first_verb(term for _, term in name))
        self._add(0, numbers)
        for place, text in enumerate(fields.texts(), 1):
            numbers = []
            for written in text.split():
                numbers += self._written[written]
            self._add(place, numbers)
        return name

    def texts(self) -> Iterator[list[tuple[int, int, Sequence[int]]]]:
        """For each entry: of every field that has terms its place, its length, and its terms.

        Where two neighbours joined are a word of the catalog ("Git Hub"), that word stands there too, but
        takes no room: it is no longer text.
        """
        terms = list(self.terms)
        known = self.spelled
        count = len(FIELD_WEIGHTS)
        end = 0
        for first in range(0, len(self._lengths), count):
            texts: list[tuple[int, int, Sequence[int]]] = []
            for place, length in enumerate(self._lengths[first : first + count]):
                if length:
                    found = self._found[end : end + length]
                    end += length
                    joined = [terms[left] + terms[right] for left, right in pairwise(found)]
                    found.extend([known[word] for word in joined if word in known])
                    texts.append((place, length, found))
            yield texts

    def _add(self, place: int, numbers: list[int]) -> None:
        self._found.extend(numbers)
        self._lengths.append(len(numbers))
        self.totals[place] += len(numbers)


class _Written(dict[str, list[int]]):
    """By run of characters without white space: the terms in it, stop words left out.

    Four fifths of the runs in a catalog were met before; remembering them is what makes building fast. It
    starts anew when it is full, so that a large catalog takes no more of it than a small one.
    """

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self._reader = reader

    def __missing__(self, written: str) -> list[int]:
        if len(self) >= _REMEMBERED:
            self.clear()
        number = self._reader.number
        numbers = self[written] = [number(*pair) for pair in words(written) if not is_stop_word(pair)]
        return numbers
