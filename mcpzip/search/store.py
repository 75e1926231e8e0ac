"""The file of the local search index (keywords and semantic table), so that the next start needn't build it.

The rule: the file holds the index's arrays, aligned to eight bytes, so that they are used without copying. An
unusable file – of another version, of other tools, or damaged – is ignored, never an error.

    b"MZI1" · <II bytes of the header, CRC-32 of all that follows · header: JSON, padded with spaces
            · the sections, in the order of the header, each padded to eight bytes
"""

import sys
import unicodedata
import zlib
from array import array
from collections.abc import Iterable, Mapping
from struct import Struct
from struct import error as StructError
from typing import Literal

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.search import analysis, fields, lexicon
from mcpzip.search.index import Document, Index, key_of, name_only_key
from mcpzip.search.names import Names
from mcpzip.search.postings import Postings
from mcpzip.search.semantic import tool_vectors
from mcpzip.search.semantic.table import Table
from mcpzip.search.semantic.vectors import leaders_of
from mcpzip.search.stemmer import stemmer_checksum
from mcpzip.search.tokenizer import RULES, STOP_WORDS
from mcpzip.search.verbs import FAMILIES

MAGIC = b"MZI1"
VERSION = 3  # of the analysis and of the sections: one more whenever the file of the same tools would differ
_START = Struct("<II")
_ALIGNMENT = 8  # bytes
_KEY = 16  # bytes


class _Header(msgspec.Struct):
    made_by: str
    dimension: int
    sections: dict[str, int]  # bytes of each, in their order


def to_bytes(index: Index, table: Table | None) -> bytes:
    """``index`` as bytes. table: that its vectors were made with."""
    index = index.compacted()
    documents = [index.document(number) for number in range(len(index))]
    size = index.dimension // 2
    followers = index.document_vectors[1].followers if index.document_vectors else []
    sections = {
        "keys": b"".join(document.key for document in documents),
        "name_ends": _array("I", _ends(len(document.name_terms) for document in documents)),
        "name_terms": _array("I", (term for document in documents for term in document.name_terms)),
        "verbs": _array("I", (document.verbs for document in documents)),
        "rare_words": _array("I", (document.rare_words for document in documents)),
        "vectors": b"".join(document.vector or bytes(size) for document in documents),
        "followers": _array("I", followers),
        "terms": "\n".join(index.terms).encode(),
        "words": "\n".join(index.word_frequencies).encode(),
        "word_frequencies": _array("I", index.word_frequencies.values()),
        "names": msgspec.json.encode(index.names.table),
        "offsets": _array("I", index.postings.offsets),
        "documents": _array("I", index.postings.documents),
        "weights": _array("f", index.postings.weights),
    }
    header = msgspec.json.encode(
        _Header(made_by(table), index.dimension, {name: len(data) for name, data in sections.items()})
    )
    body = b"".join(map(_padded, (header, *sections.values())))
    return MAGIC + _START.pack(len(_padded(header)), zlib.crc32(body)) + body


def from_bytes(data: bytes, entries: Iterable[Entry], table: Table | None) -> Index:
    """The index in ``data``; an empty one where it is unusable, or has tools that are not in ``entries``."""
    try:
        return _decode(memoryview(data), {key_of(entry): entry for entry in entries}, table) or Index()
    except (ValueError, IndexError, KeyError, StructError, msgspec.MsgspecError):
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
    start = len(MAGIC) + _START.size
    if data[: len(MAGIC)] != MAGIC:
        return None
    length, checksum = _START.unpack(data[len(MAGIC) : start])
    body = data[start:]
    if zlib.crc32(body) != checksum:
        return None
    header = msgspec.json.decode(body[:length], type=_Header)
    if header.made_by != made_by(table):
        return None
    sections: dict[str, memoryview] = {}
    for name, size in header.sections.items():
        sections[name] = body[length : length + size]
        length += size + -size % _ALIGNMENT
    keys, size = bytes(sections["keys"]), header.dimension // 2
    ends, terms = sections["name_ends"].cast("I").tolist(), sections["name_terms"].cast("I").tolist()
    verbs, rare_words = sections["verbs"].cast("I"), sections["rare_words"].cast("I")
    documents: list[Document] = []
    numbers: dict[bytes, int] = {}
    begin = 0
    for number, (end, verb, rare) in enumerate(zip(ends, verbs, rare_words, strict=True)):
        key = keys[number * _KEY : (number + 1) * _KEY]
        name_only = key not in entries
        entry = entries[name_only_key(key) if name_only else key]
        packed = bytes(sections["vectors"][number * size : (number + 1) * size])
        vector = packed if any(packed) else None
        name_terms = tuple(terms[begin:end])
        documents.append(Document(entry, entry.name, key, name_terms, verb, vector, rare, name_only))
        numbers[key] = number
        begin = end
    frequencies = sections["word_frequencies"].cast("I")
    return Index(
        documents=documents,
        numbers=numbers,
        terms={term: number for number, term in enumerate(_lines(sections["terms"]))},
        word_frequencies=dict(zip(_lines(sections["words"]), frequencies, strict=True)),
        names=Names(
            [document.entry for document in documents],
            msgspec.json.decode(sections["names"], type=dict[str, tuple[int, ...]]),
        ),
        postings=Postings(
            sections["offsets"].cast("I"), sections["documents"].cast("I"), sections["weights"].cast("f")
        ),
        dimension=header.dimension,
        _known_leaders=_known_leaders(documents, sections["followers"].cast("I")),
    )


def _known_leaders(documents: Iterable[Document], followers: memoryview) -> dict[bytes, bytes]:
    """The leader of the cluster of every vector; empty where there are no clusters."""
    if not followers:
        return {}
    vectors = [document.vector for document in documents if document.vector]
    leaders = leaders_of(vectors)
    return {vector: leaders[number] for vector, number in zip(vectors, followers, strict=True)}


def _lines(text: memoryview) -> list[str]:
    return str(text, "utf-8").split("\n") if text else []


def _ends(lengths: Iterable[int]) -> Iterable[int]:
    end = 0
    for length in lengths:
        end += length
        yield end


def _array(typecode: Literal["I", "f"], values: Iterable[float]) -> bytes:
    return array(typecode, values).tobytes()


def _padded(data: bytes) -> bytes:
    return data + b" " * (-len(data) % _ALIGNMENT)
