"""Writes the audit log to the standard output of a process, as container platforms collect it.

The rule: the standard output belongs to the MCP client where mcpzip serves over stdio. So only a process that
says that nobody else needs it (`claim`) writes there.
"""

import os

from mcpzip.policy.audit_destination import Make
from mcpzip.policy.audit_files import NOTHING

_claimed = False


def claim() -> None:
    """From now on the standard output of this process is for the audit log, if the config asks for it."""
    global _claimed
    _claimed = True


def is_claimed() -> bool:
    """Whether the log may be written to the standard output."""
    return _claimed


class StdoutWriter:
    """See `audit_destination.Destination`. Each process has a chain of its own, which begins with 1."""

    place, waits = "the standard output", False

    def __init__(self) -> None:
        self._n, self._previous = 0, NOTHING

    def append(self, make: Make) -> None:
        """See `Destination.append`. A line may be cut where writing fails."""
        lines, n, previous = make(self._n, self._previous)
        left = memoryview(b"".join(line + b"\n" for line in lines))
        while left:
            left = left[os.write(1, left) :]
        self._n, self._previous = n, previous

    def close(self) -> None:
        """There is nothing to close."""
