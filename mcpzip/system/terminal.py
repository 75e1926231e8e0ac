"""Reads lines that the user types at the terminal.

The terminal's settings are restored afterwards. A terminal that is in use by another job is not read.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CHUNK = 1 << 16
_ERASE = (0x7F, 0x08)  # Delete, Backspace
_KILL_LINE = 0x15  # Ctrl-U


def is_interactive(fd: int) -> bool:
    """Whether ``fd`` is a terminal of which we are the foreground job; POSIX stops a background job that
    reads from its terminal.
    """
    if not os.isatty(fd):
        return False
    if sys.platform == "win32":
        return True
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # it is not the controlling terminal of this session
        return False


@contextmanager
def long_lines(fd: int) -> Iterator[None]:
    """Lifts the limit on the length of a line at the terminal ``fd``: by default 1,024 bytes on macOS and
    4,096 on Linux. Input is still echoed, and Ctrl-C still works. Does nothing if ``fd`` is no terminal, and
    on Windows.
    """
    if sys.platform == "win32":  # a line at its console can have 8 KiB
        yield
        return
    import termios

    try:
        before = termios.tcgetattr(fd)
    except termios.error:
        yield
        return
    raw = termios.tcgetattr(fd)
    raw[3] &= ~termios.ICANON
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    termios.tcsetattr(fd, termios.TCSANOW, raw)
    try:
        yield
    finally:
        try:
            termios.tcsetattr(fd, termios.TCSANOW, before)
        except termios.error:  # the terminal was closed
            pass


class LineInput:
    """The lines that are typed into or piped to ``fd``.

    Uses `os.read`, because a thread that still waits in a read of ``sys.stdin`` would hold its lock at exit.
    """

    def __init__(self, fd: int) -> None:
        self._fd, self._buffer = fd, b""

    def next(self) -> str | None:
        """The next line without its line break, or None at the end of the input. Blocks."""
        while b"\n" not in self._buffer:
            try:
                chunk = os.read(self._fd, _CHUNK)
            except OSError:
                chunk = b""
            if not chunk:
                last, self._buffer = self._buffer, b""
                return _edited(last) if last else None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return _edited(line)


def _edited(typed: bytes) -> str:
    """The line that results from ``typed``: each erase key in it deletes a byte, each kill key the line so
    far. The terminal itself does not process these keys inside `long_lines`.
    """
    line = bytearray()
    for key in typed:
        if key in _ERASE:
            del line[-1:]
        elif key == _KILL_LINE:
            line.clear()
        else:
            line.append(key)
    return line.decode("utf-8", "replace")
