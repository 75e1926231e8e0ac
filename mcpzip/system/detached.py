"""Starts a process that outlives this one and belongs to no terminal.

The rules:

1. Its output is a pipe that only this process reads. The end of the pipe says that the process has ended or
   that it no longer uses the pipe.
2. It gets no other descriptor of this process: a pipe or a lock that this process got from its own parent
   would otherwise stay open for as long as the other one runs.

`server.shim` imports this module, so it imports only small modules of the standard library.
"""

import errno
import os
import sys

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping


def start_detached(argv: "list[str]", folder: str, environment: "Mapping[str, str]") -> int:
    """Starts ``argv``, whose first word is the path of a program, in ``folder``, with ``environment``. Its
    input is empty, its stderr is dropped. Returns the descriptor from which its output can be read. Must not
    be called while other threads run. Raises OSError.
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
        _become(argv, folder, theirs, environment)
    os.close(theirs)
    try:
        os.waitpid(child, 0)
    except ChildProcessError:  # our parent had us ignore SIGCHLD, so that nobody has to wait
        pass
    return output


def _become(argv: "list[str]", folder: str, output: int, environment: "Mapping[str, str]") -> None:
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
        _close_others()
        try:
            os.chdir(folder)
        except OSError:
            os.chdir("/")
        os.execve(argv[0], argv, environment)
    finally:
        os._exit(127)


def _close_others() -> None:
    """Closes all descriptors but the first three."""
    try:
        others = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:  # not mounted
        others = list(range(3, 256))
    for number in others:
        if number > 2:
            try:
                os.close(number)
            except OSError:  # that of the listing itself
                pass
