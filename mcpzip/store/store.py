"""The store, whichever kind it is.

The rules: arguments are checked, and every operation ends within `limits.STORE_TIME`, also when the store
doesn't answer. Whatever is wrong with the store is a `StoreError`. A write that ended with one may have been
done, or be done later: whoever has to know reads again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from mcpzip.model import limits
from mcpzip.model.errors import StoreError
from mcpzip.store.backend import Backend
from mcpzip.store.buckets import Bucket, Shortage, check_requests
from mcpzip.store.records import (
    HIGHEST,
    Entry,
    Key,
    Lease,
    StoreFullError,
    Value,
    check_key,
    check_name,
    check_number,
    check_size,
    milliseconds,
)
from mcpzip.system.tasks import retrieve_exception

T = TypeVar("T")
_CLOSING = 1.0
"""Seconds that connections have to end in."""


class Store:
    """For one event loop. All operations raise StoreError, and ValueError for arguments beyond the limits."""

    def __init__(self, backend: Backend, deadline: float = limits.STORE_TIME) -> None:
        """deadline: seconds for an operation."""
        self._backend, self._deadline = backend, deadline
        self._abandoned: set[asyncio.Task[Any]] = set()

    @property
    def place(self) -> str:
        """Its address without a password."""
        return self._backend.place

    # ---- values

    async def get(self, key: Key) -> Value | None:
        """The value at ``key``; None where there is none."""
        check_key(key)
        return await self._within(self._backend.get(key))

    async def versions(self, table: str) -> Mapping[str, int]:
        """The versions of all values of a table, by name."""
        check_name(table)
        return await self._within(self._backend.versions(table, limits.STORE_VALUES))

    async def compare_and_set(self, key: Key, data: bytes, version: int) -> int | None:
        """Stores ``data`` if the value still has ``version``; 0: if there is none.

        Returns the new version; None when the value has another one, and nothing was stored.
        """
        check_key(key)
        check_size(data, limits.STORE_VALUE, "a value")
        check_number(version)
        return await self._within(self._backend.compare_and_set(key, data, version, limits.STORE_VALUES))

    async def delete(self, key: Key, version: int) -> bool:
        """Deletes the value if it still has ``version``; whether it did."""
        check_key(key)
        check_number(version, least=1)
        return await self._within(self._backend.delete(key, version))

    # ---- leases

    async def acquire(self, name: str, owner: str, seconds: float) -> Lease | None:
        """A lease that ends after ``seconds`` unless it is renewed; None while anybody holds it, us too."""
        check_name(name)
        check_name(owner)
        number = await self._within(self._backend.acquire(name, owner, milliseconds(seconds)))
        return None if number is None else Lease(name, owner, number)

    async def renew(self, lease: Lease, seconds: float) -> bool:
        """Has ``lease`` end after ``seconds`` from now; False when it has ended already."""
        time = milliseconds(seconds)
        return await self._within(self._backend.renew(lease.name, lease.owner, lease.number, time))

    async def release(self, lease: Lease) -> bool:
        """Ends ``lease``; False when it had ended already."""
        return await self._within(self._backend.release(lease.name, lease.owner, lease.number))

    # ---- token buckets

    async def take(self, requests: Sequence[Sequence[Bucket]]) -> list[Shortage | None]:
        """For each request, in their order, takes a token from each bucket, or, if one of them has none, from
        none; which one that is. A bucket is full when it is first used. Time is the store's.
        """
        check_requests(requests)
        return await self._within(self._backend.take(requests))

    # ---- logs

    async def append(self, log: str, data: bytes, keep: int = limits.STORE_ENTRIES) -> int:
        """Appends an entry to a log, of which the last ``keep`` are kept. Returns its number."""
        check_name(log)
        check_size(data, limits.STORE_ENTRY, "an entry")
        check_number(keep, limits.STORE_ENTRIES, least=1)
        return await self._within(self._backend.append(log, data, keep))

    async def entries(self, log: str, after: int = 0, most: int = 1_000) -> list[Entry]:
        """The first ``most`` entries of a log with numbers above ``after``, in their order.

        No entry comes later with a number below one that was read.
        """
        check_name(log)
        check_number(after, HIGHEST)
        check_number(most, limits.STORE_ENTRIES, least=1)
        return await self._within(self._backend.entries(log, after, most))

    # ---- channels

    async def publish(self, channel: str, message: bytes) -> None:
        """Sends ``message`` to everybody who is subscribed to ``channel`` now. It may be lost."""
        check_name(channel)
        check_size(message, limits.STORE_MESSAGE, "a message")
        await self._within(self._backend.publish(channel, message))

    @asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The messages to ``channel`` from now on, without end. Messages may be lost: whoever has to know
        what they tell looks by itself now and then. The iterator raises StoreError.
        """
        check_name(channel)
        async with AsyncExitStack() as open_channel:
            entered = open_channel.enter_async_context(self._backend.subscribe(channel))
            messages = await self._within(entered)
            yield self._translated(messages)

    async def _translated(self, messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for message in messages:
                yield message
        except Exception as error:
            raise self._as_store_error(error) from error

    # ----

    async def close(self) -> None:
        """Ends all connections, and what waits for them."""
        for task in self._abandoned:
            task.cancel()
        closing = asyncio.ensure_future(self._backend.close())
        left = {closing, *self._abandoned}
        _, hanging = await asyncio.wait(left, timeout=_CLOSING)
        for each in hanging:
            each.cancel()
        retrieve_exception(closing) if closing.done() else None

    async def _within(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, or StoreError within the deadline, whatever ``work`` does then."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task}, timeout=self._deadline)
            if not task.done():
                raise StoreError(self.place, "slow", f"it has not answered within {self._deadline:g} s")
        finally:
            if not task.done():
                self._abandon(task)
        try:
            return task.result()
        except Exception as error:
            raise self._as_store_error(error) from error

    def _abandon(self, task: "asyncio.Future[Any]") -> None:
        assert isinstance(task, asyncio.Task)
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
        task.add_done_callback(retrieve_exception)
        task.cancel()

    def _as_store_error(self, error: Exception) -> Exception:
        if isinstance(error, StoreError):
            return error
        if isinstance(error, StoreFullError):
            return StoreError(self.place, "full", f"it has {limits.STORE_VALUES:,} values of this kind")
        found = self._backend.fault(error)
        return error if found is None else StoreError(self.place, *found)


Opener = Callable[[], Store]
"""Makes a store for the running event loop."""
