"""Writes the audit log to files beside each other, which several processes share by a lock."""

import os

import msgspec

from mcpzip.policy.audit_destination import Make
from mcpzip.policy.audit_files import LONGEST_LINE, Head, decoded, files, full_file, hash_of, read_head
from mcpzip.system.files import make_folders
from mcpzip.system.locks import locked_blocking
from mcpzip.system.private_files import private_folder
from mcpzip.system.state_files import write_gitignore

FILE_SIZE = 8 << 20
"""Bytes after which the next file begins."""
FULL_FILES = 15
"""Full files that are kept. The oldest is removed."""
LOCK_TIMEOUT = 5.0
"""Seconds to wait for another process that writes."""


class FileWriter:
    """The log at ``path``; see `audit_destination.Destination`."""

    waits = False

    def __init__(self, path: str, *, is_ours: bool) -> None:
        """is_ours: whether its folder is one of mcpzip's own."""
        self.place = self._path = path
        self._is_ours = is_ours

    def append(self, make: Make) -> None:
        """See `Destination.append`. All lines are written, or none."""
        folder = os.path.dirname(self._path)
        if self._is_ours:
            private_folder(folder, make=True)
            write_gitignore(folder)
        else:
            make_folders(folder)
        with locked_blocking(f"{self._path}.lock", LOCK_TIMEOUT):
            handle = _open(self._path)
            try:
                head = self._head(handle)
                lines, n, previous = make(head.n, head.hash)
                data = b"".join(line + b"\n" for line in lines)
                if head.size and head.size + len(data) > FILE_SIZE:
                    os.close(handle)
                    handle = self._next_file(head)
                _append(handle, data, head.size)
                self._write_head(Head(n, previous, head.first, head.begins, head.size + len(data)))
            finally:
                os.close(handle)

    def close(self) -> None:
        """There is nothing to close."""

    def _head(self, handle: int) -> Head:
        """Where the log stands: as ``.head`` says, or if that doesn't fit to the file, as the file says."""
        size = os.fstat(handle).st_size
        head = read_head(self._path)
        if head is not None and head.size == size:
            return head
        found = head or Head()
        os.lseek(handle, max(0, size - LONGEST_LINE), os.SEEK_SET)
        end = os.read(handle, LONGEST_LINE)
        if end and not end.endswith(b"\n"):  # a process was killed while it wrote
            _append(handle, b"\n", size)
            size += 1
        for text in reversed(end.splitlines()):
            line = decoded(text)
            if line is not None:
                if line.n > found.n:  # a process was killed before it wrote the head
                    found = Head(line.n, hash_of(text), found.first, found.begins)
                break
        return Head(found.n, found.hash, found.first, found.begins if size else found.n + 1, size)

    def _next_file(self, head: Head) -> int:
        """Begins a new file, and removes the oldest of too many. Changes ``head``. Raises OSError."""
        os.replace(self._path, full_file(self._path, head.begins))
        head.begins, head.size = head.n + 1, 0
        full = [file for file in files(self._path) if file != self._path]
        for file in full[:-FULL_FILES]:
            os.unlink(file)
        head.first = int(full[-FULL_FILES:][0].rpartition(".")[2])
        return _open(self._path)

    def _write_head(self, head: Head) -> None:
        handle = os.open(f"{self._path}.head", os.O_WRONLY | os.O_CREAT | _FLAGS, 0o600)
        try:
            data = msgspec.json.encode(head)
            os.write(handle, data)
            os.ftruncate(handle, len(data))
        finally:
            os.close(handle)


_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)


def _append(handle: int, data: bytes, size: int) -> None:
    """Appends ``data`` to a file of ``size`` bytes: all of it or nothing. Raises OSError."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError:
        os.ftruncate(handle, size)
        raise
