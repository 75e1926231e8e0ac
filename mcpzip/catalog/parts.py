"""Digests of the lists of one server.

The rule: the digest of a list is computed once and shared by all catalogs that contain the list. With many
servers the catalog changes often, but each time in one server only.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

from mcpzip.model.entry import Entry

T = TypeVar("T")


class Parts(tuple[T, ...]):
    """A list of one server, as a tuple that caches its digest."""

    digest: bytes | None = None


def digest_of_tools(entries: tuple[Entry, ...]) -> bytes:
    """The digest (8 bytes) of the names and definitions of ``entries``, in their order."""
    return _cached(entries, lambda: ((entry.tool, entry.read()) for entry in entries))


def digest_of(raws: tuple[bytes, ...]) -> bytes:
    """The digest (8 bytes) of ``raws``, in their order."""
    return _cached(raws, lambda: (("", raw) for raw in raws))


def combined_digest(named: Iterable[tuple[str, bytes]]) -> str:
    """One digest, as hex digits, of the digests of several servers with the servers' names."""
    return _hash(named).hex()


def _cached(parts: tuple[object, ...], items: Callable[[], Iterable[tuple[str, bytes]]]) -> bytes:
    if not isinstance(parts, Parts):
        return _hash(items())
    if parts.digest is None:
        parts.digest = _hash(items())
    return parts.digest


def _hash(items: Iterable[tuple[str, bytes]]) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for name, raw in items:
        head = name.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%d:" % (len(head), len(raw)))
        digest.update(head)
        digest.update(raw)
    return digest.digest()
