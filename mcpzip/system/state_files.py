"""Reads and writes mcpzip's own files in a folder beside the config.

A file or folder is used only if it belongs to this user, or to the owner of the config's folder, who could
replace the config anyway. Only regular files up to a size limit are read. Writing replaces a symbolic link
instead of following it, and refuses a folder of another user. A ``.gitignore`` keeps them out of commits.

`server.early_handshake` imports this module at every start, so it imports only small modules of the standard
library.
"""

import errno
import os
import sys

from mcpzip.system.bounded_read import open_regular, read_limited, too_large

ANOTHER_USERS = "it belongs to another user"
"""The reason in the error for a refused file."""

_EXTENSIONS = (".json", ".bin")  # of all files that mcpzip writes
_SHOWN = 6  # file names in a warning
_REMEDY = "delete what you don't know, or make it yours (chown)"
_GITIGNORE = b"# Files of mcpzip: none of them belongs in a repository.\n*\n"


def read_state(path: str, limit: int) -> bytes:
    """The content of the file at ``path``, in a folder beside the config.

    A symbolic link is followed, and its target is checked. Never blocks on a pipe. Raises OSError: EFBIG for
    more than ``limit`` bytes, PermissionError for a file or folder of another user.
    """
    handle, file_size = open_state(path)
    try:
        if file_size > limit:
            raise too_large(limit, path)
        return read_limited(lambda size: os.read(handle, size), limit, path)
    finally:
        os.close(handle)


def read_state_from(path: str, offset: int, size: int) -> bytes:
    """At most ``size`` bytes of the file at ``path`` from ``offset`` on, by the rules of `read_state`. Raises
    OSError.
    """
    handle, _ = open_state(path)
    try:
        os.lseek(handle, offset, os.SEEK_SET)
        chunks: list[bytes] = []
        while size > 0 and (chunk := os.read(handle, min(size, 1 << 20))):
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)
    finally:
        os.close(handle)


def first_bytes(path: str, size: int) -> bytes:
    """The first ``size`` bytes of the file at ``path``, by the rules of `read_state`; b"" after an error."""
    try:
        handle, _ = open_state(path)
    except OSError:
        return b""
    try:
        return os.read(handle, size)
    except OSError:
        return b""
    finally:
        os.close(handle)


def write_state(path: str, data: bytes, limit: int = sys.maxsize, *, durable: bool = True) -> None:
    """Writes ``data`` atomically to ``path``, in a folder beside the config.

    durable: see `write_atomic`. A symbolic link at ``path`` is replaced, not followed. Raises OSError: EFBIG
    for more than ``limit`` bytes, which `read_state` would refuse, PermissionError for a folder of another
    user.
    """
    from mcpzip.system.files import make_folders, write_atomic

    if len(data) > limit:
        raise too_large(limit, path)
    folder = os.path.dirname(os.path.abspath(path))
    make_folders(folder)
    _check_owner(os.stat(folder), folder, path)
    write_gitignore(folder)
    write_atomic(path, data, follow=False, durable=durable)


def foreign_files(folder: str) -> tuple[str, ...]:
    """A warning (at most one) if ``folder``, or files of ours in it, belong to another user."""
    try:
        if _is_foreign(os.stat(folder), folder):
            return (f"{folder} belongs to another user and is not used; {_REMEDY}.",)
        names = [name for name in sorted(os.listdir(folder)) if _is_foreign_file(name, folder)]
    except OSError:
        return ()
    if not names:
        return ()
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return (f"{folder}: {shown} belong to another user and are not used; {_REMEDY}.",)


def write_gitignore(folder: str) -> None:
    """Writes a ``.gitignore`` that keeps the files in ``folder`` out of commits, unless there is one."""
    path = os.path.join(folder, ".gitignore")
    if os.path.lexists(path):
        return
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return  # another process made it; any other problem, the next write in this folder reports
    with os.fdopen(handle, "wb") as file:
        file.write(_GITIGNORE)


def open_state(path: str) -> "tuple[int, int]":
    """Opens a file of ours for reading. Returns its descriptor and its size in bytes. Raises OSError."""
    handle, state = open_regular(path)
    try:
        folder = os.path.dirname(os.path.abspath(path))
        _check_owner(state, folder, path)
        _check_owner(os.stat(folder), folder, path)
    except BaseException:
        os.close(handle)
        raise
    return handle, state.st_size


def _is_foreign_file(name: str, folder: str) -> bool:
    try:
        return name.endswith(_EXTENSIONS) and _is_foreign(os.stat(os.path.join(folder, name)), folder)
    except OSError:
        return False


def _check_owner(state: os.stat_result, folder: str, path: str) -> None:
    if _is_foreign(state, folder):
        raise PermissionError(errno.EPERM, ANOTHER_USERS, path)


def _is_foreign(state: os.stat_result, folder: str) -> bool:
    """Whether ``folder``, or a file in it, belongs neither to this user nor to the config folder's owner."""
    # Windows has no owner in ``stat``; there a file inherits the access rights of the user's folder.
    if sys.platform == "win32" or state.st_uid == os.geteuid():
        return False
    return state.st_uid != os.stat(os.path.dirname(os.path.abspath(folder))).st_uid
