"""Hearing of changes from a modern upstream (spec 2026-07-28: basic/patterns/subscriptions).

The rule: it tells only whoever asks, so it is asked for as long as the connection lives, and anew whenever
what is asked for changes or the subscription ends; less often where the server never keeps one for long.
"""

import asyncio
import time
from collections.abc import Callable

from mcpzip.transport.base import Channel, ChannelClosedError, RpcFaultError
from mcpzip.transport.handshake import Greeting
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


class Listening:
    """The subscription of one connection.

    resources: the URIs to be told of; setting it asks anew.
    """

    def __init__(
        self, channel: Channel, greeting: Greeting, changed: Callable[[], None], client_info: bytes
    ) -> None:
        """changed: is called when lists may have changed while nobody listened."""
        self._channel, self._greeting, self._changed = channel, greeting, changed
        self._client_info = client_info
        self._resources: frozenset[str] = frozenset()
        self._other = asyncio.Event()

    @property
    def resources(self) -> frozenset[str]:
        return self._resources

    @resources.setter
    def resources(self, uris: frozenset[str]) -> None:
        if uris != self._resources:
            self._resources = uris
            self._other.set()

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
        """Listens until it is cancelled, or the server turns out not to do what it promised."""
        if self._greeting.dialect.era is Era.LEGACY:
            return
        pause, began = LISTEN_AGAIN, time.monotonic()
        while True:
            self._other.clear()
            params = self.params()
            if params is None:
                await self._other.wait()
                continue
            if await self._listened(params):
                continue  # what is to be told has changed: nothing was missed but a moment
            if self._channel_gone:
                return
            if time.monotonic() - began > LISTEN_SELDOM:
                pause = LISTEN_AGAIN
            await asyncio.sleep(pause)
            pause, began = min(2 * pause, LISTEN_SELDOM), time.monotonic()
            self._changed()

    _channel_gone = False

    async def _listened(self, params: bytes) -> bool:
        """Whether it ended because something else is to be told."""
        stamped = stamp_request(params, self._greeting.dialect.version, self._client_info, b"{}")
        asking = asyncio.ensure_future(self._channel.request("subscriptions/listen", stamped))
        other = asyncio.ensure_future(self._other.wait())
        try:
            await asyncio.wait({asking, other}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return True
            try:
                asking.result()
            except RpcFaultError as fault:
                # It promised more than it does: its lists are fetched at the next refresh.
                self._channel_gone = fault.error.code != REQUEST_CANCELLED
            except ChannelClosedError as closed:
                self._channel_gone = closed.fatal
            return False
        finally:
            other.cancel()
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})
