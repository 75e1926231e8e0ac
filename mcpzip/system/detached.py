"""Starts a process that outlives this one and belongs to no terminal.

The rules:

1. POSIX: two forks and a session of its own. Windows: no console, a process group of its own, and outside of
   the job of this process, if that allows it (CreateProcess, "Process Creation Flags").
2. Its output is a pipe that only this process reads. The end of the pipe says that the process has ended or
   that it no longer uses the pipe.
3. It gets no other descriptor of this process: a pipe or a lock that this process got from its own parent
   would otherwise stay open for as long as the other one runs.

`server.shim` imports this module, so it imports only small modules of the standard library.
"""

import os
import sys

from mcpzip.system.startup_io import make_nonblocking

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpzip.system.pumps import InputPump


class Output:
    """The output of a process, non-blocking."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        make_nonblocking(descriptor)

    def fileno(self) -> int:
        """What can be waited for."""
        return self._descriptor

    def read(self) -> bytes:
        """What has arrived; b"" at the end. Raises BlockingIOError if nothing has."""
        return os.read(self._descriptor, 100)

    def close(self) -> None:
        """Reads no more."""
        os.close(self._descriptor)


def start_detached(
    argv: "list[str]", folder: str, environment: "Mapping[str, str]", *, fork: bool
) -> "Output | InputPump":
    """Starts ``argv``, whose first word is the path of a program, in ``folder``, with ``environment``. Its
    input is empty, its stderr is dropped. Returns its output. fork: must not be asked for while other threads
    run. Raises OSError.
    """
    if sys.platform == "win32" or not fork:
        return _spawn(argv, folder, environment)
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
    return Output(output)


def _spawn(argv: "list[str]", folder: str, environment: "Mapping[str, str]") -> "InputPump":
    """Starts it without a fork."""
    import subprocess

    from mcpzip.system.pumps import InputPump

    flags = [0]
    if sys.platform == "win32":
        alone = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        flags = [alone | subprocess.CREATE_BREAKAWAY_FROM_JOB, alone]
    for flag in flags:
        try:
            child = subprocess.Popen(
                argv,
                cwd=folder if os.path.isdir(folder) else None,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=flag,
                start_new_session=sys.platform != "win32",
            )
            break
        except PermissionError:  # its job allows no process outside
            if flag == flags[-1]:
                raise
    assert child.stdout is not None
    output = InputPump(os.dup(child.stdout.fileno()))
    child.stdout.close()
    child.returncode = 0  # else Popen warns that it is still running
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
