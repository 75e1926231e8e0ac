"""Reads mcpzip's own large files where they are, instead of keeping a copy of them in memory.

The rules: such a file is never changed, but replaced by another one (`files.write_atomic`); who has it open
still has the old content. Where an open file can't be replaced, on Windows, it is read at once instead.
"""

import os
import sys
from zlib import crc32

from mcpzip.system.bounded_read import read_limited, too_large
from mcpzip.system.state_files import open_state

_MAPPED_FROM = 16 << 20
"""Bytes of a file that `map_state` maps. To read a smaller one takes a few milliseconds."""
_CHUNK = 1 << 20


class StateFile:
    """A file that is read in parts, as they are needed. Safe between threads."""

    def __init__(self, path: str, limit: int) -> None:
        """Opens the file at ``path``, by the rules of `read_state`. Raises OSError."""
        self._handle = -1
        self._data = b""
        handle, self.size = open_state(path)
        try:
            if self.size > limit:
                raise too_large(limit, path)
            if sys.platform == "win32":
                self._data = read_limited(lambda most: os.read(handle, most), limit, path)
                self.size = len(self._data)
            else:
                self._handle, handle = handle, -1
        finally:
            if handle >= 0:
                os.close(handle)

    def __del__(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to ``end``; fewer if the file was cut off. Raises OSError."""
        if sys.platform == "win32":
            return self._data[start:end]
        return os.pread(self._handle, max(end - start, 0), start)

    def whole(self) -> bytes:
        """The whole content. Raises OSError."""
        return b"".join([self.read(start, start + _CHUNK) for start in range(0, self.size, _CHUNK)])

    def checksum(self) -> int:
        """The CRC-32 of the content. Raises OSError."""
        found = 0
        for start in range(0, self.size, _CHUNK):
            found = crc32(self.read(start, start + _CHUNK), found)
        return found


def map_state(path: str, limit: int) -> memoryview:
    """The content of the file at ``path``, by the rules of `read_state`: mapped if it is large, so that only
    what is used of it takes memory. Raises OSError.
    """
    handle, size = open_state(path)
    try:
        if size > limit:
            raise too_large(limit, path)
        if size >= _MAPPED_FROM and sys.platform != "win32":
            import mmap  # most files are smaller

            try:
                return memoryview(mmap.mmap(handle, size, access=mmap.ACCESS_READ))
            except (OSError, ValueError):
                pass  # some file systems can't
        return memoryview(read_limited(lambda most: os.read(handle, most), limit, path))
    finally:
        os.close(handle)


def release(data: memoryview) -> None:
    """Gives the memory of ``data`` (`map_state`) back until it is used again. Nothing happens to data that
    was not mapped, and where the system can't do that.
    """
    if sys.platform != "win32" and not isinstance(data.obj, bytes):
        import mmap

        if isinstance(data.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            data.obj.madvise(mmap.MADV_DONTNEED)  # it stays in the system's cache
