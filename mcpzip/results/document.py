"""What is in the result of a tool (spec: server/tools, `CallToolResult`), as far as it is kept and read in
parts (pure).
"""

from itertools import islice

import msgspec

from mcpzip.model.tokens import estimate
from mcpzip.results.paths import PathError, Selection, parse_path, select, written
from mcpzip.results.slices import UnreadableError, elements, kind_of, members
from mcpzip.wire import NotAnObject, quote, split_object, unquote

WRAPPER = "result"
BLOCKS = 10_000
"""Blocks of a result that are read."""
_BLOCKS_IN_VALUE = 100
"""Blocks that ``structuredContent`` may have instead of a value."""
_PIECE = 4_096
"""Characters whose tokens are estimated at a time."""


class Document(msgspec.Struct, frozen=True):
    """A result. fields: its members, each as JSON text. blocks: those of its ``content``, as JSON texts;
    others: those of them that are no text. text: the text of its blocks, a line break between two. value: the
    JSON text that it has as a value, or b"" if it is only text: ``structuredContent`` unless that has far
    less than the text, else its only text if that is a JSON object or array, else an array of its texts if
    each is one. wrapper: the key of the object in which ``value``, or ``text``, is the only member, or "":
    the Python SDK wraps what is no object as ``{"result": …}``, blocks of text too, whose texts count then.
    """

    fields: dict[str, bytes]
    blocks: list[bytes]
    others: list[bytes]
    text: str
    value: bytes
    wrapper: str = ""

    @property
    def structured(self) -> bytes:
        """Its ``structuredContent``, b"" for none."""
        return self.fields.get("structuredContent", b"")


def read_result(result: bytes) -> Document:
    """Raises UnreadableError."""
    try:
        fields = split_object(result)
        blocks = list(islice(elements(fields.get("content", b"[]")), BLOCKS + 1))
        if len(blocks) > BLOCKS:
            raise UnreadableError(f"more than {BLOCKS:,} blocks")
        read = [(block, text_of(block)) for block in blocks]
    except (NotAnObject, ValueError, RecursionError) as error:
        raise UnreadableError(str(error)) from error
    texts = [text for _, text in read if text is not None]
    others = [block for block, text in read if text is None]
    text, value = "\n".join(texts), fields.get("structuredContent", b"")
    if kind_of(value) not in ("object", "array") or 2 * len(value) < len(text):
        value = _value_of(texts)
    if (inner := _wrapped(value)) is None:
        return Document(fields, blocks, others, text, value)
    if kind_of(inner) == "string":
        return Document(fields, blocks, others, unquote(inner), b"", WRAPPER)
    if (texts_of_blocks := _texts_of_blocks(inner)) is not None:
        value = _value_of(texts_of_blocks)
        return Document(fields, blocks, others, "\n".join(texts_of_blocks), value, WRAPPER)
    return Document(fields, blocks, others, text, inner, WRAPPER)


def at_path(document: Document, path: str) -> tuple[Selection, str]:
    """What ``path`` selects of its value, and the path as it is written; the text as a JSON string if it is
    only text. Raises PathError.
    """
    steps = parse_path(path)
    if document.wrapper and steps[:1] == (document.wrapper,):
        steps = steps[1:]
    if document.value:
        return select(document.value, steps), written(steps)
    if steps:
        raise PathError("This result is text, so it has no paths.")
    return Selection(quote(document.text)), ""


def text_of(block: bytes) -> str | None:
    """The text of a block of type ``text``, or of an embedded resource that is text; None for any other."""
    fields = split_object(block)
    kind = fields.get("type")
    if kind == b'"resource"':
        fields = split_object(fields.get("resource", b"{}"))
    elif kind != b'"text"':
        return None
    raw = fields.get("text")
    return None if raw is None else unquote(raw)


def exceeds(document: Document, tokens: int) -> bool:
    """Whether a model would read more than so many ``tokens``: of the text, or of ``structuredContent``,
    which clients show instead of it.
    """
    return _is_longer(document.text, tokens) or _is_longer(_decoded(document.structured), tokens)


def size_in_tokens(text: str) -> int:
    """An estimate, from pieces at the beginning, in the middle and at the end of a long text."""
    if len(text) <= 3 * _PIECE:
        return estimate(text)
    middle = (len(text) - _PIECE) // 2
    pieces = text[:_PIECE], text[middle : middle + _PIECE], text[-_PIECE:]
    return sum(map(estimate, pieces)) * len(text) // (3 * _PIECE)


def shown(document: Document) -> str:
    """What a model reads of it: the value as JSON, else the text."""
    return _decoded(document.value) if document.value else document.text


def _is_longer(text: str, tokens: int) -> bool:
    # A token has at least one byte of UTF-8, and a character at most four.
    if 4 * len(text) <= tokens:
        return False
    if len(text) > 3 * _PIECE and size_in_tokens(text) > 2 * tokens:  # beyond doubt
        return True
    total = 0
    for start in range(0, len(text), _PIECE):
        total += estimate(text[start : start + _PIECE])
        if total > tokens:
            return True
    return False


def _json(text: str) -> bytes:
    """``text`` as the JSON text of an object or an array; b"" if it is none."""
    raw = text.strip().encode("utf-8", "surrogatepass")
    kind = kind_of(raw)
    if kind not in ("object", "array"):
        return b""
    try:
        msgspec.json.Decoder(msgspec.Raw).decode(raw)
        next(iter(members(raw) if kind == "object" else elements(raw)), None)
    except (msgspec.DecodeError, UnreadableError, RecursionError):
        return b""
    return raw


def _value_of(texts: list[str]) -> bytes:
    """Their value as JSON: of one, or an array of all; b"" if one is no object or array."""
    values = [_json(text) for text in texts]
    if not all(values):
        return b""
    return values[0] if len(values) == 1 else b"[%b]" % b",".join(values)


def _texts_of_blocks(value: bytes) -> list[str] | None:
    """The texts of ``value`` if it is an array of blocks of type ``text`` which say nothing else: what the
    Python SDK makes of a function that returns blocks; else None.
    """
    if kind_of(value) != "array" or b'"text"' not in value:
        return None
    found: list[str] = []
    try:
        for element in islice(elements(value), _BLOCKS_IN_VALUE + 1):
            block = split_object(element) if kind_of(element) == "object" else {}
            kind, raw = block.pop("type", b""), block.pop("text", b"")
            if kind != b'"text"' or kind_of(raw) != "string" or set(block.values()) - {b"null"}:
                return None
            if len(found) == _BLOCKS_IN_VALUE:
                return None
            found.append(unquote(raw))
    except (NotAnObject, ValueError, RecursionError):
        return None
    return found or None


def _wrapped(value: bytes) -> bytes | None:
    """What the object ``value`` wraps, if it wraps a string, an array or an object."""
    if kind_of(value) != "object":
        return None
    found = list(islice(members(value), 2))
    if len(found) != 1 or found[0][0] != WRAPPER:
        return None
    return found[0][1] if kind_of(found[0][1]) in ("string", "array", "object") else None


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")
