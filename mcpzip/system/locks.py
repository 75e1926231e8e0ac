"""File locks that exclude other processes, tasks and threads.

The operating system holds the lock, so it is released even if its holder is killed. The lock file is never
removed, so that nobody can wait for the lock of a file that no longer exists. Waiting in `locked` does not
block the event loop, and a cancelled wait does not leave a lock behind.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from filelock import FileLock, Timeout

from mcpzip.system.backoff import Backoff

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
"""Seconds between attempts: we poll, because waiting in the kernel can't be cancelled."""


@asynccontextmanager
async def locked(path: str, timeout: float) -> AsyncIterator[None]:
    """Holds the lock at ``path``, waiting up to ``timeout`` seconds for it. Not reentrant.

    Raises TimeoutError; OSError if the file can't be made or the file system has no locks.
    """
    lock = _lock(path)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=0.5)
    while not _try_acquire(lock):
        left = deadline - loop.time()
        if left <= 0:
            raise _timeout_error(path, timeout)
        await asyncio.sleep(min(left, backoff.next()))
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked_blocking(path: str, timeout: float) -> Iterator[None]:
    """As `locked`, for a thread: waiting blocks it."""
    lock = _lock(path)
    try:
        lock.acquire(timeout=timeout, poll_interval=_FIRST_PAUSE)
    except Timeout:
        raise _timeout_error(path, timeout) from None
    try:
        yield
    finally:
        lock.release()


def hold(path: str) -> Callable[[], None]:
    """Takes the lock at ``path``, which nobody else wants. Returns the function that releases it, at once and
    from any thread. Raises TimeoutError if it is held already, else OSError.
    """
    lock = _lock(path)
    if not _try_acquire(lock):
        raise _timeout_error(path, 0)
    return lock.release


@contextmanager
def locked_if_free(path: str) -> Iterator[bool]:
    """Holds the lock at ``path`` if it is free. Yields whether it was. Raises OSError."""
    lock = _lock(path)
    held = _try_acquire(lock)
    try:
        yield held
    finally:
        if held:
            lock.release()


def _lock(path: str) -> FileLock:
    return FileLock(path, mode=0o600, thread_local=False, preserve_lock_file=True)


def _try_acquire(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def _timeout_error(path: str, timeout: float) -> TimeoutError:
    return TimeoutError(f"{path} was locked by another process or task for {timeout:g} s; try again.")
