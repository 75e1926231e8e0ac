"""Our memory and our environment, kept from the processes that we start.

The rule: before the first of them runs, Linux is told that this process isn't to be dumped (prctl(2),
``PR_SET_DUMPABLE``). Its ``/proc/PID/environ``, ``mem`` and ``maps`` then belong to root, and nobody of the
same user can attach to it; the price is that there is no core dump. What we start is dumpable again once it
runs its own program. Root (``CAP_SYS_PTRACE``) can look all the same. Other systems have nothing like it that
a process could ask for: what runs there as the same user can look.
"""

import sys
from collections.abc import Callable

_PR_SET_DUMPABLE = 4
_done = False


def harden() -> None:
    """Sees to it, the first time; does nothing where it can't be had."""
    global _done
    if _done or not sys.platform.startswith("linux"):
        return
    _done = True
    if (prctl := _prctl()) is not None:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _prctl() -> "Callable[..., int] | None":
    import ctypes  # some milliseconds: only when something is started

    try:
        found: Callable[..., int] = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return found
