"""Gives a process, and what it starts, longer time slices: ``python tools/time_slices.py PID MS``.

For CI on few cores. Where more processes compute than there are cores, Linux lets another one run every
3 ms, which then finds the caches full of other data: five processes that import take a fifth more of the
processor than two do. With longer slices, and a policy in which what wakes up waits for its turn
(SCHED_BATCH), they take it less often from each other.

Slices can be chosen from Linux 6.12 on (sched_setattr(2)). An older one changes the policy only, and another
system nothing.
"""

import ctypes
import os
import platform
import struct
import sys

_SCHED_BATCH = 3  # `os.SCHED_BATCH`, which only Linux has
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""A sched_attr: its size, policy, flags, nice, priority, runtime, deadline, period."""
_SYSTEM_CALLS = {"x86_64": 314, "aarch64": 274}
"""The number of sched_setattr by machine; the C library has no function for it before glibc 2.41."""


def lengthen(pid: int, milliseconds: int) -> None:
    """Sets the time slice of the process ``pid``. Raises OSError where the system can't or refuses to."""
    number = _SYSTEM_CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if number is None:
        raise OSError(f"not known how to on {platform.system()} {platform.machine()}")
    values = (_ATTRIBUTES.size, _SCHED_BATCH, 0, 0, 0, milliseconds * 1_000_000, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(number, pid, _ATTRIBUTES.pack(*values), 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    try:
        lengthen(int(sys.argv[1]), int(sys.argv[2]))
    except OSError as error:
        print(f"time slices are as they were: {error}", file=sys.stderr)
