"""Files that others read while we write them.

The rule: a file we write is whole or it is the old one – never half, never someone else's to read. So it is
written beside its place, flushed to the disk, and renamed over it.
"""

import errno
import os
import time

_REPLACE_MAY_BE_REFUSED = os.name == "nt"
_ATTEMPTS, _PAUSE = 10, 0.01
"""Windows refuses to replace a file that another process has open, if only a virus scanner: about 0.5 s in
all.
"""

_PIECE = 1 << 22


def write_atomic(path: str, data: bytes, mode: int = 0o600) -> None:
    """Put ``data`` at ``path`` in one step. Missing folders are made, for their owner only (0700).

    A symbolic link is followed: what it points at is replaced, not the link. Raises OSError, and then
    ``path`` is as it was and nothing else is left behind. ``mode`` is what Unix calls it; Windows keeps the
    folder's own rights.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    _make_folders(folder)
    draft = os.path.join(folder, f".{os.path.basename(path)[:100]}.{os.urandom(6).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, mode)  # the umask may have taken bits away
        _replace(draft, path)
    except BaseException:
        _remove(draft)
        raise
    _sync_folder(folder)


def read_bytes_limited(path: str, limit: int) -> bytes:
    """The content of ``path``, which may be a pipe. Raises OSError; EFBIG for more than ``limit`` bytes."""
    pieces: list[bytes] = []
    size = 0
    with open(path, "rb") as file:
        # In pieces: asked for ``limit`` bytes at once, Python reserves that much before it reads the first.
        while piece := file.read(_PIECE):
            size += len(piece)
            if size > limit:
                raise OSError(errno.EFBIG, f"larger than {limit:,} bytes", path)
            pieces.append(piece)
    return b"".join(pieces)


def others_may_read(path: str) -> bool:
    """Whether users besides its owner may read ``path``, as far as its mode tells: on Windows it doesn't.

    Raises OSError.
    """
    return os.name != "nt" and bool(os.stat(path).st_mode & 0o044)


def _make_folders(folder: str) -> None:
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


def _replace(draft: str, path: str) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            os.replace(draft, path)
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
