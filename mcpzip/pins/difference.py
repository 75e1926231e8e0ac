"""The difference between two definitions of an item, field by field, for a person (pure).

The rules: every field counts, also one that no specification knows. Numbers are shown as they are written,
and a key that occurs twice is shown twice. Characters that nobody sees are shown as numbers, ``<U+200B>``.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from mcpzip.wire.canonical_json import Number, decoded

_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_AMBIGUOUS = re.compile(r"(-?[0-9]|true$|false$|null$|NaN$|-?Infinity$|\[\]$|\{\}$|\"|\s*$)")
"""A string that could be taken for another value."""
_NUMBER, _ESCAPED_NUMBER = "<U+", "<U+003C>U+"
"""How the number of a character begins, and what is shown for a text with that beginning."""
_SEEN = ("L", "M", "N", "P", "S")
"""The first letters of the categories of characters that people see."""
FIELDS = 10_000
"""Fields of one definition that are compared."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of which the two have other values. path: such as ``inputSchema.properties.path.type``. before,
    after: None where there is no such field. All are visible texts; a string that could be a number, an empty
    list and the like has quotation marks.
    """

    path: str
    before: str | None
    after: str | None


def differences(old: bytes | None, new: bytes | None) -> list[Difference]:
    """The fields in which two JSON texts differ, in the order of ``new``; then those of ``old`` alone."""
    before, after = _fields(old), _fields(new)
    found = [
        Difference(path, before.get(path), now) for path, now in after.items() if before.get(path) != now
    ]
    return found + [Difference(path, was, None) for path, was in before.items() if path not in after]


def visible(text: str) -> str:
    """``text`` with every character that nobody sees as its number, but for spaces and line breaks."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def distinct(text: str) -> str:
    """`visible`, so that different texts stay different: a ``<`` that looks as if it began a number is shown
    as a number itself.
    """
    return visible(text.replace(_NUMBER, _ESCAPED_NUMBER))


def _shown(character: str) -> str:
    if character in " \n" or (" " < character <= "~"):
        return character
    if _HIDDEN.match(character) or unicodedata.category(character)[0] not in _SEEN:
        return f"<U+{ord(character):04X}>"
    return character


def _fields(text: bytes | None) -> dict[str, str]:
    if text is None:
        return {}
    found: dict[str, str] = {}
    for path, value in _walk(decoded(text), ""):
        repeated, number = path, 1
        while repeated in found:
            number += 1
            repeated = f"{path} ({number})"
        found[repeated] = value
        if len(found) == FIELDS:
            found["…"] = "more fields, which are not compared here"
            break
    return found


def _walk(value: object, path: str) -> Iterator[tuple[str, str]]:
    waiting = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list) and value:
            members = [
                (_joined(path, each[0]), each[1]) if isinstance(each, tuple) else (f"{path}[{at}]", each)
                for at, each in enumerate(value)
            ]
            waiting += reversed(members)
        else:
            yield path, _text(value)


def _joined(path: str, key: str) -> str:
    shown = distinct(key).replace("\n", "<U+000A>")
    if not re.fullmatch(r"[A-Za-z0-9_$-]+", shown):
        shown = json.dumps(shown, ensure_ascii=False)
    return f"{path}.{shown}" if path else shown


def _text(value: object) -> str:
    match value:
        case list():
            return "{}" if type(value) is not list else "[]"
        case Number():
            return value
        case str():
            return distinct(json.dumps(value, ensure_ascii=False) if _AMBIGUOUS.match(value) else value)
        case _:
            return json.dumps(value)
