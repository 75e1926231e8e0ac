"""A terminal that remembers what a command wrote to it, and what of that is a control sequence."""

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mcpzip.cli import console
from mcpzip.cli.commands import run

OURS = re.compile(
    r"\x1b\[(?!38;5;77m)[0-9;]*m"  # colours of ours
    r"|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r(?=\x1b\[2K|\n|\x1b\[1A)"  # a bar that moves on its own line
)
"""The control sequences that we write; the colour of the hostile texts is none of them."""


def controls(written: str) -> list[str]:
    """What of ``written`` acts, and we didn't write."""
    rest = OURS.sub("", written)
    return [sign for sign in rest if not sign.isprintable() and sign not in "\n\t\xa0\u200d\u3000"]


def plain(written: str) -> str:
    """The words of ``written`` without our control sequences."""
    return OURS.sub("", written)


@contextmanager
def terminal(written: list[str], columns: int = 2000) -> Iterator[None]:
    """stdout and stderr are a terminal in here; what it was sent is then in ``written``."""
    import fcntl
    import pty
    import struct
    import termios
    import tty

    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    got = bytearray()

    def read() -> None:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # Linux says so of a terminal that nobody holds any more
                return
            if not data:
                return
            got.extend(data)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    before = sys.stdout, sys.stderr
    with (
        os.fdopen(os.dup(theirs), "w", encoding="utf-8") as sys.stdout,
        os.fdopen(theirs, "w", encoding="utf-8") as sys.stderr,
        pytest.MonkeyPatch.context() as patch,
    ):
        for each in (console._out, console._err):  # they looked when they were made
            patch.setattr(each, "is_interactive", True)
            patch.setattr(each, "_width", columns)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            streams = sys.stdout, sys.stderr
            sys.stdout, sys.stderr = before
            for stream in streams:
                stream.close()
    reader.join(10)
    os.close(ours)
    written.append(got.decode("utf-8", "surrogateescape"))


def shown(*argv: str, run: Callable[[list[str]], int] = run, columns: int = 2000) -> tuple[int, str]:
    """The exit code of a command, and all that it writes to a terminal."""
    written: list[str] = []
    with terminal(written, columns):
        code = run(list(argv))
    return code, written[0]
