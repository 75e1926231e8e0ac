"""Hearing of changes from a modern upstream (spec 2026-07-28: basic/patterns/subscriptions).

The rule: it tells only whoever asks, so it is asked for as long as the connection lives, and anew whenever
what is asked for changes or the subscription ends; less often where the server never keeps one for long. Of
two subscriptions the old one goes when the new one stands: nothing is missed between them.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from mcpzip.system.backoff import Backoff
from mcpzip.transport.base import Channel, ChannelClosedError, RpcFaultError
from mcpzip.transport.handshake import ServerInfo
from mcpzip.wire import REQUEST_CANCELLED, Era, join_object, quote, stamp_request

LIST_CHANGED = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
"""What changed, by the notification that says so."""
UPDATED = "notifications/resources/updated"

LISTEN_AGAIN, LISTEN_SELDOM = 5.0, 300.0
"""Seconds after which a subscription that ended is opened anew: doubling from one to the other, where the
server never keeps one for long.
"""


ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_STANDS = 5.0
"""Seconds a server may take to acknowledge a subscription."""


class SubscriptionStream:
    """The subscription of one connection."""

    def __init__(
        self, channel: Channel, greeting: ServerInfo, changed: Callable[[], None], client_info: bytes
    ) -> None:
        """changed: is called when lists may have changed while nobody listened."""
        self._channel, self._greeting, self._changed = channel, greeting, changed
        self._client_info = client_info
        self._resources: frozenset[str] = frozenset()
        self._heard: frozenset[str] = frozenset()
        """Those that the subscription which stands is for."""
        self._refusal: RpcFaultError | None = None
        self._over = False
        self._other, self._acknowledged, self._settled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hear_of(self, uris: frozenset[str]) -> None:
        """From now on these resources are to be told of. Waits until that is so, for a while.

        Raises RpcFaultError when the server won't; it then tells of what it told of before.
        """
        if uris == self._resources or self._over:
            return
        self._resources, self._refusal = uris, None
        self._settled.clear()
        self._other.set()
        try:
            async with asyncio.timeout(_STANDS):
                await self._settled.wait()
        except TimeoutError:
            pass  # it acknowledges nothing: it may tell of changes all the same
        if self._refusal is not None:
            raise self._refusal

    def acknowledged(self) -> None:
        """The server says that it will tell."""
        self._acknowledged.set()

    def params(self) -> bytes | None:
        """What to ask for; None when there is nothing."""
        offers = self._greeting.offers
        lists = {
            "toolsListChanged": offers.tools,
            "promptsListChanged": offers.prompts,
            "resourcesListChanged": offers.resources,
        }
        wanted = {key: b"true" for key, one in lists.items() if one is not None and one.list_changed}
        if self._resources:
            wanted["resourceSubscriptions"] = b"[%b]" % b",".join(map(quote, sorted(self._resources)))
        return join_object({"notifications": join_object(wanted)}) if wanted else None

    async def run(self) -> None:
        """Listens until it is cancelled, or the channel is gone."""
        if self._greeting.dialect.era is Era.LEGACY:
            return
        backoff, subscription = Backoff(LISTEN_AGAIN, LISTEN_SELDOM), None
        try:
            while True:
                self._other.clear()
                began = time.monotonic()
                subscription = await self._instead_of(subscription)
                self._settled.set()
                await _either(subscription, self._other)
                if self._other.is_set():
                    continue
                assert subscription is not None
                if _is_final(subscription):  # nor will it, until something else is asked for
                    subscription = None
                    await self._other.wait()
                    continue
                if time.monotonic() - began > LISTEN_SELDOM:
                    backoff.reset()
                await asyncio.sleep(backoff.next())
                self._changed()
        finally:
            self._over = True
            self._settled.set()  # nobody is to wait for what will not come
            await _end(subscription)

    async def _instead_of(self, old: "_Subscription | None") -> "_Subscription | None":
        """The subscription to what is wanted now; ``old`` has ended, unless that is refused."""
        resources, params = self._resources, self.params()
        new: _Subscription | None = None
        try:
            if params is not None:
                self._acknowledged.clear()
                version = self._greeting.dialect.version
                stamped = stamp_request(params, version, self._client_info, b"{}")
                new = asyncio.ensure_future(self._channel.request("subscriptions/listen", stamped))
                await _either(new, self._acknowledged, timeout=_STANDS)
        except asyncio.CancelledError:
            await _end(new)
            await _end(old)
            raise
        refusal = _refusal(new)
        if refusal is not None and resources != self._heard:
            self._refusal = refusal
            if old is not None and not old.done():
                self._resources = self._heard
                return old
            if resources:  # it may still tell of its lists
                self._resources = self._heard = frozenset()
                return await self._instead_of(old)
        self._heard = resources
        await _end(old)
        return new


_Subscription = asyncio.Future[bytes]


async def _either(one: "_Subscription | None", event: asyncio.Event, timeout: float | None = None) -> None:
    happening = asyncio.ensure_future(event.wait())
    awaited: set[asyncio.Future[Any]] = {happening} if one is None else {happening, one}
    try:
        await asyncio.wait(awaited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        happening.cancel()


async def _end(subscription: "_Subscription | None") -> None:
    if subscription is None:
        return
    if not subscription.done():
        subscription.cancel()
        await asyncio.wait({subscription})
    if not subscription.cancelled():
        subscription.exception()  # looked at


def _refusal(subscription: "_Subscription | None") -> RpcFaultError | None:
    """Why the server won't; None where it may."""
    if subscription is None or not subscription.done() or subscription.cancelled():
        return None
    match subscription.exception():
        case RpcFaultError(error=error) as fault if error.code != REQUEST_CANCELLED:
            return fault
    return None


def _is_final(subscription: "_Subscription") -> bool:
    """Whether a subscription ended in a way that says there will be no other."""
    match subscription.exception():
        case RpcFaultError(error=error):
            return error.code != REQUEST_CANCELLED  # its lists are fetched at the next refresh
        case ChannelClosedError(fatal=fatal):
            return fatal
        case _:
            return False
