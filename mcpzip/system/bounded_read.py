"""Reading a file no further than a limit.

The rule: only a regular file is opened, and opening never waits for a pipe. The front desk reads with this,
so it imports nothing but the smallest parts of the standard library.
"""

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PIECE = 1 << 22


def open_regular(path: str, flags: int = 0) -> "tuple[int, os.stat_result]":
    """The regular file at ``path``, open for reading: its descriptor and its state. Raises OSError.

    flags: of `os.open`, in addition to those that every read needs.
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
    """All that ``read`` gives of the file at ``path``. Raises OSError; EFBIG for more than ``limit`` bytes.

    read: takes a number of bytes, and gives as many at most.
    """
    pieces: list[bytes] = []
    size = 0
    # In pieces: asked for ``limit`` bytes at once, Python reserves that much before it reads the first.
    while piece := read(_PIECE):
        size += len(piece)
        if size > limit:
            raise too_large(limit, path)
        pieces.append(piece)
    return b"".join(pieces)


def too_large(limit: int, path: str) -> OSError:
    """The error for a file at ``path`` that has more than ``limit`` bytes."""
    return OSError(errno.EFBIG, f"larger than {limit:,} bytes", path)
