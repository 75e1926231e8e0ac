"""What is left of a task when nobody waits for it any more, and what is done to its end all the same."""

import asyncio
from collections.abc import Coroutine
from typing import Any


def retrieve_exception(future: "asyncio.Future[Any]") -> None:
    """A done callback: its failure is no "exception was never retrieved" when whoever waited is gone."""
    if not future.cancelled():
        future.exception()


async def cancel(future: "asyncio.Future[Any] | None") -> None:
    """Cancels ``future`` and waits until it has ended; its result or exception is dropped."""
    if future is None:
        return
    if not future.done():
        future.cancel()
        await asyncio.wait({future})
    retrieve_exception(future)


async def run_to_completion(work: Coroutine[Any, Any, None]) -> None:
    """``work``, which a cancellation doesn't break off: it is raised when that is done."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        retrieve_exception(task)
        raise cancelled
    await task
