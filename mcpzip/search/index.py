"""The inverted index: the tools of one catalog, searchable by their terms and by what they mean.

The rule: an index never changes; `updated` makes the next one, shares with it what is the same, and analyses
only tools it had not. What it answers depends on the set of its tools alone: not on their order, nor on
whether it was built at once, grew tool by tool, or was read from a file. A *document* is a number of a tool;
which number means nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from math import log

from mcpzip.model.entry import Entry
from mcpzip.search.analysis import Analysis, Analyst
from mcpzip.search.names import Names
from mcpzip.search.postings import Posting, Postings
from mcpzip.search.semantic.vectors import Packed, Vectors
from mcpzip.search.tokenizer import words
from mcpzip.search.verbs import families, verbs
from mcpzip.search.vocabulary import Vocabulary

LOOSE = 0.25  # of the documents may be gone or lie outside the flat arrays before these are made anew

Key = bytes
"""What a tool is recognised by: a digest of its server and its text."""


def key_of(entry: Entry) -> Key:
    """The key of ``entry``: tools of one key have the same analysis."""
    return blake2b(b"%b\0%b" % (entry.server.encode(), entry.raw), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Document:
    """A tool in an index. name: as it is called. terms: the distinct terms of the tool's own name, in order,
    stop words too. verb: the families of the name's verb. vector: what it means.
    """

    entry: Entry
    name: str
    key: Key
    terms: tuple[int, ...]
    verb: int
    vector: Packed | None


@dataclass(frozen=True)
class Index:
    """The tools of one catalog, searchable. Threads may share it.

    documents: by number, None where a tool is gone. numbers: the documents there are, by key. terms: the
    number of every term that ever stood in one. written: every word that stands in a tool, and in how many.
    names: the tools by what they are called. dimension: of the vectors, 0 when there are none.
    """

    documents: Sequence[Document | None] = ()
    numbers: Mapping[Key, int] = field(default_factory=dict)
    terms: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    postings: Postings = field(default_factory=Postings)
    dimension: int = 0
    _gone: Mapping[int, int] = field(default_factory=dict)  # documents that are, of those of a term
    _loose: int = 0  # documents that are gone or were added since the arrays were made
    _followed: Mapping[Packed, Packed] = field(default_factory=dict)  # see `Vectors`

    def __len__(self) -> int:
        return len(self.numbers)

    def lacks(self, entries: Iterable[Entry]) -> int:
        """How many of ``entries`` are not in it."""
        return sum(key_of(entry) not in self.numbers for entry in entries)

    def updated(self, entries: Iterable[Entry], analyst: Analyst) -> "Index":
        """The index of exactly ``entries``."""
        wanted = {key_of(entry): entry for entry in entries}
        gone = [number for key, number in self.numbers.items() if key not in wanted]
        new = {key: entry for key, entry in wanted.items() if key not in self.numbers}
        if not gone and not new:
            return self
        change = _Change(self)
        for number in gone:
            change.remove(number, analyst)
        for key, entry in new.items():
            change.add(key, entry, analyst)
        index = change.done()
        return index.packed() if index._loose > LOOSE * len(index) else index

    @property
    def followed(self) -> Mapping[Packed, Packed]:
        """Of every vector, the leader of its cluster, as far as that is known."""
        if "meanings" not in self.__dict__ or self.meanings is None:
            return self._followed
        documents, vectors = self.meanings
        kept = [self.document(number).vector or b"" for number in documents]
        return dict(zip(kept, map(vectors.leaders.__getitem__, vectors.followers), strict=False))

    def packed(self) -> "Index":
        """The same tools with nothing loose: documents numbered anew, unused terms left out."""
        if not self._loose:
            return self
        kept = sorted(self.numbers.values())
        renumbered = {old: new for new, old in enumerate(kept)}
        terms = [term for term in self.terms if self.number(term) is not None]
        numbers = {self.terms[term]: new for new, term in enumerate(terms)}
        documents = []
        for old in kept:
            document = self.document(old)
            named = tuple(numbers[term] for term in document.terms)
            documents.append(
                Document(document.entry, document.name, document.key, named, document.verb, document.vector)
            )
        return Index(
            documents=documents,
            numbers={document.key: number for number, document in enumerate(documents)},
            terms={term: number for number, term in enumerate(terms)},
            written=self.written,
            names=self.names.renumbered(renumbered),
            postings=self.postings.packed(
                (self.terms[term] for term in terms), renumbered if len(kept) < len(self.documents) else None
            ),
            dimension=self.dimension,
            _followed=self.followed,
        )

    def document(self, number: int) -> Document:
        """The document of this number, which must be there."""
        document = self.documents[number]
        assert document is not None, "a document that is gone"
        return document

    def number(self, term: str) -> int | None:
        """The number of ``term``; None when it stands nowhere."""
        number = self.terms.get(term)
        if number is None or not self._gone:
            return number
        return number if self.frequency(number) else None

    def frequency(self, term: int) -> int:
        """In how many tools ``term`` stands."""
        return self.postings.count(term) - self._gone.get(term, 0)

    def rarity(self, term: int) -> float:
        """The inverse document frequency of ``term``, above 0."""
        rarity = self._rarities.get(term)
        if rarity is None:
            standing = self.frequency(term)
            rarity = log(1 + (len(self) - standing + 0.5) / (standing + 0.5))
            self._rarities[term] = rarity
        return rarity

    @cached_property
    def rarest(self) -> float:
        """The rarity of a term that stands nowhere."""
        return log(1 + (len(self) + 0.5) / 0.5)

    def worths(self, term: int) -> Iterable[Posting]:
        """What ``term`` is worth, 0…1, in every document it stands in."""
        found = self.postings.of(term)
        if term not in self._gone:
            return found
        documents = self.documents
        return [(document, worth) for document, worth in found if documents[document] is not None]

    def has(self, document: int, term: int) -> bool:
        """Whether ``term`` stands in ``document``."""
        return self.postings.has(term, document)

    def server_terms(self, server: str) -> tuple[int, ...]:
        """The terms of the name of ``server`` that stand in some tool."""
        terms = self._server_terms.get(server)
        if terms is None:
            found = (self.number(term) for _, term in words(server))
            terms = self._server_terms[server] = tuple(term for term in found if term is not None)
        return terms

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the catalog."""
        return Vocabulary(self.written)

    @cached_property
    def verbs(self) -> dict[int, int]:
        """The terms of the catalog that are verbs, and the families of each."""
        return {number: families(verb) for verb in verbs() if (number := self.number(verb)) is not None}

    @cached_property
    def sizes(self) -> Counter[tuple[str, bool]]:
        """How many tools there are of each (server, read_only)."""
        return Counter(
            (document.entry.server, document.entry.read_only) for document in self.documents if document
        )

    @cached_property
    def meanings(self) -> tuple[list[int], Vectors] | None:
        """The documents whose meaning is known, and their vectors; None when of none."""
        found = [number for number, document in enumerate(self.documents) if document and document.vector]
        if not found:
            return None
        vectors = [vector for number in found if (vector := self.document(number).vector)]
        return found, Vectors(vectors, self.dimension, self._followed)

    @cached_property
    def _rarities(self) -> dict[int, float]:
        return {}

    @cached_property
    def _server_terms(self) -> dict[str, tuple[int, ...]]:
        return {}


class _Change:
    """The next index in the making."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._documents = list(index.documents)
        self._numbers = dict(index.numbers)
        self._terms = dict(index.terms)
        self._written = Counter(index.written)
        self._names = index.names.copy()
        self._postings: dict[int, list[Posting]] = {}
        self._gone = Counter(index._gone)
        self._loose = index._loose
        self._dimension = index.dimension

    def remove(self, number: int, analyst: Analyst) -> None:
        """Take out a document. Analysing it once more is cheaper than keeping what it consists of."""
        document = self._index.document(number)
        analysis = analyst.analyse(document.entry, with_meaning=False)
        self._gone.update([self._terms[term] for term in analysis.worths])
        self._written.subtract(analysis.written.keys())
        for word in analysis.written:
            if self._written[word] <= 0:
                del self._written[word]
        self._names.remove(number, document.entry)
        self._documents[number] = None
        del self._numbers[document.key]
        self._loose += 1

    def add(self, key: Key, entry: Entry, analyst: Analyst) -> None:
        """Take in a tool."""
        analysis = analyst.analyse(entry)
        number = len(self._documents)
        for term, worth in analysis.worths.items():
            self._postings.setdefault(self._number(term), []).append((number, worth))
        self._written.update(analysis.written.keys())
        self._names.add(number, entry)
        self._documents.append(self._document(key, entry, analysis))
        self._numbers[key] = number
        self._loose += 1
        if analysis.vector:
            self._dimension = 2 * len(analysis.vector)

    def _document(self, key: Key, entry: Entry, analysis: Analysis) -> Document:
        terms = tuple(self._number(term) for term in analysis.name)
        return Document(entry, entry.name, key, terms, analysis.verb, analysis.vector)

    def _number(self, term: str) -> int:
        return self._terms.setdefault(term, len(self._terms))

    def done(self) -> Index:
        return Index(
            documents=self._documents,
            numbers=self._numbers,
            terms=self._terms,
            written=self._written,
            names=self._names,
            postings=self._index.postings.with_added(self._postings),
            dimension=self._dimension,
            _gone=self._gone,
            _followed=self._index.followed,
            _loose=self._loose,
        )
