"""The signals that end a process in order: SIGTERM, SIGINT, and SIGHUP unless whoever started it ignores it
(``nohup``).
"""

import asyncio
import signal
import sys
from contextlib import suppress


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


def cancel_on_interrupt() -> None:
    """Has the first SIGINT cancel the running task, between two steps of its loop, and the next one raise
    KeyboardInterrupt.

    The handler of `asyncio.run` cancels in the middle of a step: what is being set just then is cancelled
    already, and the loop prints the traceback of an InvalidStateError. On Windows it stays.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        if task is not None:
            task.cancel()

    with suppress(NotImplementedError):  # Windows
        loop.add_signal_handler(signal.SIGINT, interrupt)
