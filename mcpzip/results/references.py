"""Kept results as arguments: ``{"$kept": "r3-…", "path": "/body"}`` in the arguments of a call stands for the
value there (pure).

The rule: an object with only these keys, whose ``$kept`` has the form of a handle, is a reference; anything
else is the user's data and stays the bytes that it was. To send such an object itself, one ``$`` more is
written: ``{"$$kept": …}``.
"""

import re
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.results.document import Document, at_path, size_in_tokens
from mcpzip.results.paths import PathError
from mcpzip.results.slices import UnreadableError, kind_of, members
from mcpzip.wire import join_object, unquote
from mcpzip.wire.json_iter import element_offsets, members_of
from mcpzip.wire.json_object import may_hold_surrogates, without_surrogates

KEPT, LITERAL, PATH = "$kept", "$$kept", "path"
MOST = 100
"""References in the arguments of one call."""
_DEPTH = 100
_HANDLE = re.compile(r"r[0-9]{1,9}-[a-z2-7]{16,160}")

Find = Callable[[str], tuple[str, Document]]
"""The tool and the content of the result with this handle. Raises KeptNoMoreError."""


class Filled(NamedTuple):
    """arguments: with the values of all references. about: a sentence for each reference: what it is."""

    arguments: bytes
    about: tuple[str, ...]


def has_references(arguments: bytes) -> bool:
    """Whether there may be one in ``arguments``."""
    return b'kept"' in arguments and b'"$' in arguments


def fill(arguments: bytes, find: Find) -> Filled:
    """``arguments`` (a JSON object) with the value of each reference. Raises InvalidArgumentsError, and what
    ``find`` raises.
    """
    about: list[str] = []
    try:
        filled = _with_filled_parts(arguments, find, about, _DEPTH)
    except (msgspec.DecodeError, UnreadableError, ValueError, RecursionError) as error:
        raise InvalidArgumentsError(f"The arguments can't be read: {error}.") from error
    return Filled(filled, tuple(about))


def _filled(value: bytes, find: Find, about: list[str], depth: int) -> bytes:
    kind = kind_of(value)
    if kind not in ("object", "array") or not has_references(value) or depth == 0:
        return value
    if kind == "object" and (found := _reference(value, find, about)) is not None:
        return found
    return _with_filled_parts(value, find, about, depth)


def _with_filled_parts(value: bytes, find: Find, about: list[str], depth: int) -> bytes:
    """The object or the array ``value`` with the values of all references in it."""
    readable = without_surrogates(value) if may_hold_surrogates(value) else value
    if kind_of(value) == "object":
        places = [(member.value, member.end) for member in members_of(readable, limits.MEMBERS)]
    else:
        places = list(element_offsets(readable))
    pieces: list[bytes] = []
    done = 0
    for start, end in places:
        pieces += value[done:start], _filled(value[start:end], find, about, depth - 1)
        done = end
    filled = b"".join([*pieces, value[done:]])
    if len(filled) > limits.MESSAGE:
        raise InvalidArgumentsError("The arguments with these results are too long. Use 'path'.")
    return filled


def _reference(value: bytes, find: Find, about: list[str]) -> bytes | None:
    """The value that the object ``value`` stands for; None if it is no reference."""
    fields = dict(islice(members(value), 3))
    key = KEPT if KEPT in fields else LITERAL
    if key not in fields or not fields.keys() <= {key, PATH} or kind_of(fields[key]) != "string":
        return None
    handle = unquote(fields[key])
    if _HANDLE.fullmatch(handle) is None:
        return None
    if key == LITERAL:
        return join_object({KEPT if name == LITERAL else name: each for name, each in fields.items()})
    if len(about) >= MOST:
        raise InvalidArgumentsError(f"The arguments have more than {MOST} kept results.")
    path = unquote(fields[PATH]) if kind_of(fields.get(PATH, b'""')) == "string" and PATH in fields else ""
    tool, document = find(handle)
    found = _value(document, path)
    place = f" at {path}" if path else ""
    tokens = size_in_tokens(found.decode("utf-8", "replace"))
    about.append(f"{handle}{place} is about {tokens:,} tokens of a result of {tool}.")
    return found


def _value(document: Document, path: str) -> bytes:
    try:
        return at_path(document, path)[0].value
    except PathError as error:
        raise InvalidArgumentsError(f"'{KEPT}': {error}") from error
