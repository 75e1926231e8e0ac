"""The digests of what a server offers, made of its canonical form (pure)."""

import hashlib
from collections.abc import Iterable

from mcpzip.model.surface import Item, Kind
from mcpzip.wire.canonical_json import canonical

_ITEM, _SERVER = b"mcpzip pin 1 item\0", b"mcpzip pin 1 server\0"
"""What begins the hashed bytes, so that no digest of one sort is one of the other."""


def item_digest(item: Item) -> bytes:
    """The SHA-256 of ``item``: of its kind, its name and its body's canonical form."""
    return digest_of(item.kind, item.name, canonical(item.body))


def digest_of(kind: Kind, name: str, form: bytes) -> bytes:
    """The digest of the item called ``name`` whose body has the canonical form ``form``."""
    named = name.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%b%b\0%d\0%b%b" % (_ITEM, kind.encode(), len(named), named, form)).digest()


def raw_digest(body: bytes) -> bytes:
    """The SHA-256 of the bytes that were received. Equal bytes need no canonical form."""
    return hashlib.sha256(body).digest()


def server_digest(server: str, items: Iterable[bytes]) -> bytes:
    """The SHA-256 of all that ``server`` offers, from the digests of its items, in any order."""
    named = server.encode()
    return hashlib.sha256(b"%b%d\0%b%b" % (_SERVER, len(named), named, b"".join(sorted(items)))).digest()
