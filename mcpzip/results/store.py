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
import time
from base64 import b32encode
from collections import OrderedDict
from collections.abc import Hashable
from typing import IO, NamedTuple

from mcpzip.model import limits


class Kept(NamedTuple):
    """A kept result. tool: that it is of, under the name that clients see. result: a `CallToolResult`.
    tokens: that a model would have read, about.
    """

    handle: str
    tool: str
    result: bytes
    tokens: int


class _Entry:
    def __init__(self, owner: Hashable, tool: str, result: bytes, tokens: int, used: float) -> None:
        self.owner, self.tool, self.size, self.tokens, self.used = owner, tool, len(result), tokens, used
        self._file: IO[bytes] | None = None
        self._result = result
        if self.size > limits.KEPT_IN_MEMORY:
            self._move_to_disk()

    def _move_to_disk(self) -> None:
        try:
            # A file that has no name, or that only its owner may read (0600) and that is removed when closed.
            file = tempfile.TemporaryFile(prefix="mcpzip-")  # noqa: SIM115 - it is closed with its entry
            try:
                file.write(self._result)
                file.flush()
            except OSError:
                file.close()
                raise
        except OSError:
            return
        self._file, self._result = file, b""

    @property
    def result(self) -> bytes:
        """Raises OSError."""
        if self._file is None:
            return self._result
        self._file.seek(0)
        return self._file.read()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class KeptResults:
    """All of them. Not thread-safe."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """By handle; what was used last is last."""
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, owner: Hashable, tool: str, result: bytes, tokens: int = 0) -> str | None:
        """Keeps ``result`` for ``owner`` (None: a client of a single request). Returns its handle; None if it
        is too large for that.
        """
        if len(result) > limits.KEPT:
            return None
        now = time.monotonic()
        self._remove_old(now)
        self._number += 1
        handle = f"r{self._number}-{b32encode(os.urandom(10)).decode().lower()}"
        self._entries[handle] = _Entry(owner, tool, result, tokens, now)
        self._make_room(owner)
        return handle

    def get(self, owner: Hashable, handle: str) -> Kept | None:
        """The result that ``owner`` knows as ``handle``; None if there is none, or not any more."""
        now = time.monotonic()
        self._remove_old(now)
        entry = self._entries.get(handle)
        if entry is None or entry.owner is not owner:
            return None
        try:
            result = entry.result
        except OSError:
            self._remove(handle)
            return None
        entry.used = now
        self._entries.move_to_end(handle)
        return Kept(handle, entry.tool, result, entry.tokens)

    def remove_owner(self, owner: Hashable) -> None:
        """``owner`` is gone."""
        for handle in [handle for handle, entry in self._entries.items() if entry.owner is owner]:
            self._remove(handle)

    def close(self) -> None:
        """Forgets all."""
        for handle in list(self._entries):
            self._remove(handle)

    def _remove_old(self, now: float) -> None:
        while self._entries:
            handle, oldest = next(iter(self._entries.items()))
            if now - oldest.used <= limits.KEPT_SECONDS:
                break
            self._remove(handle)

    def _make_room(self, owner: Hashable) -> None:
        own = [(handle, entry) for handle, entry in self._entries.items() if entry.owner is owner]
        size = sum(entry.size for _, entry in own)
        while len(own) > limits.KEPT_NUMBER or size > limits.KEPT:
            handle, entry = own.pop(0)
            size -= entry.size
            self._remove(handle)
        while sum(entry.size for entry in self._entries.values()) > limits.KEPT_OF_ALL:
            self._remove(next(iter(self._entries)))

    def _remove(self, handle: str) -> None:
        self._entries.pop(handle).close()
