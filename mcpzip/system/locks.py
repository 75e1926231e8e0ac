"""Locks that hold between processes, between tasks and between threads.

The rule: a lock is the operating system's, on a file that is never removed. So it ends with its holder,
however that ends, and nobody waits for a lock on a file that has gone. Waiting never blocks the event loop,
and who gives up waiting holds nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from filelock import FileLock, Timeout

from mcpzip.system.backoff import Backoff

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
"""Seconds between attempts. Only a wait in the kernel could be shorter, and that can't be cancelled."""


@asynccontextmanager
async def locked(path: str, timeout: float) -> AsyncIterator[None]:
    """Holds the lock at ``path``, waiting up to ``timeout`` seconds for it. It is not reentrant.

    Raises TimeoutError, and OSError where the file can't be made or the file system has no locks.
    """
    lock = _lock(path)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=0.5)
    while not _taken(lock):
        left = deadline - loop.time()
        if left <= 0:
            raise _too_late(path, timeout)
        await asyncio.sleep(min(left, backoff.next()))
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked_blocking(path: str, timeout: float) -> Iterator[None]:
    """`locked` for a thread that may block."""
    lock = _lock(path)
    try:
        lock.acquire(timeout=timeout, poll_interval=_FIRST_PAUSE)
    except Timeout:
        raise _too_late(path, timeout) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked_if_free(path: str) -> Iterator[bool]:
    """Holds the lock at ``path`` if nobody else does; gives whether it is held. Raises OSError."""
    lock = _lock(path)
    held = _taken(lock)
    try:
        yield held
    finally:
        if held:
            lock.release()


def _lock(path: str) -> FileLock:
    return FileLock(path, mode=0o600, thread_local=False, preserve_lock_file=True)


def _taken(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def _too_late(path: str, timeout: float) -> TimeoutError:
    return TimeoutError(f"{path} was locked by another process or task for {timeout:g} s; try again.")
