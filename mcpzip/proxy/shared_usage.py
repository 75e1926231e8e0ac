"""Tells other processes which tools were used, and hears it from them, in the store that they share.

The rules: each file of counts has an origin and says which entries it has taken up. So processes that share a
file take up each entry once, and none of their own. Counts are told by those who counted them; what can't be
told waits. A search never waits for it.
"""

import asyncio
from collections.abc import Iterator

import msgspec

from mcpzip.config.schema import StoreConfig
from mcpzip.config.store_opening import ring_of, store_thread
from mcpzip.model import limits
from mcpzip.proxy.tool_usage import MAX_TOOLS, UseCount, UseCounts, added, is_sound
from mcpzip.store.sealed_log import LARGEST_ENTRY, SealedLog

LOG = "usage"
LONGEST_NAME = 512
"""Characters of a tool's name; longer ones are not told."""


class _Entry(msgspec.Struct):
    origin: str
    tools: dict[str, UseCount]


class SharedUsage:
    """The counts in the store of ``config``. `tell` and `hear` block: they are for a thread."""

    def __init__(self, config: StoreConfig) -> None:
        self._thread = store_thread(config)
        self._log = SealedLog(self._thread, ring_of(config), config.namespace, LOG, limits.STORE_ENTRIES)

    def tell(self, origin: str, uses: UseCounts, timeout: float) -> None:
        """Tells of ``uses`` that the file with ``origin`` has counted. Raises OSError, also after ``timeout``
        seconds.
        """
        if entries := list(_entries(origin, uses)):
            self._thread.call(lambda: self._tell(entries, timeout))

    async def _tell(self, entries: list[bytes], timeout: float) -> None:
        async with asyncio.timeout(timeout):
            for entry in entries:
                await self._log.append(entry)

    def hear(self, origin: str, seen: int, now: float, timeout: float) -> tuple[UseCounts, int]:
        """What others have counted since the entry ``seen``, and the number of the last entry. now: Unix
        seconds. Raises as `tell`.
        """
        entries, seen = self._thread.call(lambda: self._hear(seen, timeout))
        heard: UseCounts = {}
        for data in entries:
            try:
                entry = msgspec.json.decode(data, type=_Entry)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # of a later version
            if entry.origin != origin:
                heard = added(heard, _sound(entry.tools, now))
        return heard, seen

    async def _hear(self, seen: int, timeout: float) -> tuple[list[bytes], int]:
        async with asyncio.timeout(timeout):
            return await self._log.after(seen)

    def close(self) -> None:
        """Ends its connections. It may block for a few seconds."""
        self._thread.close()


def _entries(origin: str, uses: UseCounts) -> Iterator[bytes]:
    tools: dict[str, UseCount] = {}
    size = 0
    for name, use in uses.items():
        if not name.isprintable() or len(name) > LONGEST_NAME:
            continue
        use = use.without_words()  # they don't leave this machine
        length = len(msgspec.json.encode({name: use}))
        if size + length > LARGEST_ENTRY // 2 and tools:
            yield msgspec.json.encode(_Entry(origin, tools))
            tools, size = {}, 0
        tools[name] = use
        size += length
    if tools:
        yield msgspec.json.encode(_Entry(origin, tools))


def _sound(tools: UseCounts, now: float) -> dict[str, UseCount]:
    sound = [(name, use) for name, use in tools.items() if is_sound(use) and len(name) <= LONGEST_NAME]
    return {name: UseCount(use.calls, min(use.at, now)) for name, use in sound[:MAX_TOOLS]}
