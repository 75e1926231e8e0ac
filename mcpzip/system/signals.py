"""SIGTERM and SIGINT."""

import asyncio
import signal


def stop_on_signals(done: asyncio.Event) -> None:
    """Has SIGTERM and SIGINT set ``done``, on the running loop, instead of ending the process."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, done.set)
        except NotImplementedError:  # Windows: Python runs the handler between two steps of the loop
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(done.set))
