"""Compares what a client is given of a large result with the result.

The rule: what a proxy cuts out is judged by what is left: it is a part, or it says in words that something is
missing.
"""

import re

import msgspec

_WORDS = re.compile(r"[^\W\d_]|…|\.\.\.")


def differs(name: str, expected: str, got: str | None) -> str | None:
    """What is different, in a line; None if nothing is. name: of the text."""
    if got == expected:
        return None
    if got is None:
        return f"{name}: none, instead of {len(expected):,} characters"
    where = _alike(expected, got)
    wanted, found = (ascii(text[where : where + 20]) for text in (expected, got))
    lengths = f"{len(got):,} instead of {len(expected):,} characters" if len(got) != len(expected) else ""
    return f"{name}: {lengths}{', ' * bool(lengths)}from character {where:,} on {found} instead of {wanted}"


def silently_cut(text: str, original: str) -> bool:
    """Whether ``text`` has only a part of ``original``, and no word that says so."""
    if original in text:
        return False
    value, whole = _value(text), _value(original)
    if value is not None and whole is not None and is_part(value, whole):
        return value != whole
    start = _alike(text, original)
    end = _alike(text[start:][::-1], original[::-1])
    return not _WORDS.search(text[start : len(text) - end])


def is_part(value: object, whole: object) -> bool:
    """Whether a JSON value is another one of which something may be missing: elements, members, the ends of
    texts."""
    if isinstance(value, list) and isinstance(whole, list):
        rest = iter(whole)
        return all(any(is_part(one, other) for other in rest) for one in value)
    if isinstance(value, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(item, whole[key]) for key, item in value.items())
    if isinstance(value, str) and isinstance(whole, str):
        return whole.startswith(value)
    return type(value) is type(whole) and value == whole


def _alike(one: str, other: str) -> int:
    """How many characters they have in common at the beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one.startswith(other[:middle]) else (low, middle - 1)
    return low


def _value(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
