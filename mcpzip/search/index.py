"""The inverted index of the tools of one catalog, with a vector of each tool.

The rule: an index is immutable; `updated` returns the next one, which shares what is equal, and analyzes only
new tools. Search results depend on the set of tools only: not on their order, nor on whether the index was
built at once, updated tool by tool, or loaded from a file. A *document* is the number of a tool in one index.

The rare words of one server are limited (`limits.INDEXED_WORDS`): its tools are indexed in the order of their
names until the limit is exceeded; that tool and those after it are indexed by their name only.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import log

import msgspec
from msgspec.structs import replace

from mcpzip.model.entry import Entry
from mcpzip.model.limits import INDEXED_WORDS, NAME
from mcpzip.search.analysis import Analysis, Analyzer
from mcpzip.search.documents import PENDING, Document, Documents, Key
from mcpzip.search.names import Names
from mcpzip.search.postings import POSTING, Posting, Postings
from mcpzip.search.product_names import TWO_WORDS
from mcpzip.search.semantic.vectors import Packed, Vectors
from mcpzip.search.text_table import NumberByText
from mcpzip.search.tokenizer import term_of, words
from mcpzip.search.verbs import families, verbs
from mcpzip.search.vocabulary import Vocabulary

CACHED_BITS = 256  # terms whose documents are cached as bits
_ONE = ord("1")
MAX_UNPACKED = 0.25  # share of the documents that may be removed or added before the index is compacted

MAY_BE_PENDING = 0.25  # share of the tools whose vectors may be missing when those of the others are used


def key_of(entry: Entry) -> Key:
    """The key of ``entry``. Tools with equal keys have equal analyses."""
    return entry.digest


def name_only_key(key: Key) -> Key:
    """The key of the same tool indexed by name only; the reverse for such a key."""
    return bytes((key[0] ^ 1,)) + key[1:]


class Index(msgspec.Struct, frozen=True, dict=True):
    """The tools of one catalog, searchable. Safe between threads.

    documents: by number, None for a removed tool. numbers: of the documents that are not removed, by key.
    terms: the number of every term that has ever been indexed. word_frequencies: every word of a tool, and
    the number of tools that have it. dimension: of the vectors, 0 where there are none.
    """

    documents: Documents = msgspec.field(default_factory=Documents)
    numbers: Mapping[Key, int] = {}
    terms: dict[str, int] | NumberByText = {}
    word_frequencies: dict[str, int] | NumberByText = {}
    names: Names = msgspec.field(default_factory=Names)
    postings: Postings = msgspec.field(default_factory=Postings)
    dimension: int = 0
    _removed: Mapping[int, int] = {}  # the number of removed documents, by term
    _unpacked: int = 0  # documents that were removed or added since the arrays were made
    _known_leaders: Mapping[Packed, Packed] = {}  # see `Vectors`

    def __len__(self) -> int:
        return len(self.numbers)

    def not_indexed(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those of ``entries`` that are not in the index, not even by name only."""
        numbers = self.numbers
        new = [entry for entry in entries if entry.digest not in numbers]
        return [entry for entry in new if name_only_key(key_of(entry)) not in numbers]

    def updated(
        self,
        entries: Iterable[Entry],
        analyzer: Analyzer,
        stopped: Callable[[], bool] = lambda: False,
        *,
        with_vectors: bool = True,
    ) -> "Index":
        """The index of exactly ``entries``. stopped: called before each; True cancels the update, and this
        index is returned. with_vectors: False leaves the vectors of new tools `PENDING`.
        """
        by_key = {entry.digest: entry for entry in entries}
        if by_key.keys() == self.numbers.keys() and not self.name_only_counts:
            return self
        wanted = sorted(by_key.items(), key=lambda pair: (pair[1].server, pair[1].tool, pair[0]))
        update = _Update(self, analyzer, with_vectors)
        for key, entry in wanted:
            if stopped():
                return self
            update.include(key, entry)
        index = update.finish(stopped)
        return index.compacted() if index._unpacked > MAX_UNPACKED * len(index) else index

    def with_vectors(
        self, most: int, analyzer: Analyzer, stopped: Callable[[], bool] = lambda: False
    ) -> "Index":
        """The same index with the vectors of ``most`` of the tools whose vectors are pending. stopped: as in
        `updated`.
        """
        documents = self.documents.copy()
        dimension = self.dimension
        for number in self.pending[:most]:
            if stopped():
                return self
            document = self.document(number)
            vector = analyzer.vector(document.entry)
            documents[number] = replace(document, vector=vector)
            if vector:
                dimension = 2 * len(vector)
        return replace(self, documents=documents, dimension=dimension, _known_leaders=self.known_leaders)

    @cached_property
    def pending(self) -> list[int]:
        """The documents whose vectors are pending."""
        return self.documents.pending()

    @property
    def knows_meaning(self) -> bool:
        """Whether enough tools have their vectors to rank by them."""
        return len(self.pending) <= MAY_BE_PENDING * len(self)

    @cached_property
    def name_only_counts(self) -> Counter[str]:
        """How many tools are indexed by name only, by server."""
        return Counter(entry.server for entry in self.documents.name_only())

    @property
    def known_leaders(self) -> Mapping[Packed, Packed]:
        """The leader of the cluster of every vector, as far as known."""
        if "document_vectors" not in self.__dict__ or self.document_vectors is None:
            return self._known_leaders
        _, vectors = self.document_vectors
        if vectors.exhaustive:
            return {}
        leaders = map(vectors.leaders.__getitem__, vectors.followers)
        return dict(zip(vectors.packed(), leaders, strict=True))

    def with_vectors_of_file(self, documents: Sequence[int], vectors: Vectors) -> "Index":
        """This index, just read from a file, with its `document_vectors`, which were stored too."""
        self.__dict__["document_vectors"] = documents, vectors  # in place of what the property would compute
        return self

    def compacted(self) -> "Index":
        """The same tools in flat arrays: documents are renumbered, removed ones and unused terms left out."""
        if not self._unpacked:
            return self
        kept = sorted(self.numbers.values())
        renumbered = {old: new for new, old in enumerate(kept)}
        terms = [term for term in self.terms if self.term_id(term) is not None]
        term_ids = {self.terms[term]: new for new, term in enumerate(terms)}
        documents = []
        for old in kept:
            document = self.document(old)
            name_terms = tuple(term_ids[term] for term in document.name_terms)
            documents.append(replace(document, name_terms=name_terms, vector=self.documents.vector(old)))
        return Index(
            documents=Documents(documents),
            numbers={document.key: number for number, document in enumerate(documents)},
            terms={term: number for number, term in enumerate(terms)},
            word_frequencies=self.word_frequencies,
            names=self.names.renumbered(renumbered),
            postings=self.postings.compacted(
                (self.terms[term] for term in terms), renumbered if len(kept) < len(self.documents) else None
            ),
            dimension=self.dimension,
            _known_leaders=self.known_leaders,
        )

    def document(self, number: int) -> Document:
        """The document with this number, which must not be removed."""
        document = self.documents[number]
        assert document is not None, "a removed document"
        return document

    def term_id(self, term: str) -> int | None:
        """The number of ``term``; None where no tool has it."""
        number = self.terms.get(term)
        if number is None or not self._removed:
            return number
        return number if self.document_frequency(number) else None

    def document_frequency(self, term: int) -> int:
        """The number of tools that have ``term``."""
        return self.postings.count(term) - self._removed.get(term, 0)

    def idf(self, term: int) -> float:
        """The inverse document frequency of ``term``, above 0."""
        idf = self._idfs.get(term)
        if idf is None:
            frequency = self.document_frequency(term)
            idf = log(1 + (len(self) - frequency + 0.5) / (frequency + 0.5))
            self._idfs[term] = idf
        return idf

    @cached_property
    def max_idf(self) -> float:
        """The idf of a term that no tool has."""
        return log(1 + (len(self) + 0.5) / 0.5)

    def postings_of(self, term: int) -> Iterable[Posting]:
        """The documents of ``term``, and its weight in each, 0…1."""
        found = self.postings.of(term)
        if term not in self._removed:
            return found
        documents = self.documents
        return [(document, weight) for document, weight in found if documents[document] is not None]

    def has(self, document: int, term: int) -> bool:
        """Whether ``document`` has ``term``."""
        return self.postings.has(term, document)

    def weights_in(self, documents: Sequence[int], term: int) -> list[float]:
        """The weight of ``term`` in each of ``documents``, which must not be removed; 0 where one does not
        have it.
        """
        return self.postings.weights_in(term, documents)

    def documents_of(self, term: int) -> int:
        """The documents of ``term``, a bit each. Those of terms asked for last are cached."""
        bits = self._document_bits.get(term)
        if bits is None:
            flags = bytearray(b"0" * len(self.documents))
            for document, _ in self.postings_of(term):
                flags[-1 - document] = _ONE
            bits = int(flags, 2)
            if len(self._document_bits) >= CACHED_BITS:
                self._document_bits.clear()
            self._document_bits[term] = bits
        return bits

    def server_terms(self, server: str) -> tuple[int, ...]:
        """The indexed terms of the name of ``server``."""
        terms = self._server_terms.get(server)
        if terms is None:
            numbers = (self.term_id(term) for _, term in words(server))
            terms = self._server_terms[server] = tuple(number for number in numbers if number is not None)
        return terms

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the catalog."""
        return Vocabulary(self.word_frequencies)

    @cached_property
    def verbs(self) -> dict[int, int]:
        """The indexed terms that are verbs, and the families of each."""
        return {number: families(verb) for verb in verbs() if (number := self.term_id(verb)) is not None}

    @cached_property
    def sizes(self) -> Counter[tuple[str, bool]]:
        """The number of tools of each (server, read_only)."""
        return Counter((entry.server, entry.read_only) for _, entry in self.documents.entries())

    @cached_property
    def document_vectors(self) -> tuple[Sequence[int], Vectors] | None:
        """The documents that have a vector, and their vectors; None where none has."""
        vectors = self.documents.vectors()
        if not vectors:
            return None
        found = list(vectors)
        numbers = range(len(found)) if found[-1] == len(found) - 1 else found
        return numbers, Vectors(list(vectors.values()), self.dimension, self._known_leaders)

    @cached_property
    def servers(self) -> frozenset[str]:
        """The names of the servers that have tools."""
        return frozenset([entry.server for _, entry in self.documents.entries()])

    @cached_property
    def spellings(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """How names are spelled in this catalog: the pairs of `words` of the name of a server or product, by
        its letters and digits (``sqliteexplorer``).
        """
        known = {name: [(name, term_of(name))] for name in TWO_WORDS}
        for server in sorted(self.servers):
            if len(server) <= NAME:
                pairs = words(server)
                known["".join(word for word, _ in pairs)] = pairs
        return known

    @cached_property
    def _document_bits(self) -> dict[int, int]:
        return {}

    @cached_property
    def _idfs(self) -> dict[int, float]:
        return {}

    @cached_property
    def _server_terms(self) -> dict[str, tuple[int, ...]]:
        return {}


class _Update:
    """An update of an index. Tools must be included server by server, and those of a server by name."""

    def __init__(self, index: Index, analyzer: Analyzer, with_vectors: bool) -> None:
        self._index, self._analyzer, self._with_vectors = index, analyzer, with_vectors
        self._included: set[Key] = set()
        self._server, self._words_left = "", INDEXED_WORDS
        self._builder: _Builder | None = None

    def include(self, key: Key, entry: Entry) -> None:
        """Include ``entry`` in the next index, with all its fields or by name only."""
        if entry.server != self._server:
            self._server, self._words_left = entry.server, INDEXED_WORDS
        if self._words_left > 0:
            analysis = None
            if key not in self._index.numbers:
                analysis = self._analyzer.analyze(entry, with_vector=self._with_vectors)
            self._words_left -= analysis.rare_words if analysis else self._known(key).rare_words
            if self._words_left >= 0:
                self._add(key, entry, analysis)
                return
        key = name_only_key(key)
        known = key in self._index.numbers
        self._add(
            key, entry, None if known else self._analyzer.analyze(entry, name_only=True), name_only=True
        )

    def finish(self, stopped: Callable[[], bool]) -> Index:
        """The next index; the present one where nothing changed, or ``stopped`` returns True."""
        for key, number in self._index.numbers.items():
            if stopped():
                return self._index
            if key not in self._included:
                self._changed().remove(number, self._analyzer)
        return self._index if self._builder is None else self._builder.build()

    def _add(self, key: Key, entry: Entry, analysis: Analysis | None, *, name_only: bool = False) -> None:
        self._included.add(key)
        if analysis is not None:
            self._changed().add(key, entry, analysis, name_only, self._vector_of(analysis, name_only))

    def _vector_of(self, analysis: Analysis, name_only: bool) -> Packed | None:
        later = not self._with_vectors and self._analyzer.has_vectors and not name_only
        return PENDING if later else analysis.vector

    def _known(self, key: Key) -> Document:
        return self._index.document(self._index.numbers[key])

    def _changed(self) -> "_Builder":
        if self._builder is None:
            self._builder = _Builder(self._index)
        return self._builder


class _Builder:
    """Builds an index from a copy of another one."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._documents = index.documents.copy()
        self._numbers = dict(index.numbers)
        self._terms = index.terms.copy()
        self._word_frequencies = Counter(index.word_frequencies.copy())
        self._names = index.names.copy()
        self._postings: defaultdict[str, bytearray] = defaultdict(bytearray)
        self._removed = Counter(index._removed)
        self._unpacked = index._unpacked
        self._dimension = index.dimension

    def remove(self, number: int, analyzer: Analyzer) -> None:
        """Remove a document. It is analyzed again, because storing the terms of all would cost more."""
        document = self._index.document(number)
        analysis = analyzer.analyze(document.entry, with_vector=False, name_only=document.name_only)
        self._removed.update([self._terms[term] for term in analysis.term_weights])
        self._word_frequencies.subtract(analysis.words)
        for word in analysis.words:
            if self._word_frequencies[word] <= 0:
                del self._word_frequencies[word]
        self._names.remove(number, document.entry)
        self._documents[number] = None
        del self._numbers[document.key]
        self._unpacked += 1

    def add(self, key: Key, entry: Entry, analysis: Analysis, name_only: bool, vector: Packed | None) -> None:
        """Add a tool."""
        number = len(self._documents)
        postings, pack = self._postings, POSTING.pack
        for term, weight in analysis.term_weights.items():
            postings[term] += pack(number, weight)
        self._word_frequencies.update(analysis.words)
        self._names.add(number, entry, name_only)
        name_terms = tuple(self._term_id(term) for term in analysis.name_terms)
        rest = analysis.verbs, vector, analysis.rare_words, name_only
        self._documents.append(Document(entry, entry.name, key, name_terms, *rest))
        self._numbers[key] = number
        self._unpacked += 1
        if vector:
            self._dimension = 2 * len(vector)

    def _term_id(self, term: str) -> int:
        return self._terms.setdefault(term, len(self._terms))

    def build(self) -> Index:
        return Index(
            documents=self._documents,
            numbers=self._numbers,
            terms=self._terms,
            word_frequencies=self._word_frequencies,
            names=self._names,
            postings=self._index.postings.with_added(
                {self._term_id(term): bytes(postings) for term, postings in self._postings.items()}
            ),
            dimension=self._dimension,
            _removed=self._removed,
            _known_leaders=self._index.known_leaders,
            _unpacked=self._unpacked,
        )
