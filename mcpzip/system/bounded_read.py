"""Reading a file up to a size limit.

`open_regular` opens regular files only, and never blocks on a named pipe. `server.early_handshake` imports
this module at every start, so it imports only small modules of the standard library.
"""

import errno
import os
import stat

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 22


def open_regular(path: str, flags: int = 0) -> "tuple[int, os.stat_result]":
    """Opens the regular file at ``path`` for reading. Returns its descriptor and its status. Raises OSError.

    flags: more flags for `os.open`.
    """
    flags |= os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, flags)
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "not a file", path)
    except BaseException:
        os.close(handle)
        raise
    return handle, state


def read_limited(read: "Callable[[int], bytes]", limit: int, path: str) -> bytes:
    """The rest of the file at ``path``. Raises OSError; EFBIG for more than ``limit`` bytes.

    read: returns at most as many bytes as its argument says, b"" at the end of the file.
    """
    chunks: list[bytes] = []
    size = 0
    # In chunks, because Python allocates all the bytes that a read asks for before it reads.
    while chunk := read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise too_large(limit, path)
        chunks.append(chunk)
    return b"".join(chunks)


def too_large(limit: int, path: str) -> OSError:
    """The error for a file at ``path`` of more than ``limit`` bytes."""
    return OSError(errno.EFBIG, f"larger than {limit:,} bytes", path)
