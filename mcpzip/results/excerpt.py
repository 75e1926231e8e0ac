"""Excerpts of long texts and of large JSON values (pure)."""

from collections.abc import Iterable, Sequence
from itertools import islice

from mcpzip.model.tokens import estimate
from mcpzip.results.slices import UnreadableError, count_elements, elements, kind_of, members
from mcpzip.wire import quote, unquote

LETTERS = 3
"""Characters for a token, where a text is cut without looking for words."""
_STRING = 240
"""Characters of a string in an abbreviated value."""
_KEY = 80
_DEPTH = 6


def fitting(pieces: Sequence[str], tokens: int) -> int:
    """How many of the first ``pieces`` have no more than ``tokens`` together, with a token between two."""
    left = tokens
    for number, piece in enumerate(pieces):
        left -= 1 + (estimate(piece) if len(piece) <= 4 * LETTERS * max(left, 1) else left)
        if left < 0:
            return number
    return len(pieces)


def beginning(text: str, tokens: int) -> str:
    """The first lines of ``text`` that fit; of the first line its beginning, if that doesn't."""
    lines = text[: 4 * LETTERS * tokens].split("\n")
    fit = fitting(lines, tokens)
    return "\n".join(lines[:fit]) if fit else lines[0][: LETTERS * tokens]


def abbreviated(value: bytes, tokens: int) -> bytes:
    """``value`` as a shorter JSON value of the same kind. What is left out is said in it: long strings end
    with their length, arrays and objects with the number of elements or members that are missing.
    """
    return _abbreviated(value, [LETTERS * tokens], _DEPTH)


def _abbreviated(value: bytes, room: list[int], depth: int) -> bytes:
    """room: bytes that are left; what is written is taken from it."""
    kind = kind_of(value)
    if kind in ("object", "array"):
        if len(value) <= room[0] and len(value) <= _STRING:
            return _took(value, room)
        try:
            return _members(value, room, depth) if kind == "object" else _elements(value, room, depth)
        except UnreadableError:
            return _took(b'"\xe2\x80\xa6"', room)
    if kind == "string" and len(value) > _STRING:
        text = unquote(value)
        if len(text) > _STRING:
            return _took(quote(f"{text[:_STRING]}… ({len(text):,} characters)"), room)
    return _took(value if len(value) <= 4 * _STRING else b'"\xe2\x80\xa6"', room)


def _elements(value: bytes, room: list[int], depth: int) -> bytes:
    found: list[bytes] = []
    rest = iter(elements(value))
    if depth > 0:
        for element in rest:
            found.append(_abbreviated(element, room, depth - 1))
            if room[0] <= 0:
                break
        else:
            return b"[%b]" % b",".join(found)
    number = count_elements(value)
    if number is None or number > len(found):
        more = "many" if number is None else f"{number - len(found):,}"
        found.append(_took(quote(f"… {more} more"), room))
    return b"[%b]" % b",".join(found)


def _members(value: bytes, room: list[int], depth: int) -> bytes:
    found: list[bytes] = []
    rest = iter(members(value))
    if depth > 0:
        for key, each in rest:
            name = quote(key if len(key) <= _KEY else f"{key[:_KEY]}…")
            found.append(b"%b:%b" % (_took(name, room), _abbreviated(each, room, depth - 1)))
            if room[0] <= 0:
                break
    if more := _count(rest):
        found.append(_took(b'"\xe2\x80\xa6":' + quote(f"{more} more"), room))
    return b"{%b}" % b",".join(found)


def _count(rest: Iterable[object]) -> str:
    """How many there are, for people; "" for none."""
    number = 0
    try:
        for _ in islice(rest, 100_000):
            number += 1
    except UnreadableError:
        return "many"
    if number == 100_000:
        return "100,000 or"
    return f"{number:,}" if number else ""


def _took(written: bytes, room: list[int]) -> bytes:
    room[0] -= len(written)
    return written
