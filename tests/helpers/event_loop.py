"""Calls from the event loop itself, as those about sockets and timers are."""

import asyncio
from collections.abc import Callable


async def outside_of_tasks(call: Callable[[], None]) -> None:
    """Calls it where no task runs, as the event loop calls what a socket has data for."""
    called, outcome = asyncio.Event(), list[BaseException]()

    def run() -> None:
        try:
            call()
        except BaseException as error:
            outcome.append(error)
        called.set()

    asyncio.get_running_loop().call_soon(run)
    await called.wait()
    for error in outcome:
        raise error
