"""Tasks that nobody awaits, and work that a cancellation must not interrupt."""

import asyncio
from collections.abc import Coroutine
from typing import Any


def retrieve_exception(future: "asyncio.Future[Any]") -> None:
    """A done callback that avoids the log message "exception was never retrieved"."""
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
    """Runs ``work`` to its end. A cancellation is raised after that, in place of an exception of ``work``."""
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


def root_cause(error: BaseException) -> BaseException:
    """The error to report from an exception group: any other is preferred to a cancellation."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [root_cause(inner) for inner in error.exceptions]
    return next((leaf for leaf in leaves if not isinstance(leaf, asyncio.CancelledError)), leaves[0])
