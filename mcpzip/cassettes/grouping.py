"""Reads what belongs together from messages: ids, tokens, batches (pure)."""

from collections.abc import Iterable

import msgspec

from mcpzip.model.limits import BATCH, MEMBERS
from mcpzip.wire import NotAnObject, split_object
from mcpzip.wire.envelope import ABSENT, Envelope, UnreadableError, outline, peer_id, text_of
from mcpzip.wire.json_iter import TooManyError, elements_of

_NULL = b"null"


def parts_of(data: bytes) -> list[Envelope]:
    """The messages in ``data``: one, those of a batch, or none."""
    outlined = outline(data)
    if not isinstance(outlined, UnreadableError):
        return [outlined]
    if data.lstrip()[:1] == b"[":
        try:
            outlines = [outline(each) for each in elements_of(data, 10 * BATCH)]
        except (TooManyError, msgspec.DecodeError, RecursionError):
            return []
        return [each for each in outlines if not isinstance(each, UnreadableError)]
    return []


def is_answer(data: bytes) -> bool:
    """Whether ``data`` only answers requests."""
    parts = parts_of(data) if data else []
    return bool(parts) and all(part.method is ABSENT for part in parts)


def requests_in(parts: Iterable[Envelope]) -> set[bytes]:
    """The keys of the requests among messages."""
    return {key_of(part.id) for part in parts if part.method is not ABSENT and part.id is not ABSENT}


def method_of(part: Envelope) -> str:
    """The method; "" for an answer."""
    return "" if part.method is ABSENT else text_of(part.method) or ""


def params_of(part: Envelope) -> bytes | None:
    """The params as JSON text, None without any."""
    return None if part.params is ABSENT else bytes(part.params)


def key_of(id: bytes | msgspec.Raw) -> bytes:
    """An id or token, the same for every spelling of it. A missing id is null."""
    raw = _NULL if id is ABSENT else bytes(id)
    return peer_id(raw) or raw


def member_of(raw: bytes, key: str) -> bytes | None:
    """The JSON text of a member of an object; None if there is none."""
    try:
        fields = split_object(raw)
    except NotAnObject:
        return None
    return fields.get(key) if len(fields) <= MEMBERS else None
