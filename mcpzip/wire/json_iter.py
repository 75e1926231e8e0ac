"""Iterates over the members of a JSON object or the elements of an array without decoding the whole text.

A text of 64 MiB may have eleven million members, which would take gigabytes as Python objects. `msgspec`
finds the end of a value fast: decoding a value with text after it fails, and the error states where that text
begins.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec


class TooManyError(ValueError):
    """There are more members or elements than the caller's limit."""


class Member(NamedTuple):
    """The position of a member: its key, and the offsets of the key's opening quote, of the value, and of the
    value's end, which is -1 if the text ends inside the value.
    """

    key: str
    start: int
    value: int
    end: int


_decode = msgspec.json.Decoder(msgspec.Raw).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode

_TRAILING = re.compile(r"trailing characters \(byte ([0-9]+)\)")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_KEY = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL)
WHITESPACE = b" \t\r\n"
"""JSON whitespace (RFC 8259, 2)."""


def elements_of(raw: bytes, most: int) -> list[bytes]:
    """The elements of a JSON array, each as its JSON text.

    Raises TooManyError for more than ``most``, msgspec.DecodeError if ``raw`` is no array.
    """
    if raw.count(b",") < most:  # there is a comma before each element but the first
        return [bytes(element) for element in _decode_array(raw)]
    found: list[bytes] = []
    for start, end in element_offsets(raw):
        if len(found) >= most:
            raise TooManyError(f"more than {most:,} elements")
        found.append(raw[start:end])
    return found


def has_more_elements(raw: bytes | memoryview, most: int) -> bool:
    """Whether the JSON array ``raw`` has more than ``most`` elements. Uses constant memory.

    Raises msgspec.DecodeError if ``raw`` is no array.
    """
    return any(number >= most for number, _ in enumerate(element_offsets(raw)))


def members_of(raw: bytes, most: int) -> Iterator[Member]:
    """Yields the members of a JSON object, in order.

    Raises TooManyError after ``most`` members, msgspec.DecodeError where ``raw`` stops being an object; the
    members before that are correct.
    """
    view = memoryview(raw)
    at = _open(raw, b"{")
    if raw[at : at + 1] == b"}":
        return _check_end(raw, at + 1)
    for _ in range(most):
        key = _KEY.match(raw, at)
        if key is None:
            raise _malformed(at)
        name, value = _decode_text(key[1]), key.end()
        end, after = _skip_value(view, value)
        yield Member(name, at, value, end)
        if raw[after : after + 1] == b"}":
            return _check_end(raw, after + 1)
        at = _skip_comma(raw, after)
    raise TooManyError(f"more than {most:,} members")


def element_offsets(raw: bytes | memoryview) -> Iterator[tuple[int, int]]:
    """Yields the offsets of the start and the end of each element of a JSON array. Raises
    msgspec.DecodeError where ``raw`` stops being an array; the elements before that are correct.
    """
    view = memoryview(raw)
    at = _open(raw, b"[")
    if raw[at : at + 1] == b"]":
        return _check_end(raw, at + 1)
    while True:
        end, after = _skip_value(view, at)
        yield at, end
        if raw[after : after + 1] == b"]":
            return _check_end(raw, after + 1)
        at = _skip_comma(raw, after)


def _skip_value(view: memoryview, at: int) -> tuple[int, int]:
    """The offsets of the end of the value at ``at``, and of the next token."""
    try:
        _decode(view[at:])
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing is None:
            raise
        after = at + int(trailing[1]) - 1
    else:
        raise _malformed(len(view))
    end = after
    while view[end - 1] in WHITESPACE:
        end -= 1
    return end, after


def _open(raw: bytes | memoryview, brace: bytes) -> int:
    """The offset of the first token after the opening ``brace``."""
    at = _skip_space(raw, 0)
    if raw[at : at + 1] != brace:
        raise _malformed(at)
    return _skip_space(raw, at + 1)


def _skip_comma(raw: bytes | memoryview, at: int) -> int:
    """The offset of the first token after the comma at ``at``."""
    if raw[at : at + 1] != b",":
        raise _malformed(at)
    return _skip_space(raw, at + 1)


def _check_end(raw: bytes | memoryview, at: int) -> None:
    if _skip_space(raw, at) != len(raw):
        raise _malformed(at)


def _skip_space(raw: bytes | memoryview, at: int) -> int:
    found = _SPACE.match(raw, at)
    return at if found is None else found.end()


def _malformed(at: int) -> msgspec.DecodeError:
    return msgspec.DecodeError(f"JSON is malformed: unexpected character (byte {at})")
