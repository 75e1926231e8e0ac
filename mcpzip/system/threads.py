"""Work off the event loop that never delays our exit.

The rule: what runs here may be abandoned at any moment. `asyncio.to_thread` waits for its threads when the
loop closes; these threads are daemons, and nobody waits.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], name: str) -> T:
    """``work()``, run in a thread of its own. Cancelling abandons it."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not outcome.done():
            set_outcome()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            done, failure = outcome.set_exception, error
            report = lambda: done(failure)  # noqa: E731
        else:
            report = lambda: outcome.set_result(result)  # noqa: E731
        try:
            loop.call_soon_threadsafe(settle, report)
        except RuntimeError:  # the loop is closed: nobody wants to know any more
            pass

    threading.Thread(target=run, name=name, daemon=True).start()
    return await outcome
