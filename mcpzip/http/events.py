"""The events of a response that is an event stream (HTML standard, "Server-sent events")."""

import asyncio
from collections.abc import AsyncGenerator

import httpx

from mcpzip.http.bodies import pieces
from mcpzip.model.limits import MESSAGE, RETRY_LONGEST, RETRY_SHORTEST
from mcpzip.wire.event_stream import EventReader, StreamEvent

_STEP = 8 * 1024
"""Bytes of a stream that are cut into events at a time."""
_TURN = 200
"""Lines and events of a stream after which others have their turn."""
_AN_EVENT = 10
"""What an event counts in lines."""


def is_event_stream(response: httpx.Response) -> bool:
    """Whether its body is one."""
    return content_type(response) == "text/event-stream"


def content_type(response: httpx.Response) -> str:
    """The media type of its body, in small letters, without parameters; "" when it has none."""
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


async def events(response: httpx.Response) -> AsyncGenerator[StreamEvent, None]:
    """The events of ``response`` as they come. The event loop has its turn, however they are cut.

    Raises EventTooLongError for one longer than `limits.MESSAGE`: no later one can be found then; and what
    `bodies.pieces` raises.
    """
    reader, rested = EventReader(MESSAGE), 0
    async for piece in pieces(response):
        for at in range(0, len(piece), _STEP):
            for event in reader.feed(piece[at : at + _STEP]):
                yield event
                del event  # it may be large, and the next may be hours away
                reader.work += _AN_EVENT
                if reader.work - rested > _TURN:
                    rested = reader.work
                    await asyncio.sleep(0)
            if reader.work - rested > _TURN:
                rested = reader.work
                await asyncio.sleep(0)


class Cursor:
    """How far a stream was read, so that it can be resumed.

    id: of its last event that had one, as `Last-Event-ID` repeats it; b"" without any. retry: seconds after
    which the server wants it opened again, within limits; None when it doesn't say.
    """

    def __init__(self) -> None:
        self.id = b""
        self.retry: float | None = None

    def note(self, event: StreamEvent) -> str:
        """``event`` was read. Returns its type, "message" where it says none."""
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
    """Whether it comes out of a header as it was put in (RFC 9110, 5.5)."""
    return value == value.strip() and all(byte >= 0x20 and byte != 0x7F for byte in value)
