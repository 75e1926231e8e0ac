"""Results of tools as values of a program, and the value of a program as blocks for the client (pure).

The rule: nothing is lost. What a program can compute with is the value that `results.document` reads. A
result with images, audio or other blocks is the list of its blocks, with a marker in place of each image,
audio or blob: the program hands it on like any value, and what it ends with brings the block itself.

    {"type": "image", "mimeType": "image/png", "$kept": "r5-…", "block": 1}
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from mcpzip.results.document import BLOCKS, Document
from mcpzip.results.slices import elements, kind_of
from mcpzip.wire import NotAnObject, join_object, quote, split_object, unquote

KEPT, BLOCK = "$kept", "block"
MARKERS = 20
"""Blocks that the value of a program brings."""
VALUE_READ = 4 << 20
"""Bytes of a value in which markers are looked for."""
_BINARY = (b'"image"', b'"audio"')


class Marker(msgspec.Struct, frozen=True):
    """A block of a kept result. number: from 0."""

    handle: str
    number: int


def has_binary(document: Document) -> bool:
    """Whether it has a block that a program gets as a marker."""
    return any(map(_is_binary, document.others))


def value_of(document: Document, handle: str = "") -> bytes:
    """The value of a result in a program, JSON text. handle: under which it is kept, if `has_binary`."""
    if not document.others or (document.structured and not has_binary(document)):
        return document.value or quote(document.text)
    blocks = [
        _marker(block, handle, number) if _is_binary(block) else block
        for number, block in enumerate(document.blocks)
    ]
    if document.structured:
        blocks.append(join_object({"type": b'"structuredContent"', "value": document.structured}))
    return b"[%b]" % b",".join(blocks)


def markers(value: str) -> list[Marker]:
    """The markers in ``value`` (JSON text), each once, at most `MARKERS`."""
    if '"$kept"' not in value or len(value) > VALUE_READ:
        return []
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return []
    return list(islice(dict.fromkeys(_markers_in(found)), MARKERS))


def block_of(result: bytes, number: int) -> bytes | None:
    """The block with this number of a kept ``result``; None if there is none."""
    try:
        blocks = elements(split_object(result).get("content", b"[]"))
        return next(islice(blocks, number, number + 1), None) if number < BLOCKS else None
    except (NotAnObject, ValueError, RecursionError):
        return None


def error_text(document: Document, most: int) -> str:
    """What a result with ``isError`` says, at most so many characters."""
    text = document.text or document.structured.decode("utf-8", "replace")
    return text[:most] or "the tool failed and gave no reason"


def _markers_in(value: object) -> Iterator[Marker]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            handle, number = each.get(KEPT), each.get(BLOCK)
            if isinstance(handle, str) and isinstance(number, int) and number >= 0:
                yield Marker(handle, number)
            else:
                waiting += reversed(list(each.values()))
        elif isinstance(each, list):
            waiting += reversed(each)


def _is_binary(block: bytes) -> bool:
    fields = split_object(block) if kind_of(block) == "object" else {}
    if fields.get("type") in _BINARY:
        return True
    return fields.get("type") == b'"resource"' and "blob" in _members(fields.get("resource", b""))


def _marker(block: bytes, handle: str, number: int) -> bytes:
    fields = split_object(block)
    inner = _members(fields.get("resource", b"")) or fields
    about = _texts(inner, ("uri", "mimeType"))
    size = len(_text(inner.get("data", inner.get("blob", b'""')))) * 3 // 4
    return join_object(
        {
            **about,
            "type": fields["type"],
            "bytes": b"%d" % size,
            KEPT: quote(handle),
            BLOCK: b"%d" % number,
        }
    )


def _texts(fields: dict[str, bytes], keys: tuple[str, ...]) -> dict[str, bytes]:
    return {key: fields[key] for key in keys if key in fields and kind_of(fields[key]) == "string"}


def _members(raw: bytes) -> dict[str, bytes]:
    try:
        return split_object(raw)
    except (NotAnObject, RecursionError):
        return {}


def _text(raw: bytes) -> str:
    try:
        return unquote(raw)
    except ValueError:
        return ""
