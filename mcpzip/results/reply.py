"""What a client is sent instead of a large result (pure).

    Kept as r3-9f2c: 812 objects {number:int title:str}, about 61,240 tokens. It begins:
    [{"number":1,"title":"…"},"… 811 more"]
    Read it with execute_tool: name "r3-9f2c", arguments {"path": "[0:20]"} …; {} gives all of it.

The rule: the text and ``structuredContent`` are cut alike, because clients show a model one or the other.
``isError``, ``_meta``, images and all other blocks stay.
"""

from typing import NamedTuple

from mcpzip.model.limits import KEPT_SECONDS
from mcpzip.model.tokens import estimate
from mcpzip.results.document import Document, read_result, shown
from mcpzip.results.excerpt import LETTERS, abbreviated, beginning
from mcpzip.results.shape import shape
from mcpzip.results.slices import elements, kind_of, members
from mcpzip.wire import NotAnObject, join_object, quote, split_object, with_members

HEAD = 500
"""Tokens of the beginning that is shown."""
OTHERS, OTHERS_BYTES = 100, 4 << 20
"""Blocks other than text that are passed on, and their bytes."""
META = "mcpzip/kept"
_MINUTES = round(KEPT_SECONDS / 60)


class Reply(NamedTuple):
    """result: for the client, JSON text. tokens: of the beginning that it has, about."""

    result: bytes
    tokens: int


def reply(result: bytes, document: Document, tokens: int, handle: str, uri: str, runner: str) -> Reply:
    """The result for the client. document: what ``result`` is read as. tokens: that a model would have read.
    uri: of the kept result. runner: the name of the meta-tool that reads ``handle``.
    """
    is_json = bool(document.value)
    kind = shape(document.value) if is_json else _text_kind(document.text)
    summary = f"Kept as {handle}: {_limited(kind)}, about {tokens:,} tokens."
    how = (
        f'Read on with {runner}: name "{handle}", arguments {_example(document)}, {{"grep": "word"}}, '
        f'{{"lines": "1-50"}} or {{"tail": 20}}; {{}} gives all of it. It is kept for {_MINUTES} minutes.'
    )
    head = abbreviated(document.value, HEAD) if is_json else quote(beginning(document.text, HEAD))
    text = head.decode("utf-8", "replace") if is_json else beginning(document.text, HEAD)
    others = document.others
    kept, size = [], 0
    for block in others[:OTHERS]:
        size += len(block)
        if size > OTHERS_BYTES:
            break
        kept.append(block)
    if len(kept) < len(others):
        how = f"{how} More blocks than the {len(kept)} below are in it."
    link = join_object(
        {
            "type": b'"resource_link"',
            "uri": quote(uri),
            "name": quote(handle),
            "mimeType": _mime_type(document),
            "size": b"%d" % len(document.value or document.text.encode("utf-8", "replace")),
        }
    )
    words = f"{summary} It begins:\n{text}\n{how}"
    first = join_object({"type": b'"text"', "text": quote(words)})
    changed = {"content": b"[%b]" % b",".join([first, *kept, link])}
    if len(document.structured) > LETTERS * HEAD:
        is_shown = is_json or document.wrapper
        first_of_it = head if is_shown else abbreviated(document.structured, HEAD)
        changed["structuredContent"] = join_object(
            {"kept": quote(handle), "summary": quote(summary), "head": first_of_it, "more": quote(how)}
        )
    meta = document.fields.get("_meta", b"{}")
    if meta.startswith(b"{"):
        about = join_object({"handle": quote(handle), "bytes": b"%d" % len(result), "tokens": b"%d" % tokens})
        changed["_meta"] = with_members(meta, {META: about})
    return Reply(with_members(result, changed, existing=document.fields.keys()), estimate(words))


def with_note(result: bytes, note: str) -> bytes:
    """``result`` with one more text, ``note``. As it is, if it has no list of blocks."""
    try:
        blocks = split_object(result).get("content", b"[]").strip()
    except NotAnObject:
        return result
    if not (blocks.startswith(b"[") and blocks.endswith(b"]")):
        return result
    block = join_object({"type": b'"text"', "text": quote(note)})
    before = blocks[1:-1].strip()
    return with_members(result, {"content": b"[%b%b%b]" % (before, b"," if before else b"", block)})


def contents(result: bytes, uri: str) -> bytes:
    """The result of `resources/read` for a kept ``result``: its value as JSON, else its text. Raises
    UnreadableError.
    """
    document = read_result(result)
    resource = join_object(
        {"uri": quote(uri), "mimeType": _mime_type(document), "text": quote(shown(document))}
    )
    return join_object({"contents": b"[%b]" % resource})


def _mime_type(document: Document) -> bytes:
    return b'"application/json"' if document.value else b'"text/plain"'


def _example(document: Document) -> str:
    """Arguments that read something of it."""
    if not document.value:
        return '{"chars": "1-2000"}'
    if kind_of(document.value) == "array":
        first = next(iter(elements(document.value)), b"")
        key = next(iter(members(first)), ("", b""))[0] if kind_of(first) == "object" and first else ""
        path = f"[0:20].{key}" if key.isidentifier() and len(key) < 40 else "[0:20]"
    else:
        key = next(iter(members(document.value)), ("", b""))[0]
        path = key if key.isidentifier() and len(key) < 40 else "$"
    return f'{{"path": "{path}"}}'


def _text_kind(text: str) -> str:
    lines = text.count("\n") + 1
    return f"{lines:,} lines of text" if lines > 1 else f"a text of {len(text):,} characters"


def _limited(kind: str) -> str:
    return kind if estimate(kind[:1_000]) <= 200 and len(kind) <= 1_000 else f"{kind[:400]}…"
