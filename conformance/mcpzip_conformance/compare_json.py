"""Compares JSON texts, and shows their difference.

The rule: a text is written with one member a line, in a form without the differences that the `Likeness`
allows; equal lines mean equal texts. So the diff shows exactly the differences that count.

    VALUE    equal as JSON values: key order and the spelling of numbers are free (RFC 8259 §4, §6)
    TEXT     key order and the spelling of each number count as well; white space and escapes don't
"""

import hashlib
import json
from decimal import Decimal, InvalidOperation
from difflib import unified_diff
from enum import Enum

_LONG = 160
"""Longer strings are shown by their ends, length and digest."""


class Likeness(Enum):
    """Which differences between two answers are allowed."""

    VALUE = "value"
    TEXT = "text"


class _Number(str):
    """A number in the form in which it is compared."""


def lines(raw: bytes, likeness: Likeness) -> list[str]:
    """``raw``, one member a line. Text that isn't JSON is one line, quoted."""

    def number(spelt: str) -> _Number:
        return _Number(spelt if likeness is Likeness.TEXT else _value(spelt))

    try:
        value = json.loads(
            raw, parse_int=number, parse_float=number, parse_constant=number, object_pairs_hook=_Pairs
        )
    except (ValueError, RecursionError):
        return [_string(raw.decode("utf-8", "backslashreplace"))]
    return _lines(value, likeness, "")


def diff(straight: list[str], through: list[str], name: str) -> tuple[str, ...]:
    """A unified diff of two such lists; empty if they are equal."""
    return tuple(unified_diff(straight, through, "straight", f"through {name}", lineterm=""))


class _Pairs(list[tuple[str, object]]):
    """The members of an object in their order."""


def _lines(value: object, likeness: Likeness, indent: str) -> list[str]:
    inner = indent + "  "
    if isinstance(value, _Pairs):
        members = sorted(value, key=lambda pair: pair[0]) if likeness is Likeness.VALUE else value
        parts = [_after(f"{inner}{_string(key)}: ", _lines(item, likeness, inner)) for key, item in members]
        return _wrapped("{", parts, "}", indent)
    if isinstance(value, list):
        return _wrapped("[", [_after(inner, _lines(item, likeness, inner)) for item in value], "]", indent)
    if isinstance(value, _Number):
        return [str(value)]
    return [_string(value) if isinstance(value, str) else json.dumps(value)]


def _after(head: str, body: list[str]) -> list[str]:
    return [head + body[0], *body[1:]]


def _wrapped(opening: str, parts: list[list[str]], closing: str, indent: str) -> list[str]:
    if not parts:
        return [opening + closing]
    return [opening, *(line for part in parts for line in part), indent + closing]


def _string(text: str) -> str:
    """As JSON in ASCII, so that different spellings of a character are visible."""
    if len(text) <= _LONG:
        return json.dumps(text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{json.dumps(text[:60])} … {json.dumps(text[-20:])} ({len(text)} characters, sha256 {digest})"


def _value(spelt: str) -> str:
    """The normal form of a number: its digits without needless zeros, and its exponent."""
    try:
        number = Decimal(spelt)
    except InvalidOperation:  # NaN and Infinity, which some write, stay as they are
        return spelt
    if not number.is_finite():
        return spelt
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    bare = text.rstrip("0")
    if not bare:
        return "0"
    exponent += len(text) - len(bare)
    plain = bare + "0" * exponent if 0 <= exponent <= 30 else f"{bare}e{exponent}"
    return ("-" if sign else "") + plain
