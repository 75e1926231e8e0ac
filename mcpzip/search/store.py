"""The file of the local search index (keywords and semantic table), so that the next start needn't build it.

The rule: the file holds the index's arrays (`model.sections`), which are used without copying. An unusable
file – of another version, of other tools, or damaged – is ignored, never an error.
"""

import sys
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Literal, cast

from mcpzip.model.entry import Entry
from mcpzip.model.sections import Header, joined, split
from mcpzip.search import analysis, fields, lexicon
from mcpzip.search.documents import Document, Documents, Stored
from mcpzip.search.index import Index, key_of, name_only_key
from mcpzip.search.names import Names
from mcpzip.search.postings import Postings
from mcpzip.search.semantic import tool_vectors
from mcpzip.search.semantic.table import Table
from mcpzip.search.semantic.vectors import Cluster, Packed, Vectors
from mcpzip.search.stemmer import stemmer_checksum
from mcpzip.search.text_table import NumberByText, NumbersByText, TextTable, ends_of, table_of
from mcpzip.search.tokenizer import RULES, STOP_WORDS
from mcpzip.search.verbs import FAMILIES

MAGIC = b"MZI1"
VERSION = 6  # of the analysis and of the sections: one more whenever the file of the same tools would differ
_KEY = 16  # bytes
_NAMES = ("names", "names_by_words")
"""The sections of the tables of `Names`: the names, and for each the documents, which end at ``…_ends``."""


class _Header(Header):
    made_by: str
    dimension: int


def to_bytes(index: Index, table: Table | None) -> bytes:
    """``index`` as bytes. table: that its vectors were made with."""
    index = index.compacted()
    documents = [index.document(number) for number in range(len(index))]
    sections = {
        "keys": b"".join(document.key for document in documents),
        "name_ends": _array("I", ends_of(len(document.name_terms) for document in documents)),
        "name_terms": _array("I", (term for document in documents for term in document.name_terms)),
        "verbs": _array("I", (document.verbs for document in documents)),
        "rare_words": _array("I", (document.rare_words for document in documents)),
        **_vectors(index),
        "terms": table_of(index.terms),
        "words": table_of(index.word_frequencies),
        "word_frequencies": _array("I", index.word_frequencies.values()),
        "offsets": _array("I", index.postings.offsets),
        "documents": _array("I", index.postings.documents),
        "weights": _array("f", index.postings.weights),
    }
    for kind, names in zip(_NAMES, index.names.tables, strict=True):
        sections |= {
            kind: table_of(names),
            f"{kind}_ends": _array("I", ends_of(map(len, names.values()))),
            f"{kind}_documents": _array("I", chain.from_iterable(names.values())),
        }
    dimension = index.dimension if index.document_vectors else 0
    return joined(MAGIC, _Header({}, made_by(table), dimension), sections)


def _vectors(index: Index) -> dict[str, bytes]:
    """The sections of the vectors. with_vector: the documents that have one; none where all have. members,
    columns, inverse_norms: of all clusters, one cluster after the other (`Cluster`), as many in each as in
    ``cluster_sizes``.
    """
    if index.document_vectors is None:
        return {}
    numbers, vectors = index.document_vectors
    clusters = vectors.clusters
    return {
        "with_vector": b"" if len(numbers) == len(index) else _array("I", numbers),
        "cluster_sizes": _array("I", map(len, clusters)),
        "members": _array("I", chain.from_iterable(cluster.members for cluster in clusters)),
        "inverse_norms": _array(
            "d", chain.from_iterable(cluster.matrix.inverse_norms for cluster in clusters)
        ),
        "columns": b"".join(cluster.columns for cluster in clusters),
        "leaders": b"".join(vectors.leaders),
        "followers": _array("I", vectors.followers),
    }


def from_bytes(data: bytes | memoryview, entries: Iterable[Entry], table: Table | None) -> Index:
    """The index in ``data``; an empty one where it is unusable, or has tools that are not in ``entries``. It
    refers to ``data``, of which most parts are decoded only when they are needed.
    """
    try:
        return _decode(memoryview(data), {key_of(entry): entry for entry in entries}, table) or Index()
    except (ValueError, IndexError, KeyError, TypeError):
        return Index()


def made_by(table: Table | None) -> str:
    """The data that an analysis depends on besides its tool. `VERSION` stands for the code."""
    parts = (
        VERSION,
        RULES,
        sorted(STOP_WORDS),
        FAMILIES,
        lexicon.checksum(),
        tool_vectors.WEIGHTS,
        sys.byteorder,
        unicodedata.unidata_version,
        stemmer_checksum(),
        table.checksum if table else 0,
        sorted(analysis.FIELD_WEIGHTS.items()),
        analysis.SATURATION,
        fields.DESCRIPTION_WORDS,
        fields.PARAMETER_WORDS,
    )
    return repr(parts)


def _decode(data: memoryview, entries: Mapping[bytes, Entry], table: Table | None) -> Index | None:
    header, sections = split(MAGIC, data, _Header)
    if header.made_by != made_by(table):
        return None
    keys = bytes(sections["keys"])
    own_keys = [keys[start : start + _KEY] for start in range(0, len(keys), _KEY)]
    found = list(map(entries.get, own_keys))
    name_only = [number for number, entry in enumerate(found) if entry is None]
    for number in name_only:
        found[number] = entries[name_only_key(own_keys[number])]
    known = cast(list[Entry], found)
    by_number = [entry.digest for entry in known]  # equal to the own ones, which are not kept
    for number in name_only:
        by_number[number] = own_keys[number]
    numbers: Sequence[int] = ()
    vectors = None
    if header.dimension:
        numbers, vectors = _stored_vectors(header.dimension, sections, len(known))
    stored = _StoredDocuments(known, by_number, frozenset(name_only), sections, numbers, vectors)
    terms = TextTable(sections["terms"])
    index = Index(
        documents=Documents(stored=Stored(known, name_only, stored.document, stored.vector)),
        numbers={key: number for number, key in enumerate(by_number)},
        terms=NumberByText(terms, range(len(terms))),
        word_frequencies=NumberByText(TextTable(sections["words"]), sections["word_frequencies"].cast("I")),
        names=Names(*(_stored_names(kind, sections) for kind in _NAMES)),
        postings=Postings(
            sections["offsets"].cast("I"), sections["documents"].cast("I"), sections["weights"].cast("f")
        ),
        dimension=header.dimension,
    )
    return index.with_vectors_of_file(numbers, vectors) if vectors else index


class _StoredDocuments:
    """What is stored of each document. entries, keys: by number. numbers: of the documents that have one of
    ``vectors``, in their order. Raises ValueError where there are more or fewer than ``entries``.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        keys: Sequence[bytes],
        name_only: frozenset[int],
        sections: Mapping[str, memoryview],
        numbers: Sequence[int],
        vectors: Vectors | None,
    ) -> None:
        self._entries, self._keys, self._name_only = entries, keys, name_only
        self._numbers, self._vectors = numbers, vectors
        self._name_ends, self._name_terms, self._verbs, self._rare_words = (
            sections[name].cast("I") for name in ("name_ends", "name_terms", "verbs", "rare_words")
        )
        if not len(entries) == len(self._name_ends) == len(self._verbs) == len(self._rare_words):
            raise ValueError("an index with more or fewer documents than it says")

    def document(self, number: int) -> Document:
        entry = self._entries[number]
        start = self._name_ends[number - 1] if number else 0
        return Document(
            entry,
            entry.name,
            self._keys[number],
            tuple(self._name_terms[start : self._name_ends[number]]),
            self._verbs[number],
            None,
            self._rare_words[number],
            number in self._name_only,
        )

    def vector(self, number: int) -> Packed | None:
        numbers = self._numbers
        position = bisect_left(numbers, number)
        if self._vectors is None or position >= len(numbers) or numbers[position] != number:
            return None
        return self._vectors.vector(position)


def _stored_vectors(
    dimension: int, sections: Mapping[str, memoryview], count: int
) -> tuple[Sequence[int], Vectors]:
    """The documents that have a vector, and their vectors. count: of all documents."""
    size = dimension // 2  # bytes of a vector
    members, columns = sections["members"].cast("I"), sections["columns"]
    inverse_norms, leaders = sections["inverse_norms"].cast("d"), bytes(sections["leaders"])
    followers = sections["followers"].cast("I")
    numbers: Sequence[int] = sections["with_vector"].cast("I")
    if not numbers:
        numbers = range(count)
    clusters: list[Cluster] = []
    end = 0
    for length in sections["cluster_sizes"].cast("I"):
        start, end = end, end + length
        clusters.append(
            Cluster(members[start:end], columns[size * start : size * end], inverse_norms[start:end])
        )
    starts = range(0, len(leaders), size)
    if (
        end != len(numbers)
        or len(columns) != size * end
        or len(clusters) != (len(starts) or 1)
        or len(followers) != (end if starts else 0)
    ):
        raise ValueError("an index with more or fewer vectors than it says")
    found = [leaders[start : start + size] for start in starts]
    return numbers, Vectors.of_clusters(clusters, found, followers, dimension)


def _stored_names(kind: str, sections: Mapping[str, memoryview]) -> NumbersByText:
    ends, documents = sections[f"{kind}_ends"].cast("I"), sections[f"{kind}_documents"].cast("I")
    return NumbersByText(TextTable(sections[kind]), ends, documents)


def _array(typecode: Literal["I", "f", "d"], values: Iterable[float]) -> bytes:
    return array(typecode, values).tobytes()
