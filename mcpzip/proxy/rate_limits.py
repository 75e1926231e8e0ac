"""How many calls each person may make: the ``rate_limits`` of the config.

The rules: a call counts for every limit that is for its tool and for who makes it, or, if one of them is
reached, for none. Who isn't known, because they use this machine, has no limits. All is in memory, and a
token bucket each: so many calls at once, and then as many as come back with time.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable
from fnmatch import translate
from math import ceil

import msgspec

from mcpzip.config.schema import RateLimit
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import TooManyCallsError
from mcpzip.model.names import join
from mcpzip.model.principal import Principal, PrincipalId

_SEPARATOR = join("", "")
_BUSY = 1.0
"""Seconds after which to try again if too many calls are under way."""


class _Bucket(msgspec.Struct):
    """left: calls that may be made at once. at: when that was so, by the clock. running: calls under way."""

    left: float
    at: float
    running: int = 0


class _Limit:
    def __init__(self, config: RateLimit) -> None:
        self.config = config
        self._matchers = [(_SEPARATOR in glob, re.compile(translate(glob)).match) for glob in config.of]

    def is_for(self, principal: Principal, entry: Entry) -> bool:
        groups = self.config.groups
        if groups is not None and groups.isdisjoint(principal.groups):
            return False
        return any(matches(entry.name if of_tool else entry.server) for of_tool, matches in self._matchers)


class RateLimits:
    """The limits of one config. Everything runs on one event loop."""

    def __init__(
        self, configured: tuple[RateLimit, ...], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """clock: seconds."""
        self._limits, self._clock = tuple(map(_Limit, configured)), clock
        self._buckets: OrderedDict[tuple[int, PrincipalId], _Bucket] = OrderedDict()

    def begin(self, principal: Principal, entry: Entry) -> Callable[[], None]:
        """A call of ``entry`` by ``principal`` begins. Returns what is to be called when it has ended. Raises
        TooManyCallsError.
        """
        now, taken = self._clock(), list[tuple[RateLimit, _Bucket]]()
        for number, limit in enumerate(self._limits):
            if limit.is_for(principal, entry):
                config = limit.config
                bucket = self._bucket(config, (number, principal.id), now)
                if config.concurrent is not None and bucket.running >= config.concurrent:
                    most = f"{config.concurrent} calls at a time"
                    raise TooManyCallsError(most, _BUSY)
                if config.calls and bucket.left < 1:
                    most = f"{config.calls} calls in {config.seconds:g} s"
                    raise TooManyCallsError(most, ceil((1 - bucket.left) * config.seconds / config.calls))
                taken.append((config, bucket))
        for config, bucket in taken:
            bucket.running += 1
            bucket.left -= bool(config.calls)
        self._forget()

        def end() -> None:
            for _, bucket in taken:
                bucket.running -= 1

        return end

    def _bucket(self, config: RateLimit, key: tuple[int, PrincipalId], now: float) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(config.calls, now)
        else:
            self._buckets.move_to_end(key)
            if config.calls:
                back = (now - bucket.at) * config.calls / config.seconds
                bucket.left, bucket.at = min(config.calls, bucket.left + back), now
        return bucket

    def _forget(self) -> None:
        while len(self._buckets) > limits.RATE_BUCKETS:
            self._buckets.popitem(last=False)
