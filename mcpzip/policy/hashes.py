"""Hashes of calls (pure): of what is called, and with which arguments. Two texts of arguments that mean the
same have the same hash, and no others (`wire.canonical_json`).
"""

import hashlib

from mcpzip.model.entry import Entry
from mcpzip.wire.canonical_json import canonical

_DOMAIN = b"mcpzip call 1"


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


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
