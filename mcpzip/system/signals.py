"""The signals that end a process in order: SIGTERM, SIGINT, and SIGHUP unless whoever started it ignores it
(``nohup``).
"""

import asyncio
import signal
import sys


def stop_on_signals(done: asyncio.Event) -> None:
    """Has these signals set ``done``, on the running loop, instead of ending the process."""
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGTERM, signal.SIGINT]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        try:
            loop.add_signal_handler(number, done.set)
        except NotImplementedError:  # Windows: Python runs the handler between two steps of the loop
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(done.set))
