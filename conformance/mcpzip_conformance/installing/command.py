"""A package manager's command: run to its end, its output in a log, and the end of the log in the error."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from mcpzip_conformance.errors import InstallError
from mcpzip_conformance.processes import end_group
from mcpzip_conformance.transcript import printable

_LOG_LINES = 12
"""Lines of a log that are shown."""


def run(command: Sequence[str], env: Mapping[str, str], log: IO[bytes]) -> int:
    """The exit code of ``command``. Its process doesn't outlive this call."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with signals_deferred():  # Ctrl-C after the start and before the assignment would lose the process
            process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=os.name == "posix",
            )
        return process.wait()
    except BaseException:
        if process is not None:
            end_group(process.pid, still_running=True)
            process.wait()
        raise


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Delays Python's signal handlers to the end of the block, because one that raises, such as that of
    Ctrl-C, can interrupt the block between any two steps. Python runs handlers in the main thread only;
    in other threads this does nothing.

    It doesn't block signals (`signal.pthread_sigmask`), because a process started in the block would inherit
    that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    with ExitStack() as afterwards:  # in reverse order, each though another one raises
        afterwards.callback(_raise, arrived)
        for valid in signal.valid_signals():
            handler = signal.getsignal(valid)
            if callable(handler):
                afterwards.callback(signal.signal, valid, handler)
                signal.signal(valid, lambda number, _: arrived.append(number))
        yield


def _raise(numbers: Sequence[int]) -> None:
    with ExitStack() as signals:
        for number in reversed(numbers):
            signals.callback(signal.raise_signal, number)


def failure(name: str, what: str, log: Path) -> InstallError:
    """The error for a command that failed. what: a clause without a full stop."""
    lines = logged(log).rstrip().splitlines()[-_LOG_LINES:]
    said = "\n".join(f"  {printable(line)}" for line in lines)
    return InstallError(
        f"{name}: {what}. See {log}, which ends:\n{said}\nCorrect that, and run the command again."
    )


def logged(log: Path) -> str:
    """The text of a log."""
    return log.read_text(encoding="utf-8", errors="backslashreplace")
