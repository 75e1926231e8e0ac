"""An index as bytes, so that the next start needn't make it again.

The rule: the file is the index's own arrays, each at a multiple of eight bytes, so that it can be used where
it lies, in memory or mapped from disk. It is only a copy: whatever can't be used – another version's, other
tools, a damaged one – is as good as none, and never an error.

    b"MZI1" · <II bytes of the head, CRC-32 of all that follows · head: JSON, padded with spaces
            · the sections, in the order of the head, each padded to eight bytes
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
from mcpzip.search.index import Document, Index, in_brief, key_of
from mcpzip.search.names import Names
from mcpzip.search.postings import Postings
from mcpzip.search.semantic import tool_vectors
from mcpzip.search.semantic.table import Table
from mcpzip.search.semantic.vectors import leaders_of
from mcpzip.search.stemmer import edition
from mcpzip.search.tokenizer import RULES, STOP_WORDS
from mcpzip.search.verbs import FAMILIES

MAGIC = b"MZI1"
VERSION = 2  # of the analysis: one more whenever the same tool would be taken in another way
_START = Struct("<II")
_EIGHT = 8
_KEY = 16  # bytes


class _Head(msgspec.Struct):
    made_by: str
    dimension: int
    sections: dict[str, int]  # bytes of each, in their order


def to_bytes(index: Index, table: Table | None) -> bytes:
    """``index``, packed."""
    index = index.packed()
    documents = [index.document(number) for number in range(len(index))]
    size = index.dimension // 2
    followers = index.meanings[1].followers if index.meanings else []
    sections = {
        "keys": b"".join(document.key for document in documents),
        "name_ends": _numbers("I", _ends(len(document.terms) for document in documents)),
        "names": _numbers("I", (term for document in documents for term in document.terms)),
        "verbs": _numbers("I", (document.verb for document in documents)),
        "rare": _numbers("I", (document.rare for document in documents)),
        "vectors": b"".join(document.vector or bytes(size) for document in documents),
        "followers": _numbers("I", followers),
        "terms": "\n".join(index.terms).encode(),
        "words": "\n".join(index.written).encode(),
        "counts": _numbers("I", index.written.values()),
        "spoken": msgspec.json.encode(index.names.table),
        "offsets": _numbers("I", index.postings.offsets),
        "documents": _numbers("I", index.postings.documents),
        "worths": _numbers("f", index.postings.postings_of),
    }
    head = msgspec.json.encode(
        _Head(made_by(table), index.dimension, {name: len(data) for name, data in sections.items()})
    )
    body = b"".join(map(_padded, (head, *sections.values())))
    return MAGIC + _START.pack(len(_padded(head)), zlib.crc32(body)) + body


def from_bytes(data: bytes, entries: Iterable[Entry], table: Table | None) -> Index:
    """The index kept as ``data``, if it is one of some of ``entries`` and no others; an empty one if not."""
    try:
        return _read(memoryview(data), {key_of(entry): entry for entry in entries}, table) or Index()
    except (ValueError, IndexError, KeyError, StructError, msgspec.MsgspecError):
        return Index()


def made_by(table: Table | None) -> str:
    """What an analysis depends on beside its tool, as far as it is data; for the code there is `VERSION`."""
    parts = (
        VERSION,
        RULES,
        sorted(STOP_WORDS),
        FAMILIES,
        lexicon.checksum(),
        tool_vectors.WEIGHTS,
        sys.byteorder,
        unicodedata.unidata_version,
        edition(),
        table.checksum if table else 0,
        sorted(analysis.FIELD_WEIGHTS.items()),
        analysis.SATURATION,
        fields.DESCRIPTION_WORDS,
        fields.PARAMETER_WORDS,
    )
    return repr(parts)


def _read(data: memoryview, entries: Mapping[bytes, Entry], table: Table | None) -> Index | None:
    start = len(MAGIC) + _START.size
    if data[: len(MAGIC)] != MAGIC:
        return None
    length, checksum = _START.unpack(data[len(MAGIC) : start])
    body = data[start:]
    if zlib.crc32(body) != checksum:
        return None
    head = msgspec.json.decode(body[:length], type=_Head)
    if head.made_by != made_by(table):
        return None
    found: dict[str, memoryview] = {}
    for name, size in head.sections.items():
        found[name] = body[length : length + size]
        length += size + -size % _EIGHT
    keys, size = bytes(found["keys"]), head.dimension // 2
    ends, terms = found["name_ends"].cast("I").tolist(), found["names"].cast("I").tolist()
    verbs, rare = found["verbs"].cast("I"), found["rare"].cast("I")
    documents: list[Document] = []
    numbers: dict[bytes, int] = {}
    begin = 0
    for number, (end, verb, its) in enumerate(zip(ends, verbs, rare, strict=True)):
        key = keys[number * _KEY : (number + 1) * _KEY]
        brief = key not in entries
        entry = entries[in_brief(key) if brief else key]
        packed = bytes(found["vectors"][number * size : (number + 1) * size])
        vector = packed if any(packed) else None
        named = tuple(terms[begin:end])
        documents.append(Document(entry, entry.name, key, named, verb, vector, its, brief))
        numbers[key] = number
        begin = end
    written = _lines(found["words"])
    return Index(
        documents=documents,
        numbers=numbers,
        terms={term: number for number, term in enumerate(_lines(found["terms"]))},
        written=dict(zip(written, found["counts"].cast("I"), strict=True)),
        names=Names(
            [document.entry for document in documents],
            msgspec.json.decode(found["spoken"], type=dict[str, tuple[int, ...]]),
        ),
        postings=Postings(
            found["offsets"].cast("I"), found["documents"].cast("I"), found["worths"].cast("f")
        ),
        dimension=head.dimension,
        _followed=_followed(documents, found["followers"].cast("I")),
    )


def _followed(documents: Iterable[Document], followers: memoryview) -> dict[bytes, bytes]:
    """Of every vector, the leader of its cluster; nothing where there are no clusters."""
    if not followers:
        return {}
    vectors = [document.vector for document in documents if document.vector]
    leaders = leaders_of(vectors)
    return {vector: leaders[place] for vector, place in zip(vectors, followers, strict=True)}


def _lines(text: memoryview) -> list[str]:
    return str(text, "utf-8").split("\n") if text else []


def _ends(lengths: Iterable[int]) -> Iterable[int]:
    end = 0
    for length in lengths:
        end += length
        yield end


def _numbers(kind: Literal["I", "f"], values: Iterable[float]) -> bytes:
    return array(kind, values).tobytes()


def _padded(data: bytes) -> bytes:
    return data + b" " * (-len(data) % _EIGHT)
