"""Files that others read while we write them.

The rule: a file we write is whole or it is the old one – never half, never someone else's to read. So it is
written beside its place, flushed to the disk, and renamed over it.
"""

import os
import re
import time
from collections.abc import Callable

from mcpzip.system.bounded_read import read_limited

_REPLACE_MAY_BE_REFUSED = os.name == "nt"
_ATTEMPTS, _PAUSE = 10, 0.01
"""Windows refuses to replace or remove a file that another process has open, if only a virus scanner: about
0.5 s in all.
"""

_DRAFT = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_STALE = 60.0
"""Seconds after which nobody is still writing a draft."""


def write_atomic(path: str, data: bytes, mode: int = 0o600, *, follow: bool = True) -> None:
    """Put ``data`` at ``path`` in one step. Missing folders are made, for their owner only (0700).

    follow: whether what a symbolic link points at is replaced, and not the link. Raises OSError, and then
    ``path`` is as it was and nothing else is left behind. ``mode`` is what Unix calls it; Windows keeps the
    folder's own rights.
    """
    path = os.path.realpath(path) if follow else os.path.abspath(path)
    folder = os.path.dirname(path)
    make_folders(folder)
    draft = os.path.join(folder, f".{os.path.basename(path)[:100]}.{os.urandom(6).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, mode)  # the umask may have taken bits away
        _insist(lambda: os.replace(draft, path))
    except BaseException:
        _remove(draft)
        raise
    _sync_folder(folder)


def read_bytes_limited(path: str, limit: int) -> bytes:
    """The content of ``path``, which may be a pipe. Raises OSError; EFBIG for more than ``limit`` bytes."""
    with open(path, "rb") as file:
        return read_limited(file.read, limit, path)


def remove_file(path: str) -> bool:
    """Remove ``path``, a symbolic link itself; whether there was one. Raises OSError."""
    try:
        _insist(lambda: os.unlink(path))
    except FileNotFoundError:
        return False
    return True


def remove_drafts(folder: str, age: float = _STALE) -> None:
    """Remove what writers that were killed left in ``folder``, if it is older than ``age`` seconds."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in filter(_DRAFT.fullmatch, names):
        draft = os.path.join(folder, name)
        try:
            if os.lstat(draft).st_mtime < time.time() - age:
                os.unlink(draft)
        except OSError:
            pass  # somebody else removed it, or is writing it


def others_may_read(path: str) -> bool:
    """Whether users besides its owner may read ``path``, as far as its mode tells: on Windows it doesn't.

    Raises OSError.
    """
    return os.name != "nt" and bool(os.stat(path).st_mode & 0o044)


def make_folders(folder: str) -> None:
    """Make ``folder``, and those above it that are missing, for their owner only (0700). Raises OSError."""
    missing: list[str] = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:
            if not os.path.isdir(each):  # made by another process meanwhile is fine; a file there is not
                raise


def _insist(change: Callable[[], None]) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            change()
            return
        except PermissionError:
            if not _REPLACE_MAY_BE_REFUSED or attempt == _ATTEMPTS:
                raise
            time.sleep(_PAUSE * attempt)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it was never made, or it was renamed; the first error is the one to tell


def _sync_folder(folder: str) -> None:
    """Make the rename outlive a power cut, where a folder can be synced: not on Windows, nor every share."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
