"""The clients that are notified of changes: legacy sessions, and modern `subscriptions/listen` requests.

The rule: a legacy client is notified of every list that changes, and of the resources it subscribed to
(2025-11-25 `server/resources`); a modern one only of what the filter of its `subscriptions/listen` names
(2026-07-28 `basic/patterns/subscriptions`).
"""

import asyncio
from collections.abc import Mapping

from mcpzip.wire import SUBSCRIPTION_ID_KEY
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.request import Channel, Request, as_object

LIST_FILTERS: Mapping[str, str] = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}
"""The filter's key for each list that can change."""

RESOURCE_FILTER = "resourceSubscriptions"


class Audience:
    """All connected clients."""

    def __init__(self) -> None:
        self._sessions: dict[object, Channel] = {}
        self._levels: dict[object, str] = {}
        self._subscribed: dict[object, set[str]] = {}
        self._listeners: dict[object, _Listener] = {}

    # Legacy: by the transport's key of a session

    def joins(self, session: object, channel: Channel) -> None:
        """A session has begun; ``channel`` sends to its client."""
        self._sessions[session] = channel

    def leaves(self, session: object) -> None:
        """The session has ended."""
        self._sessions.pop(session, None)
        self._levels.pop(session, None)
        self._subscribed.pop(session, None)

    def level(self, session: object) -> str | None:
        """The minimum level of logs of the session; None before the client has set one."""
        return self._levels.get(session)

    def set_level(self, session: object, level: str) -> None:
        """Set the minimum level of logs."""
        self._levels[session] = level

    def subscribe(self, session: object, uri: str) -> None:
        """Notify the session of changes of this resource."""
        self._subscribed.setdefault(session, set()).add(uri)

    def unsubscribe(self, session: object, uri: str) -> None:
        """End that subscription."""
        self._subscribed.get(session, set()).discard(uri)

    # Modern

    async def listen(self, request: Request, offered: frozenset[str]) -> None:
        """Acknowledge, and notify of changes until cancelled. offered: the supported keys of the filter."""
        wanted = as_object(request.params.get("notifications"))
        honoured: JsonObject = {key: True for key in LIST_FILTERS.values() if wanted.get(key) is True}
        uris = wanted.get(RESOURCE_FILTER)
        if isinstance(uris, list) and uris:
            honoured[RESOURCE_FILTER] = uris
        honoured = {key: value for key, value in honoured.items() if key in offered}
        meta: JsonObject = {SUBSCRIPTION_ID_KEY: request.id}
        listener, key = _Listener(honoured), object()
        self._listeners[key] = listener
        try:
            params: JsonObject = {"notifications": honoured, "_meta": meta}
            await request.channel.notify("notifications/subscriptions/acknowledged", params)
            while True:
                method, said = await listener.queue.get()
                await request.channel.notify(method, {**said, "_meta": meta})
        finally:
            del self._listeners[key]

    # Both

    async def list_changed(self, kind: str) -> None:
        """Notify that the list of ``tools``, ``prompts`` or ``resources`` changed."""
        method = f"notifications/{kind}/list_changed"
        for channel in list(self._sessions.values()):
            await channel.notify(method, {})
        for listener in self._listeners.values():
            if LIST_FILTERS[kind] in listener.honoured:
                listener.queue.put_nowait((method, {}))

    async def updated(self, uri: str) -> None:
        """Notify the subscribers of a resource that it changed."""
        method = "notifications/resources/updated"
        for session, channel in list(self._sessions.items()):
            if uri in self._subscribed.get(session, ()):
                await channel.notify(method, {"uri": uri})
        for listener in self._listeners.values():
            uris = listener.honoured.get(RESOURCE_FILTER)
            if isinstance(uris, list) and uri in uris:
                listener.queue.put_nowait((method, {"uri": uri}))


class _Listener:
    """One `subscriptions/listen`: the accepted part of its filter, and the notifications to send."""

    def __init__(self, honoured: JsonObject) -> None:
        self.honoured = honoured
        self.queue: asyncio.Queue[tuple[str, JsonObject]] = asyncio.Queue()
