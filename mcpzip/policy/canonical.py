"""Hashes of calls (pure): of what is called, and with which arguments.

The rule: two texts of arguments that mean the same have the same hash, and no others. Members are sorted (RFC
8785, 3.2.3, by code points), spaces and escapes don't count; numbers keep their spelling, because ``1`` and
``1.0`` are not the same to every server, and a repeated key stays repeated.
"""

import hashlib
import json

from mcpzip.model.entry import Entry

_DOMAIN = b"mcpzip call 1"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Members(list[tuple[str, object]]):
    """The members of an object."""


def canonical(text: bytes) -> bytes:
    """The canonical form of the JSON ``text``; ``text`` itself if it is nested too deeply to be read, or is
    no JSON.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
        return _written(value).encode()
    except (ValueError, RecursionError):
        return text


def arguments_hash(arguments: bytes) -> str:
    """SHA-256 of the canonical ``arguments`` (JSON text), hexadecimal."""
    return hashlib.sha256(canonical(arguments)).hexdigest()


def definition_hash(entry: Entry) -> str:
    """SHA-256 of the definition of ``entry`` as its server sent it, hexadecimal."""
    return hashlib.sha256(entry.raw).hexdigest()


def call_hash(entry: Entry, arguments: bytes) -> bytes:
    """SHA-256 of a call: of its server, its tool, the tool's definition, and the canonical arguments."""
    found = hashlib.sha256(_DOMAIN)
    for part in (entry.server.encode(), _utf8(entry.tool), entry.raw, canonical(arguments)):
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.digest()


def _written(value: object) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, _Members):
        members = sorted(value, key=lambda pair: pair[0])  # stable: repeated keys keep their order
        return "{" + ",".join(f"{json.dumps(key)}:{_written(each)}" for key, each in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return json.dumps(value)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
