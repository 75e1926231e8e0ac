"""Protects the memory and environment of this process from the processes that it starts.

Before the first child starts, this process becomes non-dumpable (prctl(2), ``PR_SET_DUMPABLE``), which only
Linux offers. Its ``/proc/PID/environ``, ``mem`` and ``maps`` then belong to root, and no process of the same
user can attach to it; it also writes no core dump. Children become dumpable again when they execute their own
program. Root (``CAP_SYS_PTRACE``) can still read everything; on macOS and Windows, so can any process of the
same user.
"""

import sys
from collections.abc import Callable

_PR_SET_DUMPABLE = 4
_done = False


def harden() -> None:
    """Makes this process non-dumpable, once; does nothing where the system has no ``prctl``."""
    global _done
    if _done or not sys.platform.startswith("linux"):
        return
    _done = True
    if (prctl := _prctl()) is not None:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _prctl() -> "Callable[..., int] | None":
    import ctypes  # takes some milliseconds, so it is imported when the first process is started

    try:
        found: Callable[..., int] = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return found
