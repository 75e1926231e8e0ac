"""Work off the event loop that never delays our exit.

The rule: what runs here may be abandoned at any moment. `asyncio.to_thread` waits for its threads when the
loop closes; these threads are daemons, and nobody waits. Each work has a thread of its own, however many
there are: it is for what waits (a disk, a keyring, an import) and for what we begin ourselves, one at a time.
What clients have us compute is for `mcpzip.proxy.workers`.
"""

import _thread
import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_thread(
    work: Callable[[], T], name: str, unwanted: Callable[[T], object] = lambda result: None
) -> T:
    """``work()``, run in a thread of its own. Cancelling abandons it. unwanted: is given, in any thread, what
    it gives all the same.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None], otherwise: Callable[[], object]) -> None:
        if outcome.done():
            otherwise()
        else:
            set_outcome()

    def run() -> None:
        otherwise: Callable[[], object]
        try:
            result = work()
        except BaseException as error:
            report, otherwise = partial(outcome.set_exception, error), _nothing
        else:
            report, otherwise = partial(outcome.set_result, result), partial(unwanted, result)
        try:
            loop.call_soon_threadsafe(settle, report, otherwise)
        except RuntimeError:  # the loop is closed: nobody wants to know any more
            otherwise()

    begin_thread(threading.Thread(target=run, name=name, daemon=True))
    try:
        return await outcome
    except asyncio.CancelledError:  # perhaps in the very moment it was done
        if outcome.done() and not outcome.cancelled() and outcome.exception() is None:
            unwanted(outcome.result())
        raise


def begin_thread(thread: threading.Thread) -> None:
    """Starts ``thread``, which is a daemon, without a moment's waiting."""
    # `start` waits until the thread runs: on a busy machine long, and here that would be the event loop.
    _thread.start_new_thread(_begin, (thread,))


def _begin(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError:  # the interpreter is about to end, and nobody waits
        pass


def _nothing() -> None:
    pass
