"""A line from the person at the terminal.

The rule: a terminal is left as it was found, and one that is another job's is not touched.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PIECE = 1 << 16
_RUB_OUT = (0x7F, 0x08)
_START_AGAIN = 0x15  # Ctrl-U


def is_interactive(fd: int) -> bool:
    """Whether somebody sits at the terminal ``fd`` and we are in its foreground.

    POSIX: a job in the background that read from it would be stopped.
    """
    if not os.isatty(fd):
        return False
    if sys.platform == "win32":
        return True
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # not the terminal of this session
        return False


@contextmanager
def long_lines(fd: int) -> Iterator[None]:
    """Has the terminal ``fd`` take lines of any length: by itself it takes 1,024 bytes on macOS and 4,096 on
    Linux. What is typed is still shown, and Ctrl-C still works. Anything else, and Windows, is left alone.
    """
    if sys.platform == "win32":  # whose consoles take 8 KiB
        yield
        return
    import termios

    try:
        before = termios.tcgetattr(fd)
    except termios.error:
        yield
        return
    now = termios.tcgetattr(fd)
    now[3] &= ~termios.ICANON
    now[6][termios.VMIN], now[6][termios.VTIME] = 1, 0
    termios.tcsetattr(fd, termios.TCSANOW, now)
    try:
        yield
    finally:
        try:
            termios.tcsetattr(fd, termios.TCSANOW, before)
        except termios.error:  # it was closed
            pass


class LineInput:
    """The lines typed into, or piped to, ``fd``. Read with `os.read`: a thread may be left waiting in it."""

    def __init__(self, fd: int) -> None:
        self._fd, self._rest = fd, b""

    def next(self) -> str | None:
        """The next line without its end, or None when there are no more. Blocks."""
        while b"\n" not in self._rest:
            try:
                piece = os.read(self._fd, _PIECE)
            except OSError:
                piece = b""
            if not piece:
                last, self._rest = self._rest, b""
                return _edited(last) if last else None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return _edited(line)


def _edited(typed: bytes) -> str:
    """What is left after the keys that take back, which a terminal of `long_lines` leaves to us."""
    kept = bytearray()
    for key in typed:
        if key in _RUB_OUT:
            del kept[-1:]
        elif key == _START_AGAIN:
            kept.clear()
        else:
            kept.append(key)
    return kept.decode("utf-8", "replace")
