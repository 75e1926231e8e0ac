"""Reads server-sent events from a response (HTML standard, "Server-sent events")."""

import asyncio
from collections.abc import AsyncGenerator

import httpx

from mcpzip.http.bodies import pieces
from mcpzip.model.limits import MESSAGE, RETRY_LONGEST, RETRY_SHORTEST
from mcpzip.wire.event_stream import EventReader, StreamEvent

_CHUNK = 8 * 1024
"""Bytes of a stream that are parsed at a time."""
_TURN = 200
"""Lines after which other tasks run."""
_EVENT_WORK = 10
"""The number of lines that an event counts as."""


def is_event_stream(response: httpx.Response) -> bool:
    """Whether the body is an event stream, by its Content-Type."""
    return content_type(response) == "text/event-stream"


def content_type(response: httpx.Response) -> str:
    """The media type of the body, in lower case, without parameters; "" if there is none."""
    value: str = response.headers.get("content-type", "")
    return value.partition(";")[0].strip().lower()


async def events(response: httpx.Response) -> AsyncGenerator[StreamEvent, None]:
    """Yields the events of ``response``. Lets other tasks run, however small the events are.

    Raises EventTooLongError for an event longer than `limits.MESSAGE`, after which the stream can't be read
    on; and what `bodies.pieces` raises.
    """
    reader, paused_at = EventReader(MESSAGE), 0
    async for piece in pieces(response):
        for start in range(0, len(piece), _CHUNK):
            for event in reader.feed(piece[start : start + _CHUNK]):
                yield event
                del event  # frees its memory; the next event may come hours later
                reader.work += _EVENT_WORK
                if reader.work - paused_at > _TURN:
                    paused_at = reader.work
                    await asyncio.sleep(0)
            if reader.work - paused_at > _TURN:
                paused_at = reader.work
                await asyncio.sleep(0)


class Cursor:
    """The position in a stream from which it can be resumed.

    id: the last event id, for the header ``Last-Event-ID``; b"" if there was none. retry: the server's
    reconnection time in seconds, within limits; None if the server sent none.
    """

    def __init__(self) -> None:
        self.id = b""
        self.retry: float | None = None

    def note(self, event: StreamEvent) -> str:
        """Updates the position with ``event``. Returns the event's type, by default "message"."""
        kind = "message"
        for line in event.fields:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"event" and value:
                kind = value.decode("utf-8", "replace")
            elif name == b"id" and _fits_header(value):
                self.id = value
            elif name == b"retry" and value.isdigit() and len(value) <= 18:
                self.retry = min(max(int(value) / 1000, RETRY_SHORTEST), RETRY_LONGEST)
        return kind


def _fits_header(value: bytes) -> bool:
    """Whether a header carries ``value`` unchanged (RFC 9110, 5.5)."""
    return value == value.strip() and all(byte >= 0x20 and byte != 0x7F for byte in value)
