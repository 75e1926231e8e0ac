"""Files and folders that are nobody's but their owner's.

The rule: what belongs to another user is not used, and what others could read is closed to them, as soon as
it is met. Windows tells neither by a mode: there a file has the rights of the user's own folder, which others
can't read.
"""

import errno
import os
import stat
import sys
from dataclasses import dataclass, field
from typing import Literal

from mcpzip.system.bounded_read import open_regular, read_limited
from mcpzip.system.files import make_folders
from mcpzip.system.state_files import STRANGERS

Rights = Literal["private", "closed", "open"]
"""Nobody else's; nobody else's from now on; open to others, and the file system doesn't let us close it."""


@dataclass(frozen=True, slots=True)
class Private:
    """What a file held. target: what its name is a symbolic link to, None for a file of its own."""

    data: bytes = field(repr=False)
    rights: Rights
    target: str | None


def read_private(path: str, limit: int) -> Private:
    """The content of a file of ours at ``path``, which is closed to others.

    A symbolic link is followed to a file of ours, and nothing about that file is changed. Raises OSError: for
    more than ``limit`` bytes, for what isn't a file, and for what belongs to another user.
    """
    target = os.path.realpath(path) if os.path.islink(path) else None
    handle, state = open_regular(path, getattr(os, "O_NOFOLLOW", 0) if target is None else 0)
    try:
        _refuse_a_strangers(state, path)
        rights: Rights = "private" if target is not None else _close_to_others(handle, state)
        data = read_limited(lambda size: os.read(handle, size), limit, path)
        return Private(data, rights, target)
    finally:
        os.close(handle)


def private_folder(path: str, *, make: bool) -> Rights:
    """See to it that the folder at ``path``, which may be a symbolic link to one, is nobody else's.

    make: whether it is made where it is missing. Raises OSError: also for what isn't a folder, and for one of
    another user.
    """
    if make:
        make_folders(path)
    state = os.stat(path)
    if not stat.S_ISDIR(state.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
    _refuse_a_strangers(state, path)
    return _close_to_others(path, state)


def _refuse_a_strangers(state: os.stat_result, path: str) -> None:
    if sys.platform != "win32" and state.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, STRANGERS, path)


def _close_to_others(place: int | str, state: os.stat_result) -> Rights:
    if sys.platform == "win32" or not state.st_mode & 0o077:
        return "private"
    try:
        os.chmod(place, stat.S_IMODE(state.st_mode) & ~0o077)
    except OSError:
        return "open"
    return "open" if os.stat(place).st_mode & 0o077 else "closed"
