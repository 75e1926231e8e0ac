"""What each kind of store does for `mcpzip.store.store.Store`, which checks the arguments before.

The rules: each operation is one step for everybody else. Its time is the store's clock, never ours. It may
be cancelled at any moment, and may raise anything that `fault` knows.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from mcpzip.model.errors import StoreFault
from mcpzip.store.buckets import Bucket, Shortage
from mcpzip.store.records import Entry, Key, Value


class Backend(Protocol):
    """One kind of store. place: its address without a password, for sentences."""

    place: str

    async def get(self, key: Key) -> Value | None:
        """See `Store.get`."""

    async def versions(self, table: str, most: int) -> Mapping[str, int]:
        """See `Store.versions`; not more than ``most``."""

    async def compare_and_set(self, key: Key, data: bytes, version: int, most: int) -> int | None:
        """See `Store.compare_and_set`. Raises `StoreFullError` when the table has ``most`` values."""

    async def delete(self, key: Key, version: int) -> bool:
        """See `Store.delete`."""

    async def acquire(self, name: str, owner: str, milliseconds: int) -> int | None:
        """The fencing number; None while somebody holds it."""

    async def renew(self, name: str, owner: str, number: int, milliseconds: int) -> bool:
        """See `Store.renew`."""

    async def release(self, name: str, owner: str, number: int) -> bool:
        """See `Store.release`."""

    async def take(self, requests: Sequence[Sequence[Bucket]]) -> list[Shortage | None]:
        """See `Store.take`."""

    async def append(self, log: str, data: bytes, keep: int) -> int:
        """See `Store.append`."""

    async def entries(self, log: str, after: int, most: int) -> list[Entry]:
        """See `Store.entries`."""

    async def publish(self, channel: str, message: bytes) -> None:
        """See `Store.publish`."""

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Store.subscribe`."""

    def fault(self, error: Exception) -> tuple[StoreFault, str] | None:
        """What ``error`` says about the store, and in which words; None for an error of our own."""

    async def close(self) -> None:
        """Ends all connections."""
