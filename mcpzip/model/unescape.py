"""A text as it reads once its escapes are undone, and where each character of that stands (pure).

Whatever wrote the text – JSON of any language, a repr, a URL, HTML, one inside another – need not be known:
every escape that one of them has is undone, as often as there are some left. What looks like an escape and is
none stays as it is. The time is linear in the text.
"""

import re
import sys
from collections.abc import Iterator

DEEPEST = 5
"""How often escapes are undone: JSON in JSON in a URL takes three."""

_PAIR = r"u[Dd][89ABab][0-9A-Fa-f]{2}%su[Dd][C-Fc-f][0-9A-Fa-f]{2}"
_OF_A_SIGN = {
    "\\": r"\\(?:"
    + _PAIR % r"\\"
    + r"|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[abfnrtv\"'/\\`])",
    "%": r"%(?:" + _PAIR % "%" + r"|u[0-9A-Fa-f]{4}|[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*)",
    "&": r"&(?:\#[Xx][0-9A-Fa-f]{1,6}|\#[0-9]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});",
}
_ALONE = {sign: re.compile(escape) for sign, escape in _OF_A_SIGN.items()}
_ANY = re.compile("|".join(_OF_A_SIGN.values()))
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OF_A_LETTER, _OF_AN_OCTET, _OF_A_PAIR = 2, 3, 12


def unescaped(text: str) -> Iterator[tuple[str, list[int]]]:
    """``text`` with its escapes undone once, twice and so on, while there are some, `DEEPEST` times at most:
    all of them, and those of one writer alone, to whom the other signs mean nothing.

    With each comes where every character of it begins in ``text``, and at last where it ends.
    """
    signs = [sign for sign in _ALONE if sign in text]
    if signs:
        yield from _readings(text, _ANY)
    for sign in signs if len(signs) > 1 else ():
        yield from _readings(text, _ALONE[sign])


def _readings(text: str, escape: re.Pattern[str]) -> Iterator[tuple[str, list[int]]]:
    begins = list(range(len(text) + 1))
    for _ in range(DEEPEST):
        undone, begins = _undone(text, begins, escape)
        if undone == text:
            return
        text = undone
        yield text, begins


def _undone(text: str, begins: list[int], escape: re.Pattern[str]) -> tuple[str, list[int]]:
    pieces: list[str] = []
    places: list[int] = []
    end = 0
    for found in escape.finditer(text):
        start, stop = found.span()
        pieces.append(text[end:start])
        places += begins[end:start]
        end = stop
        written = found[0]
        if written[0] == "%" and written[1] != "u":
            signs, lengths = _of_octets(bytes.fromhex(written.replace("%", "")))
            pieces.append(signs)
            for length in lengths:
                places.append(begins[start])
                start += _OF_AN_OCTET * length
        elif (meant := _meant(written)) and meant != written:
            pieces.append(meant)
            places += [begins[start]] + [begins[stop - 1]] * (len(meant) - 1)
        else:
            pieces.append(written)
            places += begins[start:stop]
    pieces.append(text[end:])
    places += begins[end:]
    return "".join(pieces), places


def _meant(escape: str) -> str:
    """What one escape stands for; "" or the escape itself if it stands for nothing."""
    if escape[0] == "&":
        from html import unescape  # seldom wanted

        return unescape(escape)
    if len(escape) == _OF_A_LETTER:
        return _LETTERS.get(escape[1], escape[1])
    if len(escape) == _OF_A_PAIR:
        return bytes.fromhex(escape[2:6] + escape[8:]).decode("utf-16-be")
    number = int(escape[2:].strip("{}"), 16)
    return chr(number) if number <= sys.maxunicode else ""


def _of_octets(data: bytes) -> tuple[str, list[int]]:
    """``data`` as UTF-8, with how many octets each character takes; what is none, as Latin-1."""
    if data.isascii():
        return data.decode("ascii"), [1] * len(data)
    signs = []
    for sign in data.decode("utf-8", "surrogateescape"):
        lone = "\udc80" <= sign <= "\udcff"
        signs.append((chr(ord(sign) - 0xDC00), 1) if lone else (sign, len(sign.encode())))
    return "".join(sign for sign, _ in signs), [length for _, length in signs]
