"""The way out to a client on stdio, which may not read.

The rules: an answer is never dropped, so a client that doesn't read its answers is not read either; what is
told besides is dropped when too much waits.
"""

import asyncio

from mcpzip.model import limits
from mcpzip.system.pipes import Reader, Writer

LOOK = 0.2
"""Seconds between two looks at whether a client that isn't read has gone."""


class Outlet:
    """Frames for one client. reader: of what it says; None when that is at its end."""

    def __init__(self, writer: Writer, limit: int = limits.WAITING) -> None:
        self.reader: Reader | None = None
        self._writer, self._limit = writer, limit
        self._resting: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether as much waits as may."""
        return self._writer.waiting >= self._limit

    def say(self, frame: bytes) -> None:
        """Sends an answer, or a question."""
        self._writer.write(frame)
        if self.full and self._resting is None and self.reader is not None:
            self.reader.pause()
            self._resting = asyncio.create_task(self._rest(self.reader))

    def tell(self, frame: bytes) -> None:
        """Sends what may be missed, unless too much waits."""
        if self._writer.waiting + len(frame) <= self._limit:
            self._writer.write(frame)

    def close(self) -> None:
        """The client is read no more."""
        self.reader = None
        if self._resting is not None:
            self._resting.cancel()

    async def _rest(self, reader: Reader) -> None:
        """Lets the client speak again once it has read what waits, or has gone."""
        while not reader.hung_up():
            try:
                async with asyncio.timeout(LOOK):
                    await self._writer.drain()
                break
            except TimeoutError:
                continue
        self._resting = None
        reader.resume()
