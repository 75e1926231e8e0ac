"""The results that are kept, and for how long.

The rules:

1. A result is kept byte for byte, for the client that was sent its beginning. Another client doesn't learn
   whether there is one. A client of a single request (modern HTTP) can't be told from others, so the random
   part of the handle, which nobody can guess, is what protects its results.
2. A large one is in an unnamed temporary file, which nobody else can open and which the system removes when
   this process ends, however it ends. Where there is no disk for it, it stays in memory.
3. What was used last is kept longest.
"""

import os
import tempfile
import threading
import time
from base64 import b32encode
from collections import OrderedDict
from collections.abc import Hashable
from typing import IO, NamedTuple

import msgspec

from mcpzip.model import limits


class StoredResult:
    """The bytes of one result: in memory, or in a file that is removed together with this object, so not
    while somebody reads it. Thread-safe. Making and reading one of more than `limits.KEPT_IN_MEMORY` bytes
    blocks.
    """

    def __init__(self, result: bytes) -> None:
        self.size = len(result)
        self._lock = threading.Lock()
        self._file = _file_of(result) if self.size > limits.KEPT_IN_MEMORY else None
        self._result = result if self._file is None else b""

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def read(self) -> bytes:
        """Raises OSError."""
        if self._file is None:
            return self._result
        with self._lock:
            self._file.seek(0)
            return self._file.read()


def _file_of(result: bytes) -> IO[bytes] | None:
    """A file that has no name, or that only its owner may read (0600) and that is removed when it is closed;
    None where there is no disk for it.
    """
    try:
        file = tempfile.TemporaryFile(prefix="mcpzip-")  # noqa: SIM115 - the result that is in it closes it
        try:
            file.write(result)
            file.flush()
        except OSError:
            file.close()
            raise
    except OSError:
        return None
    return file


class Kept(NamedTuple):
    """A kept result. tool: that it is of, under the name that clients see. stored: a `CallToolResult`.
    tokens: that a model would have read, about.
    """

    handle: str
    tool: str
    stored: StoredResult
    tokens: int


class _Entry(msgspec.Struct):
    """used: when it was used last, by the monotonic clock."""

    owner: Hashable
    kept: Kept
    used: float

    @property
    def size(self) -> int:
        return self.kept.stored.size


class KeptResults:
    """Those of all clients. Everything runs on one event loop."""

    def __init__(self, first_number: int = 1) -> None:
        """first_number: of the first handle."""
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """By handle; what was used last is last."""
        self._number = first_number - 1

    def __len__(self) -> int:
        return len(self._entries)

    def keep(
        self, owner: Hashable, tool: str, stored: StoredResult, tokens: int = 0, suffix: str = ""
    ) -> Kept | None:
        """Keeps ``stored`` for ``owner`` (None: a client of a single request that nobody knows); None if it
        is too large. suffix: the part of its handle that nobody can guess; "" for a random one.
        """
        if stored.size > limits.KEPT:
            return None
        now = time.monotonic()
        self.remove_old()
        self._number += 1
        handle = f"r{self._number}-{suffix or b32encode(os.urandom(10)).decode().lower()}"
        kept = Kept(handle, tool, stored, tokens)
        self._entries[handle] = _Entry(owner, kept, now)
        self._make_room(owner)
        return kept

    def get(self, owner: Hashable, handle: str) -> Kept | None:
        """The result that ``owner`` knows as ``handle``; None if there is none, or not any more."""
        self.remove_old()
        entry = self._entries.get(handle)
        if entry is None or entry.owner != owner:
            return None
        entry.used = time.monotonic()
        self._entries.move_to_end(handle)
        return entry.kept

    def remove(self, handle: str) -> None:
        """Forgets the result with this handle."""
        self._entries.pop(handle, None)

    def numbered(self, owner: Hashable, name: str) -> Kept | None:
        """The result of ``owner`` whose handle begins with ``name``, such as ``r3``; None if there is none,
        and for the owner None.
        """
        if owner is None:
            return None
        start = f"{name}-"
        handles = (each for each, entry in self._entries.items() if entry.owner == owner)
        handle = next((each for each in handles if each.startswith(start)), None)
        return None if handle is None else self.get(owner, handle)

    def remove_owner(self, owner: Hashable) -> None:
        """``owner`` is gone."""
        for handle in [handle for handle, entry in self._entries.items() if entry.owner == owner]:
            del self._entries[handle]

    def close(self) -> None:
        """Forgets all."""
        self._entries.clear()

    def remove_old(self) -> None:
        """Forgets what was not used for `limits.KEPT_SECONDS`."""
        now = time.monotonic()
        while self._entries:
            handle, oldest = next(iter(self._entries.items()))
            if now - oldest.used <= limits.KEPT_SECONDS:
                break
            del self._entries[handle]

    def _make_room(self, owner: Hashable) -> None:
        own = [(handle, entry) for handle, entry in self._entries.items() if entry.owner == owner]
        size = sum(entry.size for _, entry in own)
        while len(own) > limits.KEPT_NUMBER or size > limits.KEPT:
            handle, entry = own.pop(0)
            size -= entry.size
            del self._entries[handle]
        while sum(entry.size for entry in self._entries.values()) > limits.KEPT_OF_ALL:
            self._entries.popitem(last=False)
