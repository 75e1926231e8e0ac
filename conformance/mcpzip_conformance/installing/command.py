"""A package manager's command: run to its end, its output in a log, and the end of the log in the error."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from mcpzip_conformance.errors import InstallError
from mcpzip_conformance.processes import end_group
from mcpzip_conformance.transcript import printable

_LOG_LINES = 12
"""Lines of a log that are shown."""


def run(command: Sequence[str], env: Mapping[str, str], log: IO[bytes]) -> int:
    """The exit code of ``command``. Its process doesn't outlive this call."""
    # Ctrl-C may come while it is being made, when it runs already.
    process: subprocess.Popen[bytes] = subprocess.Popen.__new__(subprocess.Popen)
    try:
        process.__init__(  # type: ignore[misc]
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=os.name == "posix",
        )
        return process.wait()
    except BaseException:
        if getattr(process, "pid", None) is not None:
            end_group(process.pid, still_running=True)
            process.wait()
        raise


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
