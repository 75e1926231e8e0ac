"""A log of the store whose entries are sealed: what processes tell each other now and then.

The rule: an entry is bound to its namespace and log. Whoever can write to the store can't make one, but can
repeat an earlier one or leave some out: what is told here may change an order, and decides nothing.
"""

from collections.abc import Callable

from mcpzip.model import limits
from mcpzip.store.sealed_table import SealedTable
from mcpzip.store.thread import StoreThread
from mcpzip.system.sealing import KeyRing, SealError, bound_to

LARGEST_ENTRY = limits.STORE_ENTRY // 4 * 3 - 256
"""Bytes that one entry can have: sealed, it is a third longer."""
_AT_ONCE = 500


class SealedLog:
    """The log called ``log``, of which the last ``keep`` entries are kept. For the loop of ``thread``."""

    def __init__(
        self, thread: StoreThread, make_ring: Callable[[], KeyRing], namespace: str, log: str, keep: int
    ) -> None:
        """make_ring: see `SealedTable`."""
        self._thread, self._log, self._keep = thread, log, keep
        self._keys = SealedTable(thread, make_ring, namespace, log)
        self._bound = bound_to(namespace, log, "entry")

    async def append(self, data: bytes) -> None:
        """Appends an entry of `LARGEST_ENTRY` bytes at most. Raises StoreError, ValueError."""
        token = self._keys.ring().seal(self._log, data, self._bound)
        await self._thread.store.append(self._log, token.encode("ascii"), self._keep)

    async def after(self, number: int) -> tuple[list[bytes], int]:
        """The entries with numbers above ``number``, without those that can't be opened; and the last number
        there is. Raises StoreError.
        """
        found = list[bytes]()
        while entries := await self._thread.store.entries(self._log, number, _AT_ONCE):
            number = entries[-1].number
            for entry in entries:
                try:
                    token = entry.data.decode("ascii")
                    found.append(self._keys.ring().open(self._log, token, self._bound))
                except (SealError, UnicodeDecodeError):
                    continue
        return found, number
