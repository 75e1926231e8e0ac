"""A store in the memory of this process: for tests, and to say what the others have to do."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from mcpzip.model import limits
from mcpzip.model.errors import StoreFault
from mcpzip.store.buckets import Bucket, Shortage, take
from mcpzip.store.records import Entry, Key, StoreFullError, Value


class Memory:
    """What several `MemoryBackend`s share. now: the store's clock, in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.values: dict[Key, Value] = {}
        self.leases: dict[str, tuple[str, int, float]] = {}
        self.full_at: dict[str, int] = {}
        self.logs: dict[str, list[Entry]] = defaultdict(list)
        self.channels: dict[str, set[asyncio.Queue[bytes]]] = defaultdict(set)
        self._number = 0

    def next(self) -> int:
        """A version or number that was never used."""
        self._number += 1
        return self._number


class MemoryBackend:
    """Values in ``memory``."""

    place = "memory"

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def get(self, key: Key) -> Value | None:
        return self._memory.values.get(key)

    async def versions(self, table: str, most: int) -> Mapping[str, int]:
        found = [
            (key.name, value.version) for key, value in self._memory.values.items() if key.table == table
        ]
        return dict(found[:most])

    async def compare_and_set(self, key: Key, data: bytes, version: int, most: int) -> int | None:
        values, before = self._memory.values, self._memory.values.get(key)
        if (before.version if before else 0) != version:
            return None
        if not before and sum(other.table == key.table for other in values) >= most:
            raise StoreFullError
        values[key] = Value(data, self._memory.next())
        return values[key].version

    async def delete(self, key: Key, version: int) -> bool:
        before = self._memory.values.get(key)
        if before is None or before.version != version:
            return False
        del self._memory.values[key]
        return True

    async def acquire(self, name: str, owner: str, milliseconds: int) -> int | None:
        if self._held(name) is not None:
            return None
        number = self._memory.next()
        self._memory.leases[name] = (owner, number, self._memory.now() + milliseconds / 1_000)
        return number

    async def renew(self, name: str, owner: str, number: int, milliseconds: int) -> bool:
        if self._held(name) != (owner, number):
            return False
        self._memory.leases[name] = (owner, number, self._memory.now() + milliseconds / 1_000)
        return True

    async def release(self, name: str, owner: str, number: int) -> bool:
        if self._held(name) != (owner, number):
            return False
        del self._memory.leases[name]
        return True

    async def take(self, requests: Sequence[Sequence[Bucket]]) -> list[Shortage | None]:
        found = list[Shortage | None]()
        for buckets in requests:
            changed, short = take(buckets, self._memory.full_at, int(self._memory.now() * 1_000_000))
            self._memory.full_at |= changed
            found.append(short)
        return found

    async def append(self, log: str, data: bytes, keep: int) -> int:
        entries = self._memory.logs[log]
        entries.append(Entry(self._memory.next(), data))
        del entries[:-keep]
        return entries[-1].number

    async def entries(self, log: str, after: int, most: int) -> list[Entry]:
        return [entry for entry in self._memory.logs.get(log, ()) if entry.number > after][:most]

    async def publish(self, channel: str, message: bytes) -> None:
        for queue in self._memory.channels.get(channel, ()):
            if queue.qsize() < limits.STORE_UNREAD:
                queue.put_nowait(message)

    @asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._memory.channels[channel].add(queue)
        try:
            yield _messages(queue)
        finally:
            self._memory.channels[channel].discard(queue)

    def fault(self, error: Exception) -> tuple[StoreFault, str] | None:
        return None

    async def close(self) -> None:
        pass

    def _held(self, name: str) -> tuple[str, int] | None:
        owner, number, end = self._memory.leases.get(name, ("", 0, 0.0))
        return (owner, number) if number and end > self._memory.now() else None


async def _messages(queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    while True:
        yield await queue.get()
