"""The query cache: rankings by the plan of a query.

The rule: a cached ranking is what a new search would return. The key is all that a ranking depends on: the
plan (`query.Plan`), the version of the catalog and the signals. The number of hits is no part of it, because
a ranking is cached whole and cut afterwards.
"""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

import msgspec

from mcpzip.search.query import Plan
from mcpzip.search.signals import Signals

CAPACITY = 256

Value = TypeVar("Value")


class Key(msgspec.Struct, frozen=True):
    """All that a ranking depends on."""

    plan: Plan
    version: str
    signals: Signals


class QueryCache(Generic[Value]):
    """An LRU cache of at most ``capacity`` values. Safe between threads.

    Raises ValueError for a capacity below 1.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"a query cache holds at least one answer, not {capacity}")
        self._capacity = capacity
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """The value of ``key``, which becomes the most recently used; None where there is none."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> None:
        """Store ``value``; removes the least recently used one when full."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)
