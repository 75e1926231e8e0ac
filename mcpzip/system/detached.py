"""Starts a process that outlives this one and belongs to no terminal.

The rule: its output is a pipe that only this process reads. The end of the pipe says that the process has
ended or that it no longer uses the pipe.

`server.shim` imports this module, so it imports only small modules of the standard library.
"""

import errno
import os
import sys


def start_detached(argv: "list[str]", folder: str) -> int:
    """Starts ``argv``, whose first word is the path of a program, in ``folder``, with this process's
    environment. Its input is empty, its stderr is dropped. Returns the descriptor from which its output can
    be read. Must not be called while other threads run. Raises OSError.
    """
    if sys.platform == "win32":  # nothing is started so there: see `local_socket.AVAILABLE`
        raise OSError(errno.ENOSYS, "there is no fork on this system")
    output, theirs = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(output)
        os.close(theirs)
        raise
    if child == 0:
        _become(argv, folder, theirs)
    os.close(theirs)
    os.waitpid(child, 0)
    return output


def _become(argv: "list[str]", folder: str, output: int) -> None:
    """In the child: becomes the program, as a grandchild that nobody has to wait for. Never returns."""
    try:
        if sys.platform != "win32":
            os.setsid()
            if os.fork():
                os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(null, 2)
        try:
            os.chdir(folder)
        except OSError:
            os.chdir("/")
        os.execv(argv[0], argv)
    finally:
        os._exit(127)
