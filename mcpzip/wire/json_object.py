"""JSON objects one level deep, as text.

The rule: only the top level is ever looked at. A member's value is the bytes it came in (number spelling, key
order, escapes, the whitespace inside it), and what a function isn't asked to change stays byte for byte.

`msgspec` finds and validates the values at memory speed. Two things it does differently from RFC 8259 are
made good here: it steps over strings without checking their UTF-8 (§8.1), and it refuses escaped lone
surrogates such as ``\\ud800`` (§8.2), which real tools emit.
"""

import codecs
import json
import re
from collections.abc import Collection, Iterator, Mapping, Set
from typing import cast

import msgspec

from mcpzip.model.limits import MEMBERS
from mcpzip.wire.json_iter import WHITESPACE, Member, TooManyError, members_of
from mcpzip.wire.surrogates import SurrogateMask


class NotAnObject(ValueError):
    """The text isn't one JSON object in UTF-8."""


# A string that breaks off matches to the end of the text: were it no match, each quote in it would be tried
# anew.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<close>"|\\?\Z)', re.DOTALL)
_OPEN = re.compile(rb"[ \t\r\n]*+\{[ \t\r\n]*+")
_KEY = re.compile(b"(%b)%b" % (_STRING.pattern, rb"[ \t\r\n]*+:[ \t\r\n]*+"), re.DOTALL)
_COMMA = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+")
_AFTER = re.compile(rb"[ \t\r\n]*+[,}]")
_SCALAR = re.compile(rb"[-+.0-9A-Za-z]+")
_STRUCTURE = re.compile(_STRING.pattern + rb"|[\[\]{}]", re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_validate = msgspec.json.Decoder(msgspec.Raw).decode
_encode = msgspec.json.encode

_QUOTE = ord('"')
_SHORT = 64 * 1024
"""Bytes of an object that may have as many members as fit: to read 10,000 takes a millisecond or two."""
_STRETCH = 1 << 20
"""Bytes of a long text that are worked on at a time, so that what is made of them stays small."""


def split_object(raw: bytes) -> dict[str, bytes]:
    """The top-level members of a JSON object, each value as its JSON text.

    Of a key that stands twice the last value counts. Raises NotAnObject.
    """
    try:
        return {key: bytes(value) for key, value in _checked(raw).items()}
    except NotAnObject as error:
        if isinstance(error.__cause__, TooManyError) or not may_hold_surrogates(raw):
            raise
        return _split_veiled(raw)


def _split_veiled(raw: bytes) -> dict[str, bytes]:
    """The same where there are lone surrogates: at memory speed, or of few members."""
    if (veil := SurrogateMask.over(raw)) is not None:
        values = {key: bytes(value) for key, value in _checked(veil.text).items()}
        if (found := veil.members(values)) is not None:
            return found
    return {member.key: raw[member.value : member.end] for member in _walk(raw)}


def join_object(fields: Mapping[str, bytes]) -> bytes:
    """A JSON object of these members, values unchanged."""
    return b"{%b}" % b",".join([b"%b:%b" % (quote(key), value) for key, value in fields.items()])


def quote(text: str) -> bytes:
    """A JSON string. Lone surrogates, which UTF-8 can't hold, become escapes, as ``\\ud800``."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode()


def unquote(raw: bytes) -> str:
    """The text of a JSON string. Raises ValueError when ``raw`` isn't one."""
    if len(raw) < 2 or not raw[0] == _QUOTE == raw[-1]:
        raise ValueError("not a JSON string")
    if b"\\" not in raw:
        return raw[1:-1].decode()
    return cast(str, json.loads(raw.decode()))


def with_members(raw: bytes, fields: Mapping[str, bytes], *, standing: Set[str] | None = None) -> bytes:
    """``raw`` with these members: replaced where they stand, else appended in order. Raises NotAnObject.

    standing: the keys of ``raw``, where they are known: a long text is then read once less.
    """
    standing = _keys(raw) if standing is None else standing
    if standing.isdisjoint(fields):
        return _appended(raw, fields) if fields else raw
    pieces: list[bytes] = []
    done = 0
    for member in _walk(raw):
        if member.key in fields:
            pieces += raw[done : member.value], fields[member.key]
            done = member.end
    changed = b"".join([*pieces, raw[done:]])
    new = {key: value for key, value in fields.items() if key not in standing}
    return _appended(changed, new) if new else changed


def without_members(raw: bytes, keys: Collection[str]) -> bytes:
    """``raw`` without these members, and without the commas that set them off. Raises NotAnObject."""
    standing = members(raw)
    kept = [index for index, member in enumerate(standing) if member.key not in keys]
    if len(kept) == len(standing):
        return raw
    if not kept:
        return b"{}"
    first = standing[kept[0]]
    # Each later member brings what stands between it and the member before it: a comma and the space around
    # it.
    rest = [raw[standing[index - 1].end : standing[index].end] for index in kept[1:]]
    return b"".join([raw[: standing[0].start], raw[first.start : first.end], *rest, raw[standing[-1].end :]])


def members(raw: bytes) -> list[Member]:
    """Every top-level member in the order it stands, a key that stands twice included. Raises NotAnObject."""
    return list(_walk(raw))


def _walk(raw: bytes) -> Iterator[Member]:
    try:
        values = _checked(raw)
        twin = raw
    except NotAnObject:
        if not may_hold_surrogates(raw):
            raise
        twin = without_surrogates(raw)  # the same to the byte but for the escapes: the same offsets
        values = _checked(twin)
    found = members_of(twin, MEMBERS) if _may_be_many(twin) else scan(twin, values)
    for member in found:
        yield member if twin is raw else member._replace(key=_key_at(raw, member.start))


def scan(raw: bytes, values: Mapping[str, bytes | msgspec.Raw]) -> Iterator[Member]:
    """The members of ``raw`` as far as it can be read: of a JSON object all of them, of torn text the first
    ones.

    values: those known already; they are stepped over by comparing bytes, the others token by token.
    """
    opened = _OPEN.match(raw)
    at = opened.end() if opened else len(raw)
    while key := _KEY.match(raw, at):
        try:
            name = unquote(key[1])
        except ValueError:
            return
        value = key.end()
        end = _known_end(raw, value, values.get(name)) or _value_end(raw, value)
        yield Member(name, at, value, end)
        comma = _COMMA.match(raw, end) if end >= 0 else None
        if comma is None:
            return
        at = comma.end()


def is_json(raw: bytes) -> bool:
    """Whether ``raw`` is one JSON text, but for the UTF-8 in its strings. Raises RecursionError when nested
    too deeply.
    """
    try:
        _validate(without_surrogates(raw) if may_hold_surrogates(raw) else raw)
    except msgspec.DecodeError:
        return False
    return True


def check_utf8(raw: bytes) -> None:
    """Raises UnicodeDecodeError when ``raw`` isn't UTF-8. The text, up to four times as long, isn't kept."""
    if raw.isascii():
        return
    decode = codecs.getincrementaldecoder("utf-8")().decode
    for at in range(0, len(raw), _STRETCH):
        decode(raw[at : at + _STRETCH])
    decode(b"", True)


def _keys(raw: bytes) -> Set[str]:
    try:
        return _checked(raw).keys()
    except NotAnObject:
        return split_object(raw).keys()


def _appended(raw: bytes, fields: Mapping[str, bytes]) -> bytes:
    """``raw`` with these members after its last; the space before its closing brace stays there."""
    head = raw[: raw.rindex(b"}")].rstrip(WHITESPACE)
    comma = b"" if head[-1:] == b"{" else b","
    return b"".join([head, comma, join_object(fields)[1:-1], raw[len(head) :]])


def _checked(raw: bytes) -> dict[str, msgspec.Raw]:
    try:
        check_utf8(raw)
        if not _may_be_many(raw):
            found = _decode(raw)
            if len(found) > MEMBERS:
                raise TooManyError(f"more than {MEMBERS:,} members")
            return found
        return {
            member.key: msgspec.Raw(memoryview(raw)[member.value : member.end])
            for member in members_of(raw, MEMBERS)
        }
    except (msgspec.DecodeError, UnicodeDecodeError, TooManyError) as error:
        raise NotAnObject(str(error)) from error
    except RecursionError as error:
        raise NotAnObject("nested too deeply") from error


def _may_be_many(raw: bytes) -> bool:
    """Whether the object ``raw`` may have more members than are made into Python's values without a look."""
    return len(raw) > _SHORT and raw.count(b":") > MEMBERS


def may_hold_surrogates(raw: bytes) -> bool:
    return b"\\ud" in raw or b"\\uD" in raw


def without_surrogates(raw: bytes) -> bytes:
    """``raw`` with harmless escapes of the same length in the place of all surrogates'."""
    # After an escaped backslash the letters are no escape, but they may change as well.
    pieces: list[bytes] = []
    at = 0
    while at < len(raw):
        end = at + _STRETCH
        if end < len(raw) and (escape := raw.rfind(b"\\", end - 5, end)) >= 0:
            end = escape  # it may reach across
        pieces.append(_SURROGATE.sub(rb"\\u0020", raw[at:end]))
        at = end
    return b"".join(pieces)


def _key_at(raw: bytes, start: int) -> str:
    key = _STRING.match(raw, start)
    return unquote(key[0]) if key else ""


def _known_end(raw: bytes, at: int, known: bytes | msgspec.Raw | None) -> int:
    """Where ``known`` ends if it stands here whole, else 0 (an earlier value of a key that stands twice)."""
    if known is None or not raw.startswith(value := bytes(known), at):
        return 0
    end = at + len(value)
    return end if _AFTER.match(raw, end) else 0


def _value_end(raw: bytes, at: int) -> int:
    """Where the value at ``at`` ends; -1 when the text breaks off before."""
    if text := _STRING.match(raw, at):
        return text.end() if text["close"] == b'"' else -1
    if raw[at : at + 1] not in (b"{", b"["):
        scalar = _SCALAR.match(raw, at)
        return scalar.end() if scalar and scalar.end() < len(raw) else -1
    depth = 0
    for token in _STRUCTURE.finditer(raw, at):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return token.end()
    return -1
