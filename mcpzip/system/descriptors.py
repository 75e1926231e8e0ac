"""The limit of open file descriptors (RLIMIT_NOFILE) of this process."""

import sys

_RESERVED = 200
"""Descriptors that are not for connections: files, and three pipes for each server we start."""


def raise_descriptor_limit(connections: int) -> int:
    """Raises the soft limit so that ``connections`` fit, if the system allows it. Returns how many fit."""
    if sys.platform == "win32":  # it has no such limit: sockets are handles, of which there can be millions
        return connections
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return connections
    wanted = connections + _RESERVED
    if soft < wanted:
        granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
            soft = granted
        except (ValueError, OSError):
            pass  # macOS also has a lower limit that getrlimit does not report
    return min(connections, max(1, soft - _RESERVED, soft // 2))
