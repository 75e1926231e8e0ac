"""What the C library does with memory that is free again.

The rule: glibc keeps blocks of up to `KEPT` bytes for the next message, and gives larger ones back to the
system. Left alone it takes a size for a passing one once a block of it was freed (mallopt(3), "dynamic mmap
threshold"): a result of 1 MB then costs no page faults, which were a third of our work for it, but sixty
answers of 20 MB, ended, leave 900 MB in holes. Other C libraries are left alone.
"""

import sys

KEPT = 4 << 20
"""Bytes."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_buffers() -> None:
    """Sees to it; does nothing where it can't be had."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # some milliseconds, which starting a server takes anyway

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, KEPT)
    mallopt(_TRIM_THRESHOLD, 2 * KEPT)
