"""How many requests each person may make over HTTP: the ``requests`` of ``rate_limits`` in the config.

The rule: it costs less to refuse a request than to send it. It is refused by its head (HTTP 429, RFC 6585),
before a byte of its body is read, and counted in this process alone.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from math import ceil

from mcpzip.config.schema import RateLimit
from mcpzip.model import limits
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.server.http.response import Refusal
from mcpzip.store.buckets import Bucket, take


class RequestLimits:
    """Counts the requests of people. Everything runs on one event loop."""

    def __init__(
        self, configured: Callable[[], tuple[RateLimit, ...]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """configured: the limits of the config in use. clock: seconds."""
        self._configured, self._clock = configured, clock
        self._of: tuple[RateLimit, ...] = ()
        self._full_at: OrderedDict[PrincipalId, dict[str, int]] = OrderedDict()

    def check(self, principal: Principal) -> Refusal | None:
        """Counts a request of ``principal``, or says why it is refused."""
        configured = self._configured()
        if not configured:
            return None
        if configured != self._of:
            self._of = configured
            self._full_at.clear()
        buckets = [
            Bucket(str(number), limit.requests, ceil(limit.seconds * 1_000_000 / limit.requests))
            for number, limit in enumerate(configured)
            if limit.requests and (limit.groups is None or not limit.groups.isdisjoint(principal.groups))
        ]
        if not buckets:
            return None
        full_at = self._full_at.setdefault(principal.id, {})
        self._full_at.move_to_end(principal.id)
        while len(self._full_at) > limits.RATE_BUCKETS:
            self._full_at.popitem(last=False)
        changed, short = take(buckets, full_at, int(self._clock() * 1_000_000))
        full_at |= changed
        if short is None:
            return None
        limit, wait = configured[int(buckets[short.number].name)], ceil(short.microseconds / 1_000_000)
        most = f"{limit.requests:,} requests in {limit.seconds:g} s"
        reason = f"You may make {most}. This one was not read: try again in {wait} s."
        return Refusal(429, reason, ((b"retry-after", b"%d" % wait),))
