"""Backpressure for a client on stdio that doesn't read.

A response is never dropped; instead nothing is read from a client that doesn't read its responses. A
notification is dropped if too much waits.
"""

import asyncio

from mcpzip.model import limits
from mcpzip.system.pipes import Reader, Writer

LOOK = 0.2
"""Seconds between two checks whether a client that isn't read has left."""


class StdioOutput:
    """Frames for one client. reader: of its input; None when that has ended."""

    def __init__(self, writer: Writer, limit: int = limits.WAITING) -> None:
        self.reader: Reader | None = None
        self._writer, self._limit = writer, limit
        self._draining: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether as much waits as may."""
        return self._writer.waiting >= self._limit

    def send(self, frame: bytes) -> None:
        """Sends a response or a request."""
        self._writer.write(frame)
        if self._writer.waiting >= self._limit and self._draining is None and self.reader is not None:
            self.reader.pause()
            self._draining = asyncio.create_task(self._resume_reading(self.reader))

    def send_if_room(self, frame: bytes) -> None:
        """Sends a notification, unless too much waits."""
        if self._writer.waiting + len(frame) <= self._limit:
            self._writer.write(frame)

    def close(self) -> None:
        """The client's input has ended."""
        self.reader = None
        if self._draining is not None:
            self._draining.cancel()

    async def _resume_reading(self, reader: Reader) -> None:
        """Reads from the client again once it has read what waits, or has left."""
        while not reader.hung_up():
            try:
                async with asyncio.timeout(LOOK):
                    await self._writer.drain()
                break
            except TimeoutError:
                continue
        self._draining = None
        reader.resume()
