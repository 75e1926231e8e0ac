"""The LLM tier's answers that machines share, in the store of the config.

The rule: an answer is for the query, the model and exactly the tools that the asker may see (`key_of`), so
nobody is told of a tool by it. The store has hashes and names of tools, sealed, and never queries. A search
waits for it a moment at most, and less than a model takes.
"""

import asyncio
from collections.abc import Callable

import msgspec

from mcpzip.config.schema import StoreConfig
from mcpzip.config.store_opening import ring_of, store_thread
from mcpzip.model.limits import STORE_COUNTING
from mcpzip.search.remote.llm_cache import MAX_ANSWERS, LlmCache
from mcpzip.store.sealed_log import LARGEST_ENTRY, SealedLog
from mcpzip.system.tasks import cancel, retrieve_exception
from mcpzip.system.threads import in_thread

LOG = "llm-answers"


class _Entry(msgspec.Struct):
    key: str
    at: float
    names: list[str]


class SharedAnswers:
    """The answers in the store of ``config``. Everything runs on one event loop. now: Unix seconds."""

    def __init__(self, config: StoreConfig, now: Callable[[], float]) -> None:
        self._thread, self._now = store_thread(config), now
        self._log = SealedLog(self._thread, ring_of(config), config.namespace, LOG, MAX_ANSWERS)
        self._seen = 0
        self._hearing: asyncio.Task[list[bytes]] | None = None
        self._telling: set[asyncio.Task[None]] = set()

    async def hear(self, cache: LlmCache) -> None:
        """Takes what others were answered since the last time into ``cache``, if the store answers soon."""
        if self._hearing is None:
            self._hearing = asyncio.create_task(self._new(), name="llm answers")
            self._hearing.add_done_callback(retrieve_exception)
        task = self._hearing
        await asyncio.wait({task}, timeout=STORE_COUNTING)
        if task is not self._hearing or not task.done():
            return  # it goes on, for a later search
        self._hearing = None
        if task.cancelled() or task.exception() is not None:
            return
        for data in task.result():
            try:
                entry = msgspec.json.decode(data, type=_Entry)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # of a later version
            cache.add(entry.key, entry.names, min(entry.at, self._now()))

    async def _new(self) -> list[bytes]:
        entries, self._seen = await self._thread.ask(lambda: self._log.after(self._seen))
        return entries

    def tell(self, key: str, names: list[str]) -> None:
        """Tells others of an answer. It returns at once; what can't be told is lost."""
        data = msgspec.json.encode(_Entry(key, self._now(), names))
        if len(data) <= LARGEST_ENTRY:
            task = asyncio.create_task(self._tell(data), name="llm answers")
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
            task.add_done_callback(retrieve_exception)

    async def _tell(self, data: bytes) -> None:
        await self._thread.ask(lambda: self._log.append(data))

    async def close(self) -> None:
        """Ends its connections, once what is being told is told."""
        if self._telling:
            await asyncio.wait([*self._telling], timeout=STORE_COUNTING)
        for task in (self._hearing, *self._telling):
            await cancel(task)
        await in_thread(self._thread.close, "llm answers")
