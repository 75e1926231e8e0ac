"""Decodes the JSON-RPC envelope of a frame; the members stay JSON text.

If a frame can't be decoded, `salvage` still looks for its id, so that the request which waits for it fails
with an error instead of a timeout.
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
"""The value of a missing member; compare with ``is``."""


class UnreadableError(ValueError):
    """A frame that isn't a JSON-RPC envelope.

    code: the JSON-RPC error code to answer. outlined: whether the id that `salvage` finds can be trusted: the
    frame looks like a message, and only its encoding, depth, length or number of members is at fault.
    """

    def __init__(self, code: int, reason: str, *, outlined: bool) -> None:
        self.code, self.outlined = code, outlined
        super().__init__(reason)


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """The members of a JSON-RPC 2.0 message (§4, §5), each as its JSON text or ABSENT."""

    jsonrpc: msgspec.Raw = ABSENT
    id: msgspec.Raw = ABSENT
    method: msgspec.Raw = ABSENT
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MEMBERS = frozenset(Envelope.__struct_fields__)
_ERROR_MEMBERS = frozenset(("code", "message", "data"))
_SALVAGED = 64 * 1024
"""Bytes of an unreadable frame that `salvage` scans, because scanning by tokens is slow."""
_ID_STARTS = tuple(bytes([byte]) for byte in b'"-0123456789')
_INTEGER = re.compile(rb'"?(-?[0-9]{1,18})(?:\.0+)?"?')
_OWN_ID = re.compile(rb'"?([0-9]{1,18})(?:\.0+)?"?')
_LAST_ID = re.compile(rb'"id"\s*:\s*(0|[1-9][0-9]{0,17})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')

_decode = msgspec.json.Decoder(Envelope).decode


def read(frame: Frame) -> Envelope:
    """The envelope of one frame. Raises UnreadableError."""
    if isinstance(frame, FrameTooLong):
        reason = f"a message of {frame.size_at_least} bytes is too long"
        raise UnreadableError(INVALID_REQUEST, reason, outlined=True)
    try:
        if not frame.isascii():
            check_utf8(frame)  # msgspec skips strings without checking their UTF-8
        return _decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_tolerantly(frame.removeprefix(_BYTE_ORDER_MARK))


def outline(frame: Frame) -> Envelope | UnreadableError:
    """As `read`, but returns an UnreadableError instead of raising it. Takes about 1 ms per megabyte."""
    try:
        return read(frame)
    except UnreadableError as error:
        return error


def _read_tolerantly(frame: bytes) -> Envelope:
    """As `read`, also for frames with lone surrogates, which msgspec rejects."""
    try:
        check_utf8(frame)
        return _read_with_surrogates(frame) if may_hold_surrogates(frame) else _decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _fault(frame) from None


def _read_with_surrogates(frame: bytes) -> Envelope:
    """Fast if the surrogates can be masked, else by tokens and with a limit on the number of members."""
    if (mask := SurrogateMask.over(frame)) is not None:
        return _envelope({key: mask.unmask(value) for key, value in _present(_decode(mask.text)).items()})
    replaced = without_surrogates(frame)
    present = _present(_decode(replaced))
    found = list(islice(scan(replaced, present), MEMBERS + 1))
    if len(found) > MEMBERS:
        reason = "a message has too many members beside lone surrogates"
        raise UnreadableError(INVALID_REQUEST, reason, outlined=True)
    # Replacing escapes keeps all offsets.
    return _envelope({it.key: frame[it.value : it.end] for it in found if it.key in present})


def _present(envelope: Envelope) -> dict[str, bytes]:
    return {key: bytes(value) for key in _MEMBERS if (value := getattr(envelope, key)) is not ABSENT}


def salvage(frame: Frame) -> Envelope:
    """The members that can be found in the first and last bytes of an unreadable frame. A member whose value
    is incomplete is b"".
    """
    if isinstance(frame, bytes):
        frame = FrameTooLong(len(frame), frame[:_SALVAGED], frame[-TAIL:])
    head = frame.head.decode("utf-8", "replace").encode()
    fields = {
        member.key: head[member.value : member.end] if member.end >= 0 else b"" for member in scan(head, {})
    }
    # An id is dropped if it had invalid UTF-8 or is no JSON, because it might match another request.
    if (id := fields.get("id")) and not (id in frame.head and id.startswith(_ID_STARTS) and is_json(id)):
        del fields["id"]
    if not fields.get("id") and (last := _LAST_ID.search(frame.tail)):
        fields["id"] = last[1]
    return _envelope(fields)


def _fault(frame: bytes) -> UnreadableError:
    """Why ``frame`` can't be read."""
    try:
        valid = is_json(frame)
    except RecursionError:
        return UnreadableError(PARSE_ERROR, "nested too deeply", outlined=True)
    if not valid:
        return UnreadableError(PARSE_ERROR, "not JSON", outlined=False)
    try:
        check_utf8(frame)
    except UnicodeDecodeError:
        return UnreadableError(PARSE_ERROR, "not UTF-8", outlined=True)
    if frame.startswith(b"["):
        return UnreadableError(INVALID_REQUEST, "MCP has had no batches since 2025-06-18", outlined=False)
    return UnreadableError(INVALID_REQUEST, "a message is a JSON object", outlined=False)


def _envelope(fields: dict[str, bytes]) -> Envelope:
    return Envelope(**{key: msgspec.Raw(value) for key, value in fields.items() if key in _MEMBERS})


def own_id(raw: bytes) -> int | None:
    """The id of a request of ours, written ``7``, ``"7"`` or ``7.0``; None for any other id."""
    try:
        return int(raw)
    except ValueError:
        match = _OWN_ID.fullmatch(raw)
        return int(match[1]) if match else None


def peer_id(raw: bytes) -> bytes | None:
    """A dictionary key for a peer's id, the same for every spelling of a string. None if the id is neither a
    string nor an integer, or longer than `limits.ID`.
    """
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
    """The ``error`` member of a response. A malformed one becomes INTERNAL_ERROR with its text as data."""
    try:
        fields = split_object(raw)
    except NotAnObject:
        return RpcError(INTERNAL_ERROR, _text_or_json(raw), None if raw[:1] == b'"' else raw)
    code, message, data = fields.get("code", b""), fields.get("message"), fields.get("data")
    text = "the peer gave no message" if message is None else _text_or_json(message)
    number = _INTEGER.fullmatch(code)
    others = {key: value for key, value in fields.items() if key not in _ERROR_MEMBERS}
    more = join_object(others) if others else None
    if data is None and not (number and message):
        data, more = raw, None
    if number:
        return RpcError(int(number[1]), text, data, more)
    return RpcError(INTERNAL_ERROR, f"{text} (error code {shown(code) or 'none'})", data, more)


def text_of(raw: bytes | msgspec.Raw) -> str | None:
    """The text of a JSON string; None for any other JSON."""
    try:
        return unquote(bytes(raw))
    except ValueError:
        return None


def shown(raw: bytes) -> str:
    """The first 200 bytes of ``raw`` as text, for a message to the user."""
    return raw[:200].decode("utf-8", "replace")


def _text_or_json(raw: bytes) -> str:
    """The text of a JSON string; any other JSON unchanged."""
    text = text_of(raw)
    return raw.decode() if text is None else text
