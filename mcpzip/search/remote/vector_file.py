"""The vectors of a catalog on disk between runs.

The rules: nothing in the file can stop us, so what can't be used is no vector; it is written in one step;
and it holds the vectors of one embedder, in whose eyes another's are nothing.

    b"MZVEC\\x01" · identity, 16 bytes · <HI dimension, how many · sha256 of what follows
    · the keys, 32 bytes each · the vectors, a number a byte
"""

import hashlib
import struct
from collections.abc import Mapping

from mcpzip.model import limits
from mcpzip.system.state_files import read_state, write_state

MAGIC = b"MZVEC\x01"
MOST = 100_000
"""Vectors a file keeps."""

_HEAD = struct.Struct("<6s16sHI32s")
_KEY = 32


class VectorFile:
    """The vectors at ``path`` that the embedder of this ``identity`` made. An empty path keeps nothing."""

    def __init__(self, path: str, identity: str) -> None:
        self._path = path
        self._identity = hashlib.sha256(identity.encode()).digest()[:16]

    def load(self) -> dict[bytes, bytes]:
        """By key; empty when there is no such file, or it is another's, or damaged."""
        if not self._path:
            return {}
        try:
            data = read_state(self._path, limits.VECTORS)
            magic, identity, dimension, count, digest = _HEAD.unpack_from(data)
        except (OSError, struct.error):
            return {}
        body = memoryview(data)[_HEAD.size :]
        if (magic, identity) != (MAGIC, self._identity) or len(body) != count * (_KEY + dimension):
            return {}
        if hashlib.sha256(body).digest() != digest:
            return {}
        keys, vectors = body[: count * _KEY], body[count * _KEY :]
        return {
            bytes(keys[at * _KEY : (at + 1) * _KEY]): bytes(vectors[at * dimension : (at + 1) * dimension])
            for at in range(count)
        }

    def save(self, vectors: Mapping[bytes, bytes]) -> bool:
        """Keep these, the first `MOST` of them. False when the disk won't have them."""
        if not self._path:
            return False
        kept = dict(list(vectors.items())[:MOST])
        dimension = len(next(iter(kept.values()), b""))
        body = b"".join(kept) + b"".join(kept.values())
        head = _HEAD.pack(MAGIC, self._identity, dimension, len(kept), hashlib.sha256(body).digest())
        try:
            write_state(self._path, head + body, limits.VECTORS)
        except OSError:
            return False
        return True
