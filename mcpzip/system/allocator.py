"""Settings of the C library's memory allocator.

glibc keeps freed blocks of up to `KEEP_BYTES` for reuse, and returns larger ones to the system. By default it
raises this threshold each time a larger block is freed (mallopt(3), "dynamic mmap threshold"): a result of
1 MB then costs no page faults, which were a third of our work for it, but sixty results of 20 MB leave 900 MB
of freed memory with the process. Other C libraries keep their defaults.
"""

import sys

KEEP_BYTES = 4 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>


def keep_buffers() -> None:
    """Applies the settings; does nothing on a system without glibc's ``mallopt``."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # takes some milliseconds, so only a server pays for it

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, KEEP_BYTES)
    mallopt(_TRIM_THRESHOLD, 2 * KEEP_BYTES)
