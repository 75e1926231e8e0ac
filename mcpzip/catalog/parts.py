"""What one server offers of a kind, and a digest of it.

The rule: a digest is made once, whatever catalogs its server is part of. With many servers the catalog
changes often, and each time in one of them only.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

from mcpzip.model.entry import Entry

T = TypeVar("T")


class Parts(tuple[T, ...]):
    """A tuple that remembers its digest."""

    digest: bytes | None = None


def digest_of_tools(entries: tuple[Entry, ...]) -> bytes:
    """Of the names and definitions of ``entries``, and of nothing else."""
    return _kept(entries, lambda: ((entry.tool, entry.raw) for entry in entries))


def digest_of(raws: tuple[bytes, ...]) -> bytes:
    """Of these texts, in their order."""
    return _kept(raws, lambda: (("", raw) for raw in raws))


def together(parts: Iterable[tuple[str, bytes]]) -> str:
    """One digest of those of several servers, each under its name."""
    return _hash(parts).hex()


def _kept(parts: tuple[object, ...], said: Callable[[], Iterable[tuple[str, bytes]]]) -> bytes:
    if not isinstance(parts, Parts):
        return _hash(said())
    if parts.digest is None:
        parts.digest = _hash(said())
    return parts.digest


def _hash(parts: Iterable[tuple[str, bytes]]) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for name, raw in parts:
        head = name.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%d:" % (len(head), len(raw)))
        digest.update(head)
        digest.update(raw)
    return digest.digest()
