"""The shape of a JSON value, in a line (pure).

812 objects {number:int title:str labels:[str] user:{login:str id:int} body?:str}
"""

import re
from collections.abc import Iterable
from itertools import islice

from mcpzip.results.slices import (
    COUNTED_ONE_BY_ONE,
    UnreadableError,
    count_elements,
    elements,
    kind_of,
    members,
)

_DEPTH = 4
_KEYS = 24
_SAMPLE = 20
"""Elements of an array whose shape is looked at."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,60}")
_TYPES = {"string": "str", "boolean": "bool", "null": "null", "object": "{…}", "array": "[…]"}


def shape(value: bytes) -> str:
    """The shape of ``value`` (JSON text)."""
    if kind_of(value) != "array":
        return _shape(value, _DEPTH)
    number = count(value)
    shapes = _joined((_shape(each, _DEPTH) for each in islice(_elements(value), _SAMPLE)), _DEPTH)
    if shapes.startswith("{"):
        return f"{number} object{'' if number == '1' else 's'} {shapes}"
    return f"array of {number} {shapes}" if shapes else "an empty array"


def count(value: bytes) -> str:
    """How many elements an array has, for people."""
    try:
        number = count_elements(value)
    except UnreadableError:
        return "many"
    return f"more than {COUNTED_ONE_BY_ONE:,}" if number is None else f"{number:,}"


def _shape(value: bytes, depth: int) -> str:
    kind = kind_of(value)
    if kind == "number":
        return "number" if set(b".eE") & set(value) else "int"
    if kind not in ("object", "array") or depth <= 1:
        return _TYPES[kind]
    if kind == "array":
        return f"[{_joined((_shape(each, depth - 1) for each in islice(_elements(value), _SAMPLE)), depth)}]"
    shown: list[str] = []
    try:
        for key, each in islice(members(value), _KEYS + 1):
            shown.append(f"{_key(key)}:{_shape(each, depth - 1)}")
    except UnreadableError:
        pass
    return f"{{{' '.join(shown[:_KEYS])}{' …' if len(shown) > _KEYS else ''}}}"


def _joined(shapes: Iterable[str], depth: int) -> str:
    """One shape for all elements: the different ones, or the first object's if all are objects."""
    found = list(dict.fromkeys(shapes))
    if len(found) > 1 and all(each.startswith("{") for each in found):
        return max(found, key=len)
    return "|".join(found[:4]) + ("|…" if len(found) > 4 else "")


def _elements(value: bytes) -> Iterable[bytes]:
    try:
        yield from elements(value)
    except UnreadableError:
        return


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else repr(key[:60])
