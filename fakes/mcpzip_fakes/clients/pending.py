"""The outcome of something that takes time.

The rule: a test waits at most ``patience`` seconds for anything, and the error says for what.
"""

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class ErrorAnswer(Exception):
    """A request was answered with a JSON-RPC error: code, message, data (None without)."""

    def __init__(self, code: object, message: object, data: object = None) -> None:
        self.code, self.message, self.data = code, message, data
        super().__init__(f"{message} ({code})")


class ConnectionEnded(Exception):
    """The connection ended before the answer."""


class Pending(Generic[T]):
    """An outcome: ``await`` it in a coroutine, or call `result`. id: of the request, None if it is none.

    Raises ErrorAnswer, ConnectionEnded, or TimeoutError after ``patience`` seconds.
    """

    def __init__(self, future: Future[T], what: str, patience: float, id: object = None) -> None:
        self.future, self.what, self.patience, self.id = future, what, patience, id

    def result(self) -> T:
        """Wait for it, and return it. Blocks the thread."""
        try:
            return self.future.result(self.patience)
        except TimeoutError:
            if self.future.done():
                raise
            raise self._late() from None

    def done(self) -> bool:
        """Whether it is there."""
        return self.future.done()

    def __await__(self) -> Generator[object, None, T]:
        return self._waited().__await__()

    async def _waited(self) -> T:
        waits = asyncio.wrap_future(self.future)
        done, _ = await asyncio.wait((waits,), timeout=self.patience)
        if not done:
            raise self._late()
        return waits.result()

    def _late(self) -> TimeoutError:
        return TimeoutError(f"{self.what}: nothing came within {self.patience:g} s")
