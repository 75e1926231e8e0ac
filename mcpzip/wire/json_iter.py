"""JSON objects and arrays as text, stepped through one value after another.

The rule: of a text no more is made than was asked for, whatever stands in it: 64 MiB may be eleven million
members, which take gigabytes as Python's values. Where a value ends `msgspec` finds at memory speed: it says
where what follows begins, which it refuses.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec


class TooManyError(ValueError):
    """There are more members, or elements, than are wanted."""


class Member(NamedTuple):
    """Where one member stands: its key, and the offsets of the key's quote, of the value, and of the value's
    end.

    ``end`` is -1 when the text breaks off inside the value.
    """

    key: str
    start: int
    value: int
    end: int


_value = msgspec.json.Decoder(msgspec.Raw).decode
_text = msgspec.json.Decoder(str).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode

_FOLLOWS = re.compile(r"trailing characters \(byte ([0-9]+)\)")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_KEY = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL)
WHITESPACE = b" \t\r\n"
"""What may stand around a value (RFC 8259, 2)."""


def elements_of(raw: bytes, most: int) -> list[bytes]:
    """The elements of a JSON array, each as it came.

    Raises TooManyError for more than ``most``, and msgspec.DecodeError when ``raw`` is no array.
    """
    if raw.count(b",") < most:  # each but the first stands after a comma
        return [bytes(element) for element in _array(raw)]
    found: list[bytes] = []
    for start, end in _elements(raw):
        if len(found) >= most:
            raise TooManyError(f"more than {most:,} elements")
        found.append(raw[start:end])
    return found


def has_more_elements(raw: bytes | memoryview, most: int) -> bool:
    """Whether the JSON array ``raw`` has more than ``most`` elements. Holds none of them.

    Raises msgspec.DecodeError when ``raw`` is no array.
    """
    return any(number >= most for number, _ in enumerate(_elements(raw)))


def members_of(raw: bytes, most: int) -> Iterator[Member]:
    """The members of a JSON object, in the order they stand.

    Raises TooManyError for more than ``most``, and msgspec.DecodeError when ``raw`` is no object. What was
    given before that is no less so.
    """
    view = memoryview(raw)
    at = _opened(raw, b"{")
    if raw[at : at + 1] == b"}":
        return _closed(raw, at + 1)
    for _ in range(most):
        key = _KEY.match(raw, at)
        if key is None:
            raise _broken(at)
        name, value = _text(key[1]), key.end()
        end, after = _stepped(view, value)
        yield Member(name, at, value, end)
        if raw[after : after + 1] == b"}":
            return _closed(raw, after + 1)
        at = _next(raw, after)
    raise TooManyError(f"more than {most:,} members")


def _elements(raw: bytes | memoryview) -> Iterator[tuple[int, int]]:
    """Where each element of a JSON array begins and ends."""
    view = memoryview(raw)
    at = _opened(raw, b"[")
    if raw[at : at + 1] == b"]":
        return _closed(raw, at + 1)
    while True:
        end, after = _stepped(view, at)
        yield at, end
        if raw[after : after + 1] == b"]":
            return _closed(raw, after + 1)
        at = _next(raw, after)


def _stepped(view: memoryview, at: int) -> tuple[int, int]:
    """Where the value at ``at`` ends, and where what follows it begins."""
    try:
        _value(view[at:])
    except msgspec.DecodeError as error:
        follows = _FOLLOWS.search(str(error))
        if follows is None:
            raise
        after = at + int(follows[1]) - 1
    else:
        raise _broken(len(view))
    end = after
    while view[end - 1] in WHITESPACE:
        end -= 1
    return end, after


def _opened(raw: bytes | memoryview, brace: bytes) -> int:
    """Where what stands within ``brace`` begins."""
    at = _past_space(raw, 0)
    if raw[at : at + 1] != brace:
        raise _broken(at)
    return _past_space(raw, at + 1)


def _next(raw: bytes | memoryview, at: int) -> int:
    """Where what follows the comma at ``at`` begins."""
    if raw[at : at + 1] != b",":
        raise _broken(at)
    return _past_space(raw, at + 1)


def _closed(raw: bytes | memoryview, at: int) -> None:
    if _past_space(raw, at) != len(raw):
        raise _broken(at)


def _past_space(raw: bytes | memoryview, at: int) -> int:
    found = _SPACE.match(raw, at)
    return at if found is None else found.end()


def _broken(at: int) -> msgspec.DecodeError:
    return msgspec.DecodeError(f"JSON is malformed: unexpected character (byte {at})")
