"""What a person has allowed, in a store that processes and machines share: one value, sealed.

The rules: a change is written only if nobody else has written since it was read; else it is made again. So
what is allowed once is taken by one. A list that can't be opened, or is an earlier one than was seen here,
allows nothing.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mcpzip.model.errors import StoreError
from mcpzip.policy.allowances import FORMAT, Allowance, Allowances, AllowedError, AllowedList, valid
from mcpzip.store.sealed_table import Sealed, SealedTable
from mcpzip.store.seen import SeenCounters
from mcpzip.store.thread import StoreThread
from mcpzip.system.formats import UnusableError
from mcpzip.system.sealing import KeyRing

TABLE, NAME = "allowed", "calls"
_TRIES = 16
"""How often a write is tried against writes of others."""
T = TypeVar("T")


class SharedAllowances(Allowances):
    """The list in the store of ``thread``."""

    def __init__(
        self,
        thread: StoreThread,
        make_ring: Callable[[], KeyRing],
        namespace: str,
        place: str,
        seen: SeenCounters,
        command: str,
    ) -> None:
        """place: of the store, for sentences. seen: what this machine has seen last. command: begins a new
        list.
        """
        self._thread, self._place, self._seen, self._command = thread, place, seen, command
        self._table = SealedTable(thread, make_ring, namespace, TABLE)
        self._lock: asyncio.Lock | None = None

    def all(self, now: float) -> list[Allowance]:
        return self._call(lambda: self._all(now))

    def clear(self) -> None:
        self._call(self._clear)

    def close(self) -> None:
        self._thread.close()

    def _change(self, now: float, change: Callable[[list[Allowance]], list[Allowance]]) -> None:
        self._call(lambda: self._changed(now, change))

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def alone() -> T:
            if self._lock is None:
                self._lock = asyncio.Lock()
            async with self._lock:  # so that nothing is read that was replaced here meanwhile
                return await work()

        try:
            return self._thread.call(alone)
        except OSError as error:
            why = error.found if isinstance(error, StoreError) else error.strerror or str(error)
            what = f"{self._place} has the list of allowed calls, but {why}"
            raise AllowedError(f"{what}. Until then nothing counts as allowed.") from error

    # ---- on the store's loop

    async def _all(self, now: float) -> list[Allowance]:
        return (await self._read(now))[1]

    async def _read(self, now: float) -> tuple[Sealed | None, list[Allowance]]:
        """Raises OSError and AllowedError."""
        try:
            sealed = await self._table.get(NAME)
            if sealed is None:
                return None, []
            if why := self._seen.problem(NAME, sealed.counter, sealed.mark):
                raise UnusableError(why)
            found = FORMAT.decode(sealed.data, AllowedList).allowed
        except UnusableError as error:
            raise AllowedError(
                f"The list of allowed calls in {self._place} {error}. Nothing in it counts. To begin a new "
                f"one: {self._command}"
            ) from None
        self._seen.note(NAME, sealed.counter, sealed.mark)
        return sealed, valid(found, now)

    async def _changed(self, now: float, change: Callable[[list[Allowance]], list[Allowance]]) -> None:
        for _ in range(_TRIES):
            before, found = await self._read(now)
            made = change(found)
            if made == found or await self._set(made, 0 if before is None else before.version, before):
                return
        raise OSError("other processes keep changing the list")

    async def _clear(self) -> None:
        for _ in range(_TRIES):
            if await self._set([], await self._table.version(NAME), None):
                return
        raise OSError("other processes keep changing the list")

    async def _set(self, allowed: list[Allowance], version: int, before: Sealed | None) -> bool:
        seen = self._seen.get(NAME)
        least = max(0 if before is None else before.counter, 0 if seen is None else seen.counter)
        try:
            written = await self._table.set(NAME, AllowedList.of(allowed), version, least)
        except ValueError as error:
            raise OSError(str(error)) from None
        if written is None:
            return False
        self._seen.note(NAME, written.counter, written.mark)
        return True
