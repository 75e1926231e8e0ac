"""A command on a terminal, with a person who answers its question."""

import os
import select
import sys

from helpers.driver import PATIENCE, command, environment


def answered(words: tuple[str, ...], question: bytes, answer: bytes) -> str:
    """What a command prints on a terminal, where ``question`` is answered."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, command(*words), environment())
    shown, replied = b"", False
    try:
        while select.select([terminal], [], [], PATIENCE)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:  # the command has ended
                break
            if not data:
                break
            shown += data
            if not replied and question in shown:
                os.write(terminal, answer)
                replied = True
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert replied, shown
    return shown.decode()
