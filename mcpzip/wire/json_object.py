"""Reads and edits the top level of JSON objects as text.

A member's value stays the bytes that were received (number spelling, key order, escapes, whitespace), and
everything that a function is not asked to change stays the same.

`msgspec` finds and validates the values. This module makes up for two deviations from RFC 8259: msgspec does
not check the UTF-8 of strings that it skips (§8.1), and rejects escaped lone surrogates such as ``\\ud800``
(§8.2), which some tools send.
"""

import codecs
import re
from collections.abc import Collection, Iterator, Mapping, Set
from typing import cast

import msgspec

from mcpzip.model.limits import MEMBERS
from mcpzip.wire.json_iter import WHITESPACE, Member, TooManyError, members_of
from mcpzip.wire.surrogates import SurrogateMask


class NotAnObject(ValueError):
    """The text isn't a JSON object in UTF-8, or has more than `limits.MEMBERS` members."""


# An unterminated string matches up to the end of the text; otherwise the search would restart at each quote,
# which takes quadratic time.
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
"""Bytes of an object that is decoded before its members are counted: 10,000 members take about 2 ms."""
_FEW = 4 * MEMBERS
"""Bytes of an object that can't have more than MEMBERS members: each takes 5, as in ``"":0,``."""
_CHUNK = 1 << 20
"""Bytes of a long text that are processed at a time, to limit the memory for intermediate results."""


def split_object(raw: bytes) -> dict[str, bytes]:
    """The top-level members of a JSON object, each value as its JSON text.

    The last value of a duplicate key counts. Raises NotAnObject.
    """
    try:
        if len(raw) <= _FEW and raw.isascii():  # nothing else is to be checked, and every call takes this way
            return {key: bytes(value) for key, value in _decode(raw).items()}
    except (msgspec.DecodeError, RecursionError):
        pass  # told below
    try:
        return {key: bytes(value) for key, value in _checked(raw).items()}
    except NotAnObject as error:
        if isinstance(error.__cause__, TooManyError) or not may_hold_surrogates(raw):
            raise
        return _split_with_surrogates(raw)


def _split_with_surrogates(raw: bytes) -> dict[str, bytes]:
    """Fast if the surrogates can be masked, else by tokens."""
    if (mask := SurrogateMask.over(raw)) is not None:
        values = {key: bytes(value) for key, value in _checked(mask.text).items()}
        if (found := mask.unmask_members(values)) is not None:
            return found
    return {member.key: raw[member.value : member.end] for member in _walk(raw)}


def join_object(fields: Mapping[str, bytes]) -> bytes:
    """The JSON text of an object with these members, whose values are JSON text."""
    return b"{%b}" % b",".join([b"%b:%b" % (quote(key), value) for key, value in fields.items()])


def quote(text: str) -> bytes:
    """``text`` as a JSON string. Lone surrogates, which UTF-8 can't encode, become escapes (``\\ud800``)."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        import json  # takes 2 ms, and few texts need it

        return json.dumps(text).encode()


def unquote(raw: bytes) -> str:
    """The text of a JSON string. Raises ValueError when ``raw`` isn't one."""
    if len(raw) < 2 or not raw[0] == _QUOTE == raw[-1]:
        raise ValueError("not a JSON string")
    if b"\\" not in raw:
        return raw[1:-1].decode()
    import json

    return cast(str, json.loads(raw.decode()))


def with_members(raw: bytes, fields: Mapping[str, bytes], *, existing: Set[str] | None = None) -> bytes:
    """``raw`` with these members: existing ones replaced in place, new ones appended. Raises NotAnObject.

    existing: the keys of ``raw`` if the caller knows them, which saves reading a long text again.
    """
    existing = keys_of(raw) if existing is None else existing
    if existing.isdisjoint(fields):
        return _append(raw, fields) if fields else raw
    pieces: list[bytes] = []
    done = 0
    for member in _walk(raw):
        if member.key in fields:
            pieces += raw[done : member.value], fields[member.key]
            done = member.end
    changed = b"".join([*pieces, raw[done:]])
    new = {key: value for key, value in fields.items() if key not in existing}
    return _append(changed, new) if new else changed


def without_members(raw: bytes, keys: Collection[str]) -> bytes:
    """``raw`` without these members and their commas. Raises NotAnObject."""
    found = members(raw)
    kept = [index for index, member in enumerate(found) if member.key not in keys]
    if len(kept) == len(found):
        return raw
    if not kept:
        return b"{}"
    first = found[kept[0]]
    # Each later member is copied with the comma and the whitespace before it.
    rest = [raw[found[index - 1].end : found[index].end] for index in kept[1:]]
    return b"".join([raw[: found[0].start], raw[first.start : first.end], *rest, raw[found[-1].end :]])


def members(raw: bytes) -> list[Member]:
    """All top-level members in order, with duplicate keys. Raises NotAnObject."""
    return list(_walk(raw))


def _walk(raw: bytes) -> Iterator[Member]:
    try:
        values = _checked(raw)
        readable = raw
    except NotAnObject:
        if not may_hold_surrogates(raw):
            raise
        readable = without_surrogates(raw)  # has the same offsets
        values = _checked(readable)
    found = members_of(readable, MEMBERS) if _may_be_many(readable) else scan(readable, values)
    for member in found:
        yield member if readable is raw else member._replace(key=_key_at(raw, member.start))


def scan(raw: bytes, values: Mapping[str, bytes | msgspec.Raw]) -> Iterator[Member]:
    """Yields the members of ``raw`` up to the first syntax error.

    values: values that are known already. They are skipped by comparing bytes, the others token by token.
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
    """Whether ``raw`` is valid JSON; the UTF-8 of its strings is not checked. Raises RecursionError if
    ``raw`` is nested too deeply.
    """
    try:
        _validate(without_surrogates(raw) if may_hold_surrogates(raw) else raw)
    except msgspec.DecodeError:
        return False
    return True


def check_utf8(raw: bytes) -> None:
    """Raises UnicodeDecodeError if ``raw`` isn't UTF-8. Decodes in chunks, because the whole text may take
    four times the memory of ``raw``.
    """
    if raw.isascii():
        return
    decode = codecs.getincrementaldecoder("utf-8")().decode
    for start in range(0, len(raw), _CHUNK):
        decode(raw[start : start + _CHUNK])
    decode(b"", True)


def keys_of(raw: bytes) -> Set[str]:
    """The top-level keys of a JSON object. Raises NotAnObject."""
    try:
        if len(raw) <= _FEW and raw.isascii():  # as in `split_object`
            return _decode(raw).keys()
    except (msgspec.DecodeError, RecursionError):
        pass  # told below
    try:
        return _checked(raw).keys()
    except NotAnObject:
        return split_object(raw).keys()


def _append(raw: bytes, fields: Mapping[str, bytes]) -> bytes:
    """``raw`` with these members after its last one, before the whitespace at the closing brace."""
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
    """Whether ``raw`` may have so many members that it must not be decoded before they are counted."""
    return len(raw) > _SHORT and raw.count(b":") > MEMBERS


def may_hold_surrogates(raw: bytes) -> bool:
    """Whether ``raw`` (JSON text) may have an escape of a surrogate."""
    return b"\\u" in raw and (b"\\ud" in raw or b"\\uD" in raw)


def without_surrogates(raw: bytes) -> bytes:
    """``raw`` with all escaped surrogates replaced by the escape of a space, which has the same length.

    Also replaces such letters after an escaped backslash, which are no escape: only offsets matter here.
    """
    chunks: list[bytes] = []
    start = 0
    while start < len(raw):
        end = start + _CHUNK
        if end < len(raw) and (escape := raw.rfind(b"\\", end - 5, end)) >= 0:
            end = escape  # do not split an escape
        chunks.append(_SURROGATE.sub(rb"\\u0020", raw[start:end]))
        start = end
    return b"".join(chunks)


def _key_at(raw: bytes, start: int) -> str:
    key = _STRING.match(raw, start)
    return unquote(key[0]) if key else ""


def _known_end(raw: bytes, at: int, known: bytes | msgspec.Raw | None) -> int:
    """The offset of the end of ``known`` if it is the value at ``at``; 0 if not (a duplicate key)."""
    if known is None or not raw.startswith(value := bytes(known), at):
        return 0
    end = at + len(value)
    return end if _AFTER.match(raw, end) else 0


def _value_end(raw: bytes, at: int) -> int:
    """The offset of the end of the value at ``at``; -1 if the text ends before."""
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
