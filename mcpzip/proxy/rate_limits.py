"""How many calls each person may make: the ``rate_limits`` of the config.

The rules: a call counts for every limit that is for its tool and for who makes it, or, if one of them is
reached, for none. Who isn't known, because they use this machine, has no limits. A limit is a token bucket:
so many calls at once, and then as many as come back with time.

With a store, calls are counted there for all processes (`proxy.shared_rates`). What this process counted
itself is enough to refuse a call, because in the store no bucket has more than here: who makes far too many
calls costs the store nothing. How many calls are under way is counted here alone.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import partial
from math import ceil
from typing import NamedTuple, Protocol

import msgspec

from mcpzip.config.schema import RateLimit
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import NotCountedError, StoreError, TooManyCallsError
from mcpzip.model.names import join
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.proxy.statistics import Statistics

_SEPARATOR = join("", "")
_BUSY = 1.0
"""Seconds after which to try again if too many calls are under way."""
_AWAY = 5.0
"""The same if the store has to count a call and can't."""


class _Bucket(msgspec.Struct):
    """left: calls that may be made at once. at: when that was so, by the clock. running: calls under way."""

    left: float
    at: float
    running: int = 0


class _Taken(NamedTuple):
    """A bucket from which a call was taken."""

    config: RateLimit
    bucket: _Bucket


class _Limit:
    def __init__(self, config: RateLimit) -> None:
        self.config = config
        self._matchers = [(_SEPARATOR in glob, re.compile(translate(glob)).match) for glob in config.of]

    def is_for(self, principal: Principal, entry: Entry) -> bool:
        groups = self.config.groups
        if groups is not None and groups.isdisjoint(principal.groups):
            return False
        return any(matches(entry.name if of_tool else entry.server) for of_tool, matches in self._matchers)


class SharedCounts(Protocol):
    """Counts calls for several processes."""

    async def take(self, person: PrincipalId, counted: Sequence[RateLimit]) -> tuple[RateLimit, float] | None:
        """Counts a call of ``person`` for all of these limits, which have calls; or for none, if one is
        reached: which, and the seconds until another call may be made. Raises StoreError, soon.
        """


class RateLimits:
    """The limits of one config. Everything runs on one event loop."""

    def __init__(
        self,
        configured: tuple[RateLimit, ...],
        clock: Callable[[], float] = time.monotonic,
        shared: SharedCounts | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        """clock: seconds. shared: None to count in this process alone. statistics: has what is refused."""
        of_calls = (each for each in configured if not each.requests)  # see `server.http.request_limits`
        self._limits, self._clock, self._shared = tuple(map(_Limit, of_calls)), clock, shared
        self._statistics = statistics or Statistics()
        self._buckets: OrderedDict[tuple[int, PrincipalId], _Bucket] = OrderedDict()

    async def begin(self, principal: Principal, entry: Entry) -> Callable[[], None]:
        """A call of ``entry`` by ``principal`` begins. Returns what is to be called when it has ended. Raises
        TooManyCallsError and NotCountedError.
        """
        try:
            taken = self._take(principal, entry)
            counted = tuple(each.config for each in taken if each.config.calls)
            if self._shared is not None and counted:
                await self._count(self._shared, principal, counted, taken)
        except (TooManyCallsError, NotCountedError):
            self._statistics.rate_limited += 1
            raise
        return partial(_end, taken)

    async def _count(
        self, shared: SharedCounts, principal: Principal, counted: tuple[RateLimit, ...], taken: list[_Taken]
    ) -> None:
        """Counts in the store the call that was ``taken`` here; where that refuses it, it isn't here."""
        try:
            found = await shared.take(principal.id, counted)
        except StoreError:
            if any(config.if_store_fails == "deny" for config in counted):
                self._give_back(taken)
                raise NotCountedError(_AWAY) from None
            self._statistics.counted_locally += 1
            return
        except BaseException:  # it may be counted
            _end(taken)
            raise
        if found is None:
            return
        self._give_back(taken)
        short, seconds = found
        for config, bucket in taken:
            if config == short:
                bucket.left = min(bucket.left, 1 - seconds * config.calls / config.seconds)
        raise _too_many(short, seconds)

    def _take(self, principal: Principal, entry: Entry) -> list[_Taken]:
        now, taken = self._clock(), list[_Taken]()
        for number, limit in enumerate(self._limits):
            if limit.is_for(principal, entry):
                config = limit.config
                bucket = self._bucket(config, (number, principal.id), now)
                if config.concurrent is not None and bucket.running >= config.concurrent:
                    most = f"{config.concurrent} calls at a time"
                    raise TooManyCallsError(most, _BUSY)
                if config.calls and bucket.left < 1:
                    raise _too_many(config, (1 - bucket.left) * config.seconds / config.calls)
                taken.append(_Taken(config, bucket))
        for config, bucket in taken:
            bucket.running += 1
            bucket.left -= bool(config.calls)
        self._forget()
        return taken

    def _give_back(self, taken: list[_Taken]) -> None:
        now = self._clock()
        _end(taken)
        for config, bucket in taken:
            if config.calls:
                _refill(config, bucket, now)
                bucket.left = min(config.calls, bucket.left + 1)

    def _bucket(self, config: RateLimit, key: tuple[int, PrincipalId], now: float) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(config.calls, now)
        else:
            self._buckets.move_to_end(key)
            if config.calls:
                _refill(config, bucket, now)
        return bucket

    def _forget(self) -> None:
        while len(self._buckets) > limits.RATE_BUCKETS:
            self._buckets.popitem(last=False)


def _refill(config: RateLimit, bucket: _Bucket, now: float) -> None:
    back = (now - bucket.at) * config.calls / config.seconds
    bucket.left, bucket.at = min(config.calls, bucket.left + back), now


def _end(taken: list[_Taken]) -> None:
    """A call has ended."""
    for _, bucket in taken:
        bucket.running -= 1


def _too_many(config: RateLimit, seconds: float) -> TooManyCallsError:
    return TooManyCallsError(f"{config.calls} calls in {config.seconds:g} s", ceil(seconds))
