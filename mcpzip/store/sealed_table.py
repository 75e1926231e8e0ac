"""Values of one table of the store that are sealed, so that whoever can write to the store makes none.

The rules: a value is bound to its namespace, table and name, so that it is not opened anywhere else. It has a
counter, which every write makes higher, for the version that the store gives it says nothing to whom the
store is not trusted: who remembers the last counter (`SeenCounters`) recognizes an earlier value that was put
back. A counter is at least the time of its writing, so that a value that replaces a lost one has a higher
counter than that had, whoever writes it.
"""

import hashlib
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from mcpzip.model.errors import StoreError
from mcpzip.store.records import Key
from mcpzip.store.thread import StoreThread
from mcpzip.system.formats import UnusableError
from mcpzip.system.sealing import LARGEST, KeyRing, SealError, SealingMissingError, bound_to

_COUNTER = struct.Struct(">Q")
LARGEST_VALUE = LARGEST - _COUNTER.size
"""Bytes that one value can have."""


class Sealed(NamedTuple):
    """One value. version: the store's. counter: see above. mark: the SHA-256 of what lies in the store,
    hexadecimal. is_current: whether it is sealed with the first key of the ring.
    """

    data: bytes
    version: int
    counter: int
    mark: str
    is_current: bool = True


class SealedTable:
    """The values of ``table``. Everything but `place` is for the loop of ``thread``."""

    def __init__(
        self, thread: StoreThread, make_ring: Callable[[], KeyRing], namespace: str, table: str
    ) -> None:
        """make_ring: may raise SealingMissingError; called when a value is read or written first."""
        self._thread, self._make_ring, self._namespace, self._table = thread, make_ring, namespace, table
        self._ring: KeyRing | None = None

    async def versions(self) -> dict[str, int]:
        """The versions of all values by name. Raises StoreError."""
        return dict(await self._thread.store.versions(self._table))

    async def version(self, name: str) -> int:
        """The version of a value, whatever it is; 0 for none. Raises StoreError."""
        value = await self._thread.store.get(Key(self._table, name))
        return 0 if value is None else value.version

    async def get(self, name: str) -> Sealed | None:
        """The value called ``name``; None for none. Raises StoreError, and UnusableError for one that can't
        be opened.
        """
        value = await self._thread.store.get(Key(self._table, name))
        if value is None:
            return None
        ring = self.ring()
        try:
            token = value.data.decode("ascii")
            plain = ring.open(self._table, token, self._bound(name))
            (counter,) = _COUNTER.unpack_from(plain)
        except SealError as error:
            raise UnusableError(f'can\'t be opened with "store.keys", because it {error}') from None
        except (UnicodeDecodeError, struct.error):
            raise UnusableError("can't be opened, because it is none of mcpzip") from None
        data, mark = plain[_COUNTER.size :], _mark(value.data)
        return Sealed(data, value.version, counter, mark, ring.is_current(token))

    async def set(self, name: str, data: bytes, version: int, least: int = 0) -> Sealed | None:
        """Stores ``data`` if the value still has ``version`` (0: if there is none); else None. least: its
        counter is higher. Raises StoreError, and ValueError for more than `LARGEST_VALUE` bytes.
        """
        counter = max(least + 1, time.time_ns() // 1_000)
        plain = _COUNTER.pack(counter) + data
        token = self.ring().seal(self._table, plain, self._bound(name)).encode("ascii")
        written = await self._thread.store.compare_and_set(Key(self._table, name), token, version)
        return None if written is None else Sealed(data, written, counter, _mark(token))

    async def delete(self, name: str, version: int) -> bool:
        """Deletes the value if it still has ``version``; whether it did. Raises StoreError."""
        return await self._thread.store.delete(Key(self._table, name), version)

    def ring(self) -> KeyRing:
        """The keys. Raises StoreError when they can't be used."""
        if self._ring is None:
            try:
                self._ring = self._make_ring()
            except SealingMissingError:
                remedy = 'Install it with: pip install "mcpzip[redis]", or "mcpzip[postgres]".'
                place = self._thread.store.place
                raise StoreError(place, "refused", "it needs the package cryptography", remedy) from None
        return self._ring

    def _bound(self, name: str) -> bytes:
        return bound_to(self._namespace, self._table, name)


def _mark(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
