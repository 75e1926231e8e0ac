"""The inverted index: the tools of one catalog, searchable by their terms and by what they mean.

The rule: an index never changes; `updated` makes the next one, shares with it what is the same, and analyses
only tools it had not. What it answers depends on the set of its tools alone: not on their order, nor on
whether it was built at once, grew tool by tool, or was read from a file. A *document* is a number of a tool;
which number means nothing.

Rare words of one server are limited (`limits.INDEXED_WORDS`): in the order of their names its tools are taken
in whole until one has too many; that one and those after it are there by name only, *in brief*.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from math import log

from mcpzip.model.entry import Entry
from mcpzip.model.limits import INDEXED_WORDS
from mcpzip.search.analysis import Analysis, Analyst
from mcpzip.search.names import Names
from mcpzip.search.postings import PAIR, Posting, Postings
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


def in_brief(key: Key) -> Key:
    """The key that the tool of ``key`` has where it is taken in by name only; of that, ``key`` again."""
    return bytes((key[0] ^ 1,)) + key[1:]


@dataclass(frozen=True, slots=True)
class Document:
    """A tool in an index. name: as it is called. terms: the distinct terms of the tool's own name, in order,
    stop words too. verb: the families of the name's verb. vector: what it means. rare: how many of
    its words are rare. brief: whether only its name was taken in.
    """

    entry: Entry
    name: str
    key: Key
    terms: tuple[int, ...]
    verb: int
    vector: Packed | None
    rare: int
    brief: bool


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

    def lacking(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those of ``entries`` that are not in it, not in brief either."""
        return [
            entry
            for entry in entries
            if (key := key_of(entry)) not in self.numbers and in_brief(key) not in self.numbers
        ]

    def updated(
        self, entries: Iterable[Entry], analyst: Analyst, stopped: Callable[[], bool] = lambda: False
    ) -> "Index":
        """The index of exactly ``entries``. stopped: asked before each, and when it says so, this index is
        the outcome: nobody wants another.
        """
        wanted = sorted(
            {key_of(entry): entry for entry in entries}.items(),
            key=lambda pair: (pair[1].server, pair[1].tool, pair[0]),
        )
        change = _Change(self, analyst)
        for key, entry in wanted:
            if stopped():
                return self
            change.take(key, entry)
        index = change.done(stopped)
        return index.packed() if index._loose > LOOSE * len(index) else index

    @cached_property
    def briefs(self) -> Counter[str]:
        """How many tools there are by name only, by server."""
        return Counter(document.entry.server for document in self.documents if document and document.brief)

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
            documents.append(replace(document, terms=tuple(numbers[term] for term in document.terms)))
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

    def idf(self, term: int) -> float:
        """The inverse document frequency of ``term``, above 0."""
        rarity = self._rarities.get(term)
        if rarity is None:
            standing = self.frequency(term)
            rarity = log(1 + (len(self) - standing + 0.5) / (standing + 0.5))
            self._rarities[term] = rarity
        return rarity

    @cached_property
    def max_idf(self) -> float:
        """The rarity of a term that stands nowhere."""
        return log(1 + (len(self) + 0.5) / 0.5)

    def postings_of(self, term: int) -> Iterable[Posting]:
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
    """The next index in the making. Tools are taken in by server, and those of a server by name."""

    def __init__(self, index: Index, analyst: Analyst) -> None:
        self._index, self._analyst = index, analyst
        self._taken: set[Key] = set()
        self._server, self._left = "", INDEXED_WORDS
        self._draft: _Draft | None = None

    def take(self, key: Key, entry: Entry) -> None:
        """Have ``entry`` in the index, whole or in brief."""
        if entry.server != self._server:
            self._server, self._left = entry.server, INDEXED_WORDS
        if self._left > 0:
            analysis = None if key in self._index.numbers else self._analyst.analyse(entry)
            self._left -= analysis.rare if analysis else self._rare(key)
            if self._left >= 0:
                self._have(key, entry, analysis)
                return
        key = in_brief(key)
        known = key in self._index.numbers
        self._have(key, entry, None if known else self._analyst.analyse(entry, brief=True), brief=True)

    def done(self, stopped: Callable[[], bool]) -> Index:
        """The next index; the one there was where nothing differs, or when it is ``stopped``."""
        for key, number in self._index.numbers.items():
            if stopped():
                return self._index
            if key not in self._taken:
                self._changed().remove(number, self._analyst)
        return self._index if self._draft is None else self._draft.done()

    def _have(self, key: Key, entry: Entry, analysis: Analysis | None, *, brief: bool = False) -> None:
        self._taken.add(key)
        if analysis is not None:
            self._changed().add(key, entry, analysis, brief)

    def _rare(self, key: Key) -> int:
        return self._index.document(self._index.numbers[key]).rare

    def _changed(self) -> "_Draft":
        if self._draft is None:
            self._draft = _Draft(self._index)
        return self._draft


class _Draft:
    """A copy of an index, to be changed."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._documents = list(index.documents)
        self._numbers = dict(index.numbers)
        self._terms = dict(index.terms)
        self._written = Counter(index.written)
        self._names = index.names.copy()
        self._postings: dict[int, bytes] = {}
        self._gone = Counter(index._gone)
        self._loose = index._loose
        self._dimension = index.dimension

    def remove(self, number: int, analyst: Analyst) -> None:
        """Take out a document. Analysing it once more is cheaper than keeping what it consists of."""
        document = self._index.document(number)
        analysis = analyst.analyse(document.entry, with_meaning=False, brief=document.brief)
        self._gone.update([self._terms[term] for term in analysis.postings_of])
        self._written.subtract(analysis.written.keys())
        for word in analysis.written:
            if self._written[word] <= 0:
                del self._written[word]
        self._names.remove(number, document.entry)
        self._documents[number] = None
        del self._numbers[document.key]
        self._loose += 1

    def add(self, key: Key, entry: Entry, analysis: Analysis, brief: bool) -> None:
        """Take in a tool."""
        number = len(self._documents)
        for term, worth in analysis.postings_of.items():
            place = self._number(term)
            self._postings[place] = self._postings.get(place, b"") + PAIR.pack(number, worth)
        self._written.update(analysis.written.keys())
        self._names.add(number, entry, brief)
        self._documents.append(self._document(key, entry, analysis, brief))
        self._numbers[key] = number
        self._loose += 1
        if analysis.vector:
            self._dimension = 2 * len(analysis.vector)

    def _document(self, key: Key, entry: Entry, analysis: Analysis, brief: bool) -> Document:
        terms = tuple(self._number(term) for term in analysis.name)
        rest = analysis.verb, analysis.vector, analysis.rare, brief
        return Document(entry, entry.name, key, terms, *rest)

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
