"""Unescapes a text and maps the result to offsets in the original (pure).

The escapes of JSON, programming languages, `repr`, URLs and HTML are replaced, repeatedly if they are nested;
the format of the text need not be known. Invalid escapes stay unchanged. The time is linear in the text.
"""

import re
import sys
from collections.abc import Iterator

from mcpzip.model.lazy_pattern import lazy_pattern

DEEPEST = 5
"""Maximum number of passes: JSON in JSON in a URL takes three."""

_PAIR = r"u[Dd][89ABab][0-9A-Fa-f]{2}%su[Dd][C-Fc-f][0-9A-Fa-f]{2}"
_ESCAPES = {
    "\\": r"\\(?:"
    + _PAIR % r"\\"
    + r"|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[abfnrtv\"'/\\`])",
    "%": r"%(?:" + _PAIR % "%" + r"|u[0-9A-Fa-f]{4}|[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*)",
    "&": r"&(?:\#[Xx][0-9A-Fa-f]{1,6}|\#[0-9]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});",
}
_BY_SIGN = {sign: lazy_pattern(escape) for sign, escape in _ESCAPES.items()}
_ANY = lazy_pattern("|".join(_ESCAPES.values()))
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LETTER_LENGTH, _OCTET_LENGTH, _PAIR_LENGTH = 2, 3, 12


def unescaped(text: str) -> Iterator[tuple[str, list[int]]]:
    """Yields ``text`` unescaped once, twice and so on, at most `DEEPEST` times while there are escapes: first
    with the escapes of all formats, then with those of each format alone.

    Each comes with the offsets in ``text`` at which its characters begin, and of its end.
    """
    signs = [sign for sign in _BY_SIGN if sign in text]
    if signs:
        yield from _passes(text, _ANY)
    for sign in signs if len(signs) > 1 else ():
        yield from _passes(text, _BY_SIGN[sign])


def _passes(text: str, escape: re.Pattern[str]) -> Iterator[tuple[str, list[int]]]:
    offsets = list(range(len(text) + 1))
    for _ in range(DEEPEST):
        plain, offsets = _unescape(text, offsets, escape)
        if plain == text:
            return
        text = plain
        yield text, offsets


def _unescape(text: str, offsets: list[int], escape: re.Pattern[str]) -> tuple[str, list[int]]:
    """One pass. Returns the text, and for its characters the values of ``offsets``."""
    pieces: list[str] = []
    mapped: list[int] = []
    end = 0
    for match in escape.finditer(text):
        start, stop = match.span()
        pieces.append(text[end:start])
        mapped += offsets[end:start]
        end = stop
        original = match[0]
        if original[0] == "%" and original[1] != "u":
            decoded, lengths = _decode_octets(bytes.fromhex(original.replace("%", "")))
            pieces.append(decoded)
            for length in lengths:
                mapped.append(offsets[start])
                start += _OCTET_LENGTH * length
        elif (value := _value(original)) and value != original:
            pieces.append(value)
            mapped += [offsets[start]] + [offsets[stop - 1]] * (len(value) - 1)
        else:
            pieces.append(original)
            mapped += offsets[start:stop]
    pieces.append(text[end:])
    mapped += offsets[end:]
    return "".join(pieces), mapped


def _value(escape: str) -> str:
    """The text for one escape; "" or the escape itself if it is invalid."""
    if escape[0] == "&":
        from html import unescape  # rarely needed

        return unescape(escape)
    if len(escape) == _LETTER_LENGTH:
        return _LETTERS.get(escape[1], escape[1])
    if len(escape) == _PAIR_LENGTH:
        return bytes.fromhex(escape[2:6] + escape[8:]).decode("utf-16-be")
    number = int(escape[2:].strip("{}"), 16)
    return chr(number) if number <= sys.maxunicode else ""


def _decode_octets(data: bytes) -> tuple[str, list[int]]:
    """``data`` decoded as UTF-8, invalid bytes as Latin-1, and the number of octets of each character."""
    if data.isascii():
        return data.decode("ascii"), [1] * len(data)
    decoded = []
    for char in data.decode("utf-8", "surrogateescape"):
        invalid = "\udc80" <= char <= "\udcff"
        decoded.append((chr(ord(char) - 0xDC00), 1) if invalid else (char, len(char.encode())))
    return "".join(char for char, _ in decoded), [length for _, length in decoded]
