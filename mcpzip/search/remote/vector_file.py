"""The file of the embeddings that a remote embedder (Gemini, an embedding server) made of the tools.

The rule: an unusable file is ignored, never an error; it is written atomically; and it holds the vectors of
one embedder only.

    b"MZVEC\\x01" · identity, 16 bytes · <HI dimension, number of vectors · sha256 of what follows
    · the keys, 32 bytes each · the vectors, a byte per dimension
"""

import hashlib
import struct
from collections.abc import Mapping

from mcpzip.model import limits
from mcpzip.system.state_files import read_state, write_state

MAGIC = b"MZVEC\x01"
MAX_VECTORS = 100_000

_HEADER = struct.Struct("<6s16sHI32s")
_KEY = 32  # bytes


class VectorFile:
    """The vectors at ``path`` of the embedder with this ``identity``. An empty path stores nothing."""

    def __init__(self, path: str, identity: str) -> None:
        self._path = path
        self._identity = hashlib.sha256(identity.encode()).digest()[:16]

    def load(self) -> dict[bytes, bytes]:
        """The vectors by key; empty where the file is missing, damaged, or another embedder's."""
        if not self._path:
            return {}
        try:
            data = read_state(self._path, limits.VECTORS)
            magic, identity, dimension, count, digest = _HEADER.unpack_from(data)
        except (OSError, struct.error):
            return {}
        body = memoryview(data)[_HEADER.size :]
        if (magic, identity) != (MAGIC, self._identity) or len(body) != count * (_KEY + dimension):
            return {}
        if hashlib.sha256(body).digest() != digest:
            return {}
        keys, vectors = body[: count * _KEY], body[count * _KEY :]
        return {
            bytes(keys[i * _KEY : (i + 1) * _KEY]): bytes(vectors[i * dimension : (i + 1) * dimension])
            for i in range(count)
        }

    def save(self, vectors: Mapping[bytes, bytes]) -> bool:
        """Write the first `MAX_VECTORS` of ``vectors``. Returns whether they could be written."""
        if not self._path:
            return False
        saved = dict(list(vectors.items())[:MAX_VECTORS])
        dimension = len(next(iter(saved.values()), b""))
        body = b"".join(saved) + b"".join(saved.values())
        header = _HEADER.pack(MAGIC, self._identity, dimension, len(saved), hashlib.sha256(body).digest())
        try:
            write_state(self._path, header + body, limits.VECTORS)
        except OSError:
            return False
        return True
