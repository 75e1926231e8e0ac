"""Counts calls for ``rate_limits`` in the store that processes share.

The rules: a call waits for the store for a moment at most (`limits.STORE_COUNTING`), and not at all while it
is known to fail: then it is asked in the background, until it answers in time again. What lies there tells
nobody who has called: names of buckets are made with the key of the store (HMAC-SHA-256).
"""

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import NamedTuple

from mcpzip.config.schema import RateLimit, StoreConfig
from mcpzip.config.store_opening import place_of, store_thread
from mcpzip.model import limits
from mcpzip.model.errors import StoreError
from mcpzip.model.principal import PrincipalId
from mcpzip.store.buckets import Bucket, Shortage
from mcpzip.store.store import Opener
from mcpzip.store.thread import StoreThread
from mcpzip.system.backoff import Backoff
from mcpzip.system.event_log import note
from mcpzip.system.sealing import bound_to, read_key
from mcpzip.system.tasks import cancel, retrieve_exception
from mcpzip.system.threads import in_thread

_PURPOSE = b"mcpzip rate limits 1"
_PROBE = Bucket("probe", 1, 1)
"""A token comes back at once: taking it shows that the store takes writes."""
_TOLD_EVERY = 600.0
"""Seconds in which there is one warning at most."""


class _Request(NamedTuple):
    """A call that is to be counted."""

    buckets: tuple[Bucket, ...]
    answer: "asyncio.Future[Shortage | None]"


class SharedRates:
    """Counts in the store of ``config``. Everything runs on one event loop."""

    def __init__(
        self, config: StoreConfig, warn: Callable[[str], None], opener: Opener | None = None
    ) -> None:
        """warn: is told that the store fails. opener: opens it; default: as ``config`` says."""
        self._warn, self._place = warn, place_of(config)
        self._thread = StoreThread(opener) if opener else store_thread(config)
        key = read_key(config.keys[0].reveal())
        self._key = hmac.digest(key, _PURPOSE + config.namespace.encode(), "sha256")
        self._probe: asyncio.Task[None] | None = None
        self._works, self._told_at = False, float("-inf")
        self._fault: StoreError | None = None
        self._waiting, self._asked = deque[_Request](), list[_Request]()
        self._sending: asyncio.Task[None] | None = None

    def connect(self) -> "asyncio.Task[None]":
        """Begins to ask the store, unless it works. Returns what ends when it has answered in time."""
        if self._probe is None:
            self._probe = asyncio.create_task(self._ask_until_it_works())
        return self._probe

    async def take(self, person: PrincipalId, counted: Sequence[RateLimit]) -> tuple[RateLimit, float] | None:
        """See `proxy.rate_limits.SharedCounts`."""
        by_bucket = {self._bucket(person, each): each for each in counted}
        if not self._works:
            await self._first_answer()
        request = _Request(tuple(by_bucket), asyncio.get_running_loop().create_future())
        request.answer.add_done_callback(retrieve_exception)
        self._waiting.append(request)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        # A caller who leaves ends nothing: who calls and leaves again and again would cost connections.
        await asyncio.wait({request.answer}, timeout=limits.STORE_COUNTING)
        if not request.answer.done():
            self._failed(self._slow())
        short = request.answer.result()
        if short is None:
            return None
        return list(by_bucket.values())[short.number], short.microseconds / 1_000_000

    async def _send(self) -> None:
        """Asks for all that wait, in one operation at a time: so many calls at once are few operations."""
        try:
            while self._waiting:
                sent, room = self._asked, limits.STORE_BUCKETS
                while self._waiting and (room := room - len(self._waiting[0].buckets)) >= 0:
                    sent.append(self._waiting.popleft())
                found = await self._thread.ask(partial(self._take, [request.buckets for request in sent]))
                for request, short in zip(sent, found, strict=True):
                    request.answer.set_result(short)
                sent.clear()
        except StoreError as error:
            self._sending = None
            self._failed(error)
        except OSError:  # it is being closed
            self._sending = None
            self._failed(StoreError(self._place, "away", "it is not used any more"))
        else:
            self._sending = None

    async def close(self) -> None:
        """Ends its connections."""
        await cancel(self._probe)
        await cancel(self._sending)
        await in_thread(self._thread.close, "rates")

    async def _first_answer(self) -> None:
        """Raises StoreError, unless the store is being connected to for the first time, and answers soon."""
        probe = self.connect()
        if self._fault is None:
            await asyncio.wait({probe}, timeout=limits.STORE_COUNTING)
        if not self._works:
            self._fault = self._fault or self._slow()  # nobody waits for it again
            raise self._fault

    async def _take(self, requests: Sequence[Sequence[Bucket]]) -> list[Shortage | None]:
        return await self._thread.store.take(requests)

    def _slow(self) -> StoreError:
        found = f"it has not answered within {limits.STORE_COUNTING:g} s"
        return StoreError(self._place, "slow", found)

    def _failed(self, error: StoreError) -> None:
        """Nobody waits for the store any more."""
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        for request in (*self._asked, *self._waiting):
            if not request.answer.done():
                request.answer.set_exception(error)
        self._asked.clear()
        self._waiting.clear()
        if self._works:
            self._works, self._probe = False, None
            self._tell(error)
            self.connect()

    def _tell(self, error: StoreError) -> None:
        self._fault, now = error, time.monotonic()
        if now - self._told_at >= _TOLD_EVERY:
            self._told_at = now
            self._warn(f"{error} Until it can be used, each process counts the calls of people by itself.")

    async def _ask_until_it_works(self) -> None:
        backoff = Backoff(0.05, 5.0, jitter=0.5)
        while True:
            begun = time.monotonic()
            try:
                await self._thread.ask(lambda: self._take([[_PROBE]]))
                if time.monotonic() - begun < limits.STORE_COUNTING:
                    break
            except StoreError as error:
                self._tell(error)
            await asyncio.sleep(backoff.next())
        if self._fault is not None:
            note("info", "", "store", "the store counts calls again")
        self._works, self._fault = True, None

    def _bucket(self, person: PrincipalId, limit: RateLimit) -> Bucket:
        """Limits that count the same have the same bucket, in whatever order the config has them."""
        what = (*sorted(limit.of), "", *(("groups", *sorted(limit.groups)) if limit.groups else ()))
        counts = str(limit.calls), repr(limit.seconds)
        name = hmac.digest(self._key, bound_to(*person, *counts, *what), "sha256").hex()
        return Bucket(name, limit.calls, ceil(limit.seconds * 1_000_000 / limit.calls))
