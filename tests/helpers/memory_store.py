"""A store in memory that can be away, as several processes of a test use it."""

from collections.abc import Mapping

import pytest

from mcpzip.config import store_opening
from mcpzip.model.errors import StoreError
from mcpzip.store.memory_backend import Memory, MemoryBackend
from mcpzip.store.records import Key, Value
from mcpzip.store.store import Store
from mcpzip.store.thread import StoreThread

KEY = "k" * 43 + "="


class Flaky(MemoryBackend):
    """away: whether it can't be used. is_full: whether it takes no writes. asked: operations that began."""

    away = is_full = False
    asked = 0

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.memory = memory

    async def get(self, key: Key) -> Value | None:
        self._look()
        return await super().get(key)

    async def versions(self, table: str, most: int) -> Mapping[str, int]:
        self._look()
        return await super().versions(table, most)

    async def compare_and_set(self, key: Key, data: bytes, version: int, most: int) -> int | None:
        self._look()
        if self.is_full:
            raise StoreError("memory", "full", "its memory is full")
        return await super().compare_and_set(key, data, version, most)

    def _look(self) -> None:
        self.asked += 1
        if self.away:
            raise StoreError("memory", "away", "it can't be used")

    def values(self, table: str) -> dict[str, Value]:
        """What lies in a table, by name."""
        return {key.name: value for key, value in self.memory.values.items() if key.table == table}

    def put(self, table: str, name: str, data: bytes | None) -> None:
        """Writes there as somebody who is not mcpzip; None deletes."""
        self.memory.values.pop(Key(table, name), None)
        if data is not None:
            self.memory.values[Key(table, name)] = Value(data, self.memory.next())


def used_by_all(monkeypatch: pytest.MonkeyPatch, backend: Flaky) -> None:
    """Whoever opens the store of a config has ``backend``."""
    monkeypatch.setattr(
        store_opening, "store_thread", lambda config: StoreThread(lambda: Store(backend, deadline=2.0))
    )
