"""How many files and connections this process may have open.

The rule: what the system grants is asked for, and what it doesn't is known before it runs out.
"""

import sys

KEPT = 200
"""Descriptors that are not for connections: files, and three pipes of each server we start."""


def room_for(connections: int) -> int:
    """Raises our limit to where so many connections fit, if the system lets us. Returns how many do."""
    if sys.platform == "win32":  # which counts sockets otherwise, and up to millions
        return connections
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return connections
    wanted = connections + KEPT
    if soft < wanted:
        granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
            soft = granted
        except (ValueError, OSError):
            pass  # macOS has a limit beside the one it tells
    return min(connections, max(1, soft - KEPT, soft // 2))
