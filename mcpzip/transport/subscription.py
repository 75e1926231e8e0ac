"""The subscription to a modern upstream's change notifications (spec 2026-07-28:
basic/patterns/subscriptions).

The rule: a modern upstream sends change notifications only on a subscription, so one is open for as long as
the connection lives. It is replaced when the wanted notifications change, and opened again when it ends; less
often where it keeps ending. The old one is closed only when the new one is acknowledged, so that no
notification is missed between them.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from mcpzip.system.backoff import Backoff
from mcpzip.system.tasks import cancel
from mcpzip.transport.base import Channel, ChannelClosedError
from mcpzip.transport.handshake import ServerInfo
from mcpzip.wire import (
    REQUEST_CANCELLED,
    Era,
    JsonRpcError,
    join_object,
    quote,
    stamp_request,
)
from mcpzip.wire.client_info import CLIENT_INFO

LIST_CHANGED = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
"""Which list has changed, by notification."""
UPDATED = "notifications/resources/updated"

FIRST_DELAY, LONGEST_DELAY = 5.0, 300.0
"""Seconds after which a subscription that ended is opened again; the delay doubles while subscriptions keep
ending early.
"""

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_ACKNOWLEDGE_TIMEOUT = 5.0
"""Seconds a server has to acknowledge a subscription."""


class SubscriptionStream:
    """The subscription of one connection."""

    def __init__(self, channel: Channel, info: ServerInfo, changed: Callable[[], None]) -> None:
        """changed: called when lists may have changed while there was no subscription."""
        self._channel, self._info, self._changed = channel, info, changed
        self._resources: frozenset[str] = frozenset()
        """The resources that are wanted."""
        self._subscribed: frozenset[str] = frozenset()
        """The resources of the present subscription."""
        self._refusal: JsonRpcError | None = None
        self._over = False
        self._replace, self._acknowledged, self._settled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def set_resources(self, uris: frozenset[str]) -> None:
        """Subscribes to updates of these resources instead of the present ones. Returns when the server has
        acknowledged it, or after a timeout.

        Raises JsonRpcError when the server refuses; the subscription is then the same as before.
        """
        if uris == self._resources or self._over:
            return
        self._resources, self._refusal = uris, None
        self._settled.clear()
        self._replace.set()
        try:
            async with asyncio.timeout(_ACKNOWLEDGE_TIMEOUT):
                await self._settled.wait()
        except TimeoutError:
            pass  # some servers never acknowledge, but send the notifications
        if self._refusal is not None:
            raise self._refusal

    def acknowledged(self) -> None:
        """Called when the server acknowledges the subscription."""
        self._acknowledged.set()

    def params(self) -> bytes | None:
        """The params of `subscriptions/listen`; None when there is nothing to subscribe to."""
        offers = self._info.offers
        lists = {
            "toolsListChanged": offers.tools,
            "promptsListChanged": offers.prompts,
            "resourcesListChanged": offers.resources,
        }
        wanted = {key: b"true" for key, offer in lists.items() if offer is not None and offer.list_changed}
        if self._resources:
            wanted["resourceSubscriptions"] = b"[%b]" % b",".join(map(quote, sorted(self._resources)))
        return join_object({"notifications": join_object(wanted)}) if wanted else None

    async def run(self) -> None:
        """Keeps a subscription open until it is cancelled, or the channel is closed."""
        if self._info.dialect.era is Era.LEGACY:
            return
        backoff, subscription = Backoff(FIRST_DELAY, LONGEST_DELAY), None
        try:
            while True:
                self._replace.clear()
                began = time.monotonic()
                subscription = await self._replaced(subscription)
                self._settled.set()
                await _wait_for_either(subscription, self._replace)
                if self._replace.is_set():
                    continue
                assert subscription is not None
                if _is_final(subscription):  # until other notifications are wanted
                    subscription = None
                    await self._replace.wait()
                    continue
                if time.monotonic() - began > LONGEST_DELAY:
                    backoff.reset()
                await asyncio.sleep(backoff.next())
                self._changed()
        finally:
            self._over = True
            self._settled.set()  # releases `set_resources`
            await cancel(subscription)

    async def _replaced(self, old: "_Subscription | None") -> "_Subscription | None":
        """Opens the subscription that is wanted now, cancels ``old`` and returns the new one. When the server
        refuses the new one, ``old`` stays and is returned.
        """
        resources, params = self._resources, self.params()
        new: _Subscription | None = None
        try:
            if params is not None:
                self._acknowledged.clear()
                version = self._info.dialect.version
                stamped = stamp_request(params, version, CLIENT_INFO, b"{}")
                new = asyncio.ensure_future(self._channel.request("subscriptions/listen", stamped))
                await _wait_for_either(new, self._acknowledged, timeout=_ACKNOWLEDGE_TIMEOUT)
        except asyncio.CancelledError:
            await cancel(new)
            await cancel(old)
            raise
        refusal = _refusal(new)
        if refusal is not None and resources != self._subscribed:
            self._refusal = refusal
            if old is not None and not old.done():
                self._resources = self._subscribed
                return old
            if resources:  # without the resources it may be accepted
                self._resources = self._subscribed = frozenset()
                return await self._replaced(old)
        self._subscribed = resources
        await cancel(old)
        return new


_Subscription = asyncio.Future[bytes]


async def _wait_for_either(
    subscription: "_Subscription | None", event: asyncio.Event, timeout: float | None = None
) -> None:
    happening = asyncio.ensure_future(event.wait())
    awaited: set[asyncio.Future[Any]] = {happening} if subscription is None else {happening, subscription}
    try:
        await asyncio.wait(awaited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        happening.cancel()


def _refusal(subscription: "_Subscription | None") -> JsonRpcError | None:
    """The error with which the server refused; None when it did not."""
    if subscription is None or not subscription.done() or subscription.cancelled():
        return None
    match subscription.exception():
        case JsonRpcError(error=error) as fault if error.code != REQUEST_CANCELLED:
            return fault
    return None


def _is_final(subscription: "_Subscription") -> bool:
    """Whether an ended subscription shows that the next one would fail too."""
    match subscription.exception():
        case JsonRpcError(error=error):
            return error.code != REQUEST_CANCELLED  # changes are then found by the next refresh
        case ChannelClosedError(fatal=fatal):
            return fatal
        case _:
            return False
