"""Kernel locks of files: each ends with the process that holds it, however that ends.

The rule: it imports only small modules of the standard library, because `server.shim` imports it at every
start. Waiting for a lock is in `locks`.
"""

import os
import sys


def lock_file(path: str) -> int | None:
    """Locks the file ``path``, which is made for its owner only (0600) if there is none. Returns the
    descriptor that holds the lock until it is closed; None if another one has it, also of this process.
    Raises OSError.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            _lock(descriptor)
            if _is_at(descriptor, path):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the file was replaced in the meantime


def _lock(descriptor: int) -> None:
    """Raises BlockingIOError if another descriptor has the lock, other OSError."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError as error:  # Windows says so, and network file systems of others may
        raise BlockingIOError from error


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
