"""File locks that exclude other processes, tasks and threads.

The operating system holds the lock, so it is released even if its holder is killed (`file_lock`). The lock
file is never removed, so that nobody can wait for the lock of a file that no longer exists. Waiting in
`locked` does not block the event loop, and a cancelled wait does not leave a lock behind.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from mcpzip.system.backoff import Backoff
from mcpzip.system.file_lock import lock_file

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
"""Seconds between attempts: we poll, because waiting in the kernel can't be cancelled."""


@asynccontextmanager
async def locked(path: str, timeout: float) -> AsyncIterator[None]:
    """Holds the lock at ``path``, waiting up to ``timeout`` seconds for it. Not reentrant.

    Raises TimeoutError; OSError if the file can't be made or the file system has no locks.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    backoff = _pauses()
    while (held := lock_file(path)) is None:
        left = deadline - loop.time()
        if left <= 0:
            raise _timeout_error(path, timeout)
        await asyncio.sleep(min(left, backoff.next()))
    try:
        yield
    finally:
        os.close(held)


@contextmanager
def locked_blocking(path: str, timeout: float) -> Iterator[None]:
    """As `locked`, for a thread: waiting blocks it."""
    deadline = time.monotonic() + timeout
    backoff = _pauses()
    while (held := lock_file(path)) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _timeout_error(path, timeout)
        time.sleep(min(left, backoff.next()))
    try:
        yield
    finally:
        os.close(held)


def hold(path: str) -> Callable[[], None]:
    """Takes the lock at ``path``, which nobody else wants. Returns the function that releases it, at once and
    from any thread. Raises TimeoutError if it is held already, else OSError.
    """
    held = lock_file(path)
    if held is None:
        raise _timeout_error(path, 0)
    return partial(os.close, held)


@contextmanager
def locked_if_free(path: str) -> Iterator[bool]:
    """Holds the lock at ``path`` if it is free. Yields whether it was. Raises OSError."""
    held = lock_file(path)
    try:
        yield held is not None
    finally:
        if held is not None:
            os.close(held)


def _pauses() -> Backoff:
    return Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=0.5)


def _timeout_error(path: str, timeout: float) -> TimeoutError:
    return TimeoutError(f"{path} was locked by another process or task for {timeout:g} s; try again.")
