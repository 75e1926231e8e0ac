"""One frame, decoded as far as a JSON-RPC message goes and no further.

The rule: every member is kept as the text it came in; a frame that can't be decoded is still read as far as
it is legible, so that whoever waits for it is told instead of left waiting.
"""

import re
from itertools import islice

import msgspec

from mcpzip.model import limits
from mcpzip.model.limits import MEMBERS
from mcpzip.wire.error_codes import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from mcpzip.wire.events import RpcError
from mcpzip.wire.framing import TAIL, Frame, FrameTooLong
from mcpzip.wire.json_object import (
    NotAnObject,
    check_utf8,
    is_json,
    join_object,
    may_hold_surrogates,
    quote,
    scan,
    split_object,
    unquote,
    without_surrogates,
)
from mcpzip.wire.surrogates import SurrogateMask

ABSENT = msgspec.Raw()
"""The one value of a member that isn't there; compare with ``is``."""


class UnreadableError(ValueError):
    """A frame that isn't a JSON-RPC envelope.

    code: the JSON-RPC error it deserves. outlined: whether the id that `salvage` finds is its id: it has the
    form of a message, and only its letters, its depth or its length are at fault.
    """

    def __init__(self, code: int, reason: str, *, outlined: bool) -> None:
        self.code, self.outlined = code, outlined
        super().__init__(reason)


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """The members JSON-RPC 2.0 knows (§4, §5), each its JSON text or ABSENT."""

    jsonrpc: msgspec.Raw = ABSENT
    id: msgspec.Raw = ABSENT
    method: msgspec.Raw = ABSENT
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MEMBERS = frozenset(Envelope.__struct_fields__)
_OF_ERROR = frozenset(("code", "message", "data"))
# Reading token by token is slow; whoever sends junk by the megabyte must not make everybody wait.
_LEGIBLE = 64 * 1024
_ID_STARTS = tuple(bytes([byte]) for byte in b'"-0123456789')
_CODE = re.compile(rb'"?(-?[0-9]{1,18})(?:\.0+)?"?')
_WHOLE = re.compile(rb'"?([0-9]{1,18})(?:\.0+)?"?')
_LAST_ID = re.compile(rb'"id"\s*:\s*(0|[1-9][0-9]{0,17})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')

_decode = msgspec.json.Decoder(Envelope).decode


def read(frame: Frame) -> Envelope:
    """The envelope of one frame. Raises UnreadableError."""
    if isinstance(frame, FrameTooLong):
        reason = f"a message of {frame.size_at_least} bytes is too long"
        raise UnreadableError(INVALID_REQUEST, reason, outlined=True)
    try:
        check_utf8(frame)  # msgspec steps over strings without looking at theirs
        return _decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_patiently(frame.removeprefix(_BYTE_ORDER_MARK))


def outline(frame: Frame) -> Envelope | UnreadableError:
    """As `read`, with the error as a value. It takes as long as ``frame`` is large: 1 ms a megabyte."""
    try:
        return read(frame)
    except UnreadableError as error:
        return error


def _read_patiently(frame: bytes) -> Envelope:
    """The same, where msgspec takes offence at what is allowed: lone surrogates, or a mark now removed."""
    try:
        check_utf8(frame)
        if may_hold_surrogates(frame):
            return _read_veiled(frame)
        values = _decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _fault(frame) from None
    return values


def _read_veiled(frame: bytes) -> Envelope:
    """At memory speed, or of few members."""
    if (veil := SurrogateMask.over(frame)) is not None:
        return _of({key: veil.lifted(value) for key, value in _known(_decode(veil.text)).items()})
    twin = without_surrogates(frame)
    known = _known(_decode(twin))
    standing = list(islice(scan(twin, known), MEMBERS + 1))
    if len(standing) > MEMBERS:
        reason = "a message has too many members beside lone surrogates"
        raise UnreadableError(INVALID_REQUEST, reason, outlined=True)
    # The same to the byte but for the escapes: the same offsets.
    return _of({it.key: frame[it.value : it.end] for it in standing if it.key in known})


def _known(values: Envelope) -> dict[str, bytes]:
    return {key: bytes(value) for key in _MEMBERS if (value := getattr(values, key)) is not ABSENT}


def salvage(frame: Frame) -> Envelope:
    """What the two ends of an unreadable frame still say; of a member that breaks off, that it was there."""
    if isinstance(frame, bytes):
        frame = FrameTooLong(len(frame), frame[:_LEGIBLE], frame[-TAIL:])
    head = frame.head.decode("utf-8", "replace").encode()
    fields = {
        member.key: head[member.value : member.end] if member.end >= 0 else b"" for member in scan(head, {})
    }
    # An id that held what had to be replaced, or that is no JSON, is nobody's.
    if (id := fields.get("id")) and not (id in frame.head and id.startswith(_ID_STARTS) and is_json(id)):
        del fields["id"]
    if not fields.get("id") and (last := _LAST_ID.search(frame.tail)):
        fields["id"] = last[1]
    return _of(fields)


def _fault(frame: bytes) -> UnreadableError:
    """Why ``frame`` isn't an object."""
    try:
        whole = is_json(frame)
    except RecursionError:
        return UnreadableError(PARSE_ERROR, "nested too deeply", outlined=True)
    if not whole:
        return UnreadableError(PARSE_ERROR, "not JSON", outlined=False)
    try:
        check_utf8(frame)
    except UnicodeDecodeError:
        return UnreadableError(PARSE_ERROR, "not UTF-8", outlined=True)
    if frame.startswith(b"["):
        return UnreadableError(INVALID_REQUEST, "MCP has had no batches since 2025-06-18", outlined=False)
    return UnreadableError(INVALID_REQUEST, "a message is a JSON object", outlined=False)


def _of(fields: dict[str, bytes]) -> Envelope:
    known = {key: msgspec.Raw(value) for key, value in fields.items() if key in _MEMBERS}
    return Envelope(**known)


def own_id(raw: bytes) -> int | None:
    """The number of a request of ours, spelt ``7``, ``"7"`` or ``7.0``; None for any other id."""
    try:
        return int(raw)
    except ValueError:
        spelt = _WHOLE.fullmatch(raw)
        return int(spelt[1]) if spelt else None


def peer_id(raw: bytes) -> bytes | None:
    """A key for a peer's id, equal for equal ids; None when it is no string and no integer, or too long."""
    if len(raw) > limits.ID:
        return None
    first = raw[:1]
    if first == b'"':
        text = text_of(raw) if b"\\" in raw else None
        return raw if text is None else quote(text)
    if first.isdigit() or first == b"-":
        if b"." in raw or b"e" in raw or b"E" in raw:
            return None
        return b"0" if raw == b"-0" else raw
    return None


def read_error(raw: bytes) -> RpcError:
    """An ``error`` member as a value; what doesn't fit its form is told in message and data."""
    try:
        fields = split_object(raw)
    except NotAnObject:
        return RpcError(INTERNAL_ERROR, _said(raw), None if raw[:1] == b'"' else raw)
    code, message, data = fields.get("code", b""), fields.get("message"), fields.get("data")
    said = "the peer gave no message" if message is None else _said(message)
    spelt = _CODE.fullmatch(code)
    others = {key: value for key, value in fields.items() if key not in _OF_ERROR}
    more = join_object(others) if others else None
    if data is None and not (spelt and message):
        data, more = raw, None
    if spelt:
        return RpcError(int(spelt[1]), said, data, more)
    return RpcError(INTERNAL_ERROR, f"{said} (error code {shown(code) or 'none'})", data, more)


def text_of(raw: bytes | msgspec.Raw) -> str | None:
    """The text of a JSON string; None when it is none."""
    try:
        return unquote(bytes(raw))
    except ValueError:
        return None


def shown(raw: bytes) -> str:
    """The first 200 bytes of ``raw``, for people."""
    return raw[:200].decode("utf-8", "replace")


def _said(raw: bytes) -> str:
    """The text of a JSON string, and any other JSON as it stands."""
    text = text_of(raw)
    return raw.decode() if text is None else text
