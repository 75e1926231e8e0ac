"""Sockets to which only processes of the same user on the same machine can connect.

The rules:

1. POSIX: a Unix domain socket in a folder that only its owner can enter. Folder and socket must belong to
   this user, and each end checks the user of the other end.
2. A kernel lock decides who listens. It ends with the process that holds it, however that ends, so a socket
   whose lock is free is left over from a process that was killed.
3. Windows has no such socket in Python, and some file systems have none. There the file at the same path
   says where on loopback the process listens, and only who can read it is served (`loopback`).

`server.shim` imports this module at every start, so it imports only small modules of the standard library.
"""

import _socket  # the part of `socket` that is in C: importing all of it takes 2.5 ms of every start
import errno
import os
import stat
import sys

from mcpzip.system.file_lock import lock_file

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    import socket
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from mcpzip.system.loopback_listener import Listener

    Listening = socket.socket | Listener

Connection = _socket.socket
"""One end of a connection: a `socket.socket` less what that adds in Python, such as ``with``."""
SWITCH = "MCPZIP_DAEMON"
"""The environment variable that, set to ``loopback``, has a daemon listen as on Windows."""
HAS_NO_UNIX_SOCKETS = sys.platform == "win32" or os.environ.get(SWITCH) == "loopback"
"""Whether a daemon that is started listens on loopback, and pipes can't be waited for."""
LONGEST_PATH = 100
"""Bytes of a socket's path that every system takes: Linux 107, macOS 103 (unix(7), unix(4))."""
BACKLOG = 1_024
"""Connections that wait while a daemon is being loaded or is busy; the system may allow fewer."""


def connect(path: str) -> "Connection | None":
    """A non-blocking connection to the process that listens at ``path``; None if none does.

    Raises PermissionError if folder, socket or process belong to another user; OSError if the system refuses
    a socket. In a folder that others can enter, nobody of ours listens.
    """
    try:
        if not _is_private(os.path.dirname(path)):
            return None
        if not _is_socket(path):
            from mcpzip.system import loopback

            return loopback.connect(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if sys.platform == "win32":
        return None
    connection = Connection(_socket.AF_UNIX, _socket.SOCK_STREAM)
    # A process that is suspended takes no more connections than fit its backlog.
    connection.setblocking(False)
    try:
        connection.connect(path)
        check_peer(connection)
    except (ConnectionRefusedError, FileNotFoundError, BlockingIOError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def listen(path: str) -> "Listening":
    """Listens at ``path``, in place of whatever socket or symbolic link is there. Only for the holder of the
    lock. Makes the folder. Raises OSError.
    """
    _make_folder(os.path.dirname(path))
    if sys.platform == "win32" or HAS_NO_UNIX_SOCKETS:
        from mcpzip.system.loopback_listener import Listener

        return Listener(path, BACKLOG)
    import socket

    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
        os.chmod(path, 0o600)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


def watch(listening: "Listening", loop: "AbstractEventLoop", ready: "Callable[[], object] | None") -> None:
    """Has ``loop`` call ``ready`` when ``listening.accept()`` gives a connection; None: no more."""
    if not isinstance(listening, _socket.socket):
        listening.watch(None if ready is None else lambda: loop.call_soon_threadsafe(ready))
    elif ready is None:
        loop.remove_reader(listening.fileno())
    else:
        loop.add_reader(listening.fileno(), ready)


def can_listen_in(folder: str) -> bool:
    """Whether a socket in ``folder``, which need not exist yet, can be reached by this user only. Raises
    OSError if it is another user's, or no folder.
    """
    try:
        return _is_private(folder)
    except FileNotFoundError:
        return True


def identity(path: str) -> "tuple[int, int, int] | None":
    """What tells the socket at ``path`` from one that another process made there; None if there is none. The
    time belongs to it, because a new file often gets the number of the one that was removed.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns)


def take_lock(path: str) -> int | None:
    """`lock_file`, after making the folder of ``path``."""
    _make_folder(os.path.dirname(path))
    return lock_file(path)


def remove_left_over(path: str, lock_path: str) -> bool:
    """Removes what a process left at ``path`` that was killed. Returns False if a process has the lock.
    Raises OSError.
    """
    lock = take_lock(lock_path)
    if lock is None:
        return False
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    finally:
        os.close(lock)
    return True


def check_peer(connection: Connection) -> None:
    """Raises PermissionError if the process at the other end is another user's, OSError if it has gone. One
    on loopback has shown that it can read the file of this user (`loopback`).
    """
    if connection.family == _socket.AF_INET:
        return
    user = _peer_user(connection)
    if sys.platform != "win32" and user is not None and user != os.geteuid():
        raise PermissionError(errno.EPERM, "the process at the other end belongs to another user")


def _peer_user(connection: Connection) -> int | None:
    """The user id of the process at the other end; None if the system doesn't tell, so that only the folder
    keeps others out.
    """
    # Linux: struct ucred (unix(7)): process, user and group. macOS and BSD: struct xucred (LOCAL_PEERCRED at
    # level SOL_LOCAL, unix(4)): a version, then the user. All are ints.
    level, option, size = _socket.SOL_SOCKET, getattr(_socket, "SO_PEERCRED", None), 12
    if option is None:
        level, option, size = 0, 1, 76
    try:
        found = connection.getsockopt(level, option, size)
    except OSError:
        return None
    return int.from_bytes(found[4:8], sys.byteorder) if len(found) >= 8 else None


def _make_folder(folder: str) -> None:
    """Makes ``folder`` for its owner only, or closes it to others. Raises OSError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if sys.platform != "win32":
        found = os.lstat(folder)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & 0o077:
            os.chmod(folder, 0o700)
    if not _is_private(folder):
        raise PermissionError(errno.EPERM, "other users can enter the folder", folder)


def _is_private(folder: str) -> bool:
    """Whether only this user can enter ``folder``. Raises PermissionError if it is another user's, OSError if
    it is no folder.
    """
    found = os.lstat(folder)
    if sys.platform == "win32":
        return True
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", folder)
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "the folder belongs to another user", folder)
    return not found.st_mode & 0o077


def _is_socket(path: str) -> bool:
    """Whether there is a socket; False for the file of a `loopback`. Raises FileNotFoundError for anything
    else, PermissionError if it is another user's.
    """
    found = os.lstat(path)
    is_socket = stat.S_ISSOCK(found.st_mode)
    if not is_socket and not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(errno.ENOENT, "not a socket", path)
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "the socket belongs to another user", path)
    return is_socket
