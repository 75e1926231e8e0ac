"""Runs work in daemon threads that do not delay our exit.

The event loop waits for the threads of `asyncio.to_thread` when it closes; these threads may be abandoned at
any moment. Each call starts a thread, without a limit. So this is for blocking work that we start ourselves
(a disk, a keyring, an import); work that clients cause runs in `mcpzip.proxy.workers`.
"""

import _thread
import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


def _ignore(result: object) -> None:
    pass


async def in_thread(work: Callable[[], T], name: str, unwanted: Callable[[T], object] = _ignore) -> T:
    """Runs ``work`` in a thread of its own and returns its result. A cancelled caller abandons the thread.

    unwanted: called in any thread with the result that an abandoned thread returns.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None], abandon: Callable[[], object]) -> None:
        if outcome.done():
            abandon()
        else:
            set_outcome()

    def run() -> None:
        abandon: Callable[[], object]
        try:
            result = work()
        except BaseException as error:
            set_outcome, abandon = partial(outcome.set_exception, error), partial(_ignore, error)
        else:
            set_outcome, abandon = partial(outcome.set_result, result), partial(unwanted, result)
        try:
            loop.call_soon_threadsafe(settle, set_outcome, abandon)
        except RuntimeError:  # the loop is closed
            abandon()

    begin_thread(threading.Thread(target=run, name=name, daemon=True))
    try:
        return await outcome
    except asyncio.CancelledError:  # possibly after the result was set
        if outcome.done() and not outcome.cancelled() and outcome.exception() is None:
            unwanted(outcome.result())
        raise


def begin_thread(thread: threading.Thread) -> None:
    """Starts a daemon ``thread`` without blocking.

    `threading.Thread.start` waits until the thread runs, which on a busy machine would block the event loop.
    """
    _thread.start_new_thread(_start, (thread,))


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down
        pass
