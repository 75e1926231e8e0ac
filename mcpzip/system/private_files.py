"""Files and folders that only their owner can read or write.

A file or folder of another user is refused. One that others have access to is closed to them (chmod) when it
is opened. Windows has no owner or mode in ``stat``; there a file inherits the access rights of the user's
folder, which other users can't read.
"""

import errno
import os
import stat
import sys
from typing import Literal

import msgspec

from mcpzip.system.bounded_read import open_regular, read_limited
from mcpzip.system.files import make_folders
from mcpzip.system.state_files import ANOTHER_USERS

Rights = Literal["private", "closed", "open"]
"""private: others had no access. closed: we have just removed their access. open: they have access, because
the file system does not let us remove it.
"""


class PrivateFile(msgspec.Struct, frozen=True):
    """A file that was read. target: the path that its name links to, None if that is no symbolic link."""

    data: bytes
    rights: Rights
    target: str | None

    def __repr__(self) -> str:
        """Without what may be secret."""
        return f"PrivateFile({len(self.data)} bytes, {self.rights!r})"


def read_private(path: str, limit: int) -> PrivateFile:
    """Reads the file of this user at ``path``, and closes it to others.

    A symbolic link is followed; its target must be this user's too, but keeps its access rights. Raises
    OSError: also for more than ``limit`` bytes, for anything but a regular file, and for a file of another
    user.
    """
    target = os.path.realpath(path) if stat.S_ISLNK(os.lstat(path).st_mode) else None
    handle, state = open_regular(path, getattr(os, "O_NOFOLLOW", 0) if target is None else 0)
    try:
        _check_owner(state, path)
        rights: Rights = "private" if target is not None else _close_to_others(handle, state)
        data = read_limited(lambda size: os.read(handle, size), limit, path)
        return PrivateFile(data, rights, target)
    finally:
        os.close(handle)


def private_folder(path: str, *, make: bool) -> Rights:
    """Closes the folder at ``path``, or the folder that it links to, to others.

    make: whether to make a missing folder. Raises OSError: also for what isn't a folder, and for a folder of
    another user.
    """
    if make:
        make_folders(path)
    state = os.stat(path)
    if not stat.S_ISDIR(state.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
    _check_owner(state, path)
    return _close_to_others(path, state)


def _check_owner(state: os.stat_result, path: str) -> None:
    if sys.platform != "win32" and state.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, ANOTHER_USERS, path)


def _close_to_others(file: int | str, state: os.stat_result) -> Rights:
    if sys.platform == "win32" or not state.st_mode & 0o077:
        return "private"
    try:
        os.chmod(file, stat.S_IMODE(state.st_mode) & ~0o077)
    except OSError:
        return "open"
    return "open" if os.stat(file).st_mode & 0o077 else "closed"
