"""Files that we keep for ourselves beside a config: what may be read from them, and how they are written.

The rules: a file is used only if it belongs to us, or to whoever owns the folder of the config, who could put
another config there anyway. It is a file and nothing else, and no larger than its limit. What is written
never goes where a symbolic link leads, nor into a folder of somebody else. No commit takes it in.

The front desk reads with this, so it imports the smallest parts of the standard library and nothing more.
"""

import errno
import os
import sys

from mcpzip.system.bounded_read import open_regular, read_limited, too_large

STRANGERS = "it belongs to another user"
"""What the refusal of a file says of it."""

_KEPT = (".json", ".bin")  # the ends of the names of all that we keep
_NAMED = 6
_REMEDY = "delete what you don't know, or make it yours (chown)"
_IGNORE = b"# mcpzip keeps this folder to itself: nothing in it belongs into a repository.\n*\n"


def read_state(path: str, limit: int) -> bytes:
    """The content of a file of ours at ``path``, which stands in a folder beside the config.

    A symbolic link is followed to a file of ours. Never waits for a pipe. Raises OSError: EFBIG for more than
    ``limit`` bytes, PermissionError for a file, or a folder, of another user.
    """
    handle, held = _open(path)
    try:
        if held > limit:
            raise too_large(limit, path)
        return read_limited(lambda size: os.read(handle, size), limit, path)
    finally:
        os.close(handle)


def first_bytes(path: str, size: int) -> bytes:
    """The first ``size`` bytes of a file of ours at ``path``, as `read_state`; b"" where there is none."""
    try:
        handle, _ = _open(path)
    except OSError:
        return b""
    try:
        return os.read(handle, size)
    except OSError:
        return b""
    finally:
        os.close(handle)


def write_state(path: str, data: bytes, limit: int = sys.maxsize) -> None:
    """Put ``data`` at ``path``, in a folder beside the config, in one step.

    A symbolic link at ``path`` is replaced, not followed. Raises OSError: EFBIG for more than ``limit``
    bytes, which `read_state` would refuse.
    """
    from mcpzip.system.files import make_folders, write_atomic

    if len(data) > limit:
        raise too_large(limit, path)
    folder = os.path.dirname(os.path.abspath(path))
    make_folders(folder)
    _refuse_a_strangers(os.stat(folder), folder, path)
    write_gitignore(folder)
    write_atomic(path, data, follow=False)


def foreign_files(folder: str) -> tuple[str, ...]:
    """What is to be said of files in ``folder``, or of itself, that are another user's: one sentence."""
    try:
        if _is_a_strangers(os.stat(folder), folder):
            return (f"{folder} belongs to another user and is not used; {_REMEDY}.",)
        names = [name for name in sorted(os.listdir(folder)) if _of_a_stranger(name, folder)]
    except OSError:
        return ()
    if not names:
        return ()
    named = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return (f"{folder}: {named} belong to another user and are not used; {_REMEDY}.",)


def write_gitignore(folder: str) -> None:
    """See to it that no commit takes in what stands in ``folder``: an ignore file, unless there is one."""
    path = os.path.join(folder, ".gitignore")
    if os.path.lexists(path):
        return
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return  # another process was faster, or whoever writes the next file here will say what is wrong
    with os.fdopen(handle, "wb") as file:
        file.write(_IGNORE)


def _open(path: str) -> "tuple[int, int]":
    """A file of ours, open for reading, and its size in bytes. Raises OSError."""
    handle, state = open_regular(path)
    try:
        folder = os.path.dirname(os.path.abspath(path))
        _refuse_a_strangers(state, folder, path)
        _refuse_a_strangers(os.stat(folder), folder, path)
    except BaseException:
        os.close(handle)
        raise
    return handle, state.st_size


def _of_a_stranger(name: str, folder: str) -> bool:
    try:
        return name.endswith(_KEPT) and _is_a_strangers(os.stat(os.path.join(folder, name)), folder)
    except OSError:
        return False


def _refuse_a_strangers(state: os.stat_result, folder: str, path: str) -> None:
    if _is_a_strangers(state, folder):
        raise PermissionError(errno.EPERM, STRANGERS, path)


def _is_a_strangers(state: os.stat_result, folder: str) -> bool:
    """Whether what stands in ``folder``, or is it, is neither ours nor the config folder's owner's."""
    # Windows tells an owner by no number: there a file has the rights of the user's own folder.
    if sys.platform == "win32" or state.st_uid == os.geteuid():
        return False
    return state.st_uid != os.stat(os.path.dirname(os.path.abspath(folder))).st_uid
