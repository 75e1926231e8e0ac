"""The events of the HTTP fake's streams, for clients that resume (2025-11-25
`basic/transports/streamable-http`, "Resumability and Redelivery").
"""

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage

RETRY = 500
"""Milliseconds after which a client resumes (``retry``)."""


class MemoryEventStore(EventStore):
    """All events since the fake started. The id of an event is its number, from 1."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """See the SDK."""
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """See the SDK."""
        last = int(last_event_id) if last_event_id.isdecimal() else 0
        if not 0 < last <= len(self._events):
            return None
        stream = self._events[last - 1][0]
        for number, (whose, message) in enumerate(self._events[last:], last + 1):
            if whose == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream
