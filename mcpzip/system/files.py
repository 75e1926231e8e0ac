"""Atomic writes, and other file operations that differ between systems.

A reader sees the old file or the new one, never a part. So the data goes to a temporary file in the same
folder, is flushed to the disk if it must survive a power cut, and is renamed over the target.
"""

import os
import re
import time
from collections.abc import Callable

from mcpzip.system.bounded_read import read_limited

_REPLACE_MAY_BE_REFUSED = os.name == "nt"
_ATTEMPTS, _PAUSE = 10, 0.01
"""Windows refuses to replace or remove a file that another process has open, for example a virus scanner. All
attempts together take about 0.5 s.
"""

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_STALE = 60.0
"""Seconds after which a temporary file is left over from a killed process."""


def write_atomic(
    path: str, data: bytes, mode: int = 0o600, *, follow: bool = True, durable: bool = True
) -> None:
    """Writes ``data`` to ``path`` atomically. Missing folders are made, for their owner only (0700).

    mode: the permission bits; ignored by Windows, where the file inherits the folder's. follow: whether to
    replace the target of a symbolic link instead of the link. durable: whether the data is on the disk when
    this returns, which takes several milliseconds; if not, a power cut may leave the file empty. Raises
    OSError; ``path`` is then unchanged and no temporary file is left.
    """
    path = os.path.realpath(path) if follow else os.path.abspath(path)
    folder = os.path.dirname(path)
    make_folders(folder)
    temporary = os.path.join(folder, f".{os.path.basename(path)[:100]}.{os.urandom(6).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(temporary, flags, mode), "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.chmod(temporary, mode)  # the umask may have taken bits away
        _retry_if_refused(lambda: os.replace(temporary, path))
    except BaseException:
        _remove(temporary)
        raise
    if durable:
        _sync_folder(folder)


def read_bytes_limited(path: str, limit: int) -> bytes:
    """The content of the file or pipe at ``path``. Raises OSError; EFBIG for more than ``limit`` bytes."""
    with open(path, "rb") as file:
        return read_limited(file.read, limit, path)


def remove_file(path: str) -> bool:
    """Removes the file or symbolic link ``path``. Returns whether it existed. Raises OSError."""
    try:
        _retry_if_refused(lambda: os.unlink(path))
    except FileNotFoundError:
        return False
    return True


def remove_drafts(folder: str, age: float = _STALE) -> None:
    """Removes temporary files of `write_atomic` from ``folder`` that are older than ``age`` seconds."""
    for temporary in find_drafts(folder, age):
        try:
            os.unlink(temporary)
        except OSError:
            pass  # another process removed it


def find_drafts(folder: str, age: float = _STALE) -> list[str]:
    """The paths of the files that `remove_drafts` removes."""
    found = []
    try:
        for name in filter(_TEMPORARY.fullmatch, os.listdir(folder)):
            temporary = os.path.join(folder, name)
            if os.lstat(temporary).st_mtime < time.time() - age:
                found.append(temporary)
    except OSError:
        pass  # there is no such folder, or another process has just removed one of them
    return found


def others_may_read(path: str) -> bool:
    """Whether the mode of ``path`` lets its group or others read it; False on Windows. Raises OSError."""
    return os.name != "nt" and bool(os.stat(path).st_mode & 0o044)


def make_folders(folder: str) -> None:
    """Makes ``folder`` and its missing parents, for their owner only (0700). Raises OSError."""
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
            if not os.path.isdir(each):  # another process may have made the folder, but not a file
                raise


def _retry_if_refused(change: Callable[[], None]) -> None:
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
        pass  # it was never made or is renamed already; the caller raises the first error


def _sync_folder(folder: str) -> None:
    """Makes the rename survive a power cut. Windows and some network shares cannot sync a folder."""
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
