"""A command on a terminal, with a person who answers its questions."""

import os
import select
import sys
from collections.abc import Callable, Sequence

from helpers.driver import PATIENCE, command, environment


def at_a_terminal(words: Sequence[str], reply: Callable[[bytes], bytes | None], **variables: str) -> str:
    """What a command prints on a terminal. reply: what is typed after all that was shown, or None."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, command(*words), environment(**variables))
    shown = b""
    try:
        while select.select([terminal], [], [], PATIENCE)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:  # the command has ended
                break
            if not data:
                break
            shown += data
            if (typed := reply(shown)) is not None:
                os.write(terminal, typed)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return shown.decode()


def answered(words: tuple[str, ...], question: bytes, answer: bytes) -> str:
    """What a command prints on a terminal, where ``question`` is answered."""
    left = [answer]
    shown = at_a_terminal(words, lambda so_far: left.pop() if left and question in so_far else None)
    assert not left, shown
    return shown
