"""Waits until descriptors can be read or written.

`select.select` is the quickest way for a few descriptors, and the only one on Windows, but it can't watch
those above 1,023, which a process gets whose parent left many open. `poll` can.

`server.shim` imports this module at every start, so it imports only small modules of the standard library.
"""

import select
import sys
import time

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpzip.system.local_socket import Connection

    Watched = int | Connection
    """A descriptor, or what has one."""


INPUT: int = getattr(select, "POLLIN", 1)
"""The event of a descriptor that can be read."""


def wait(
    reads: "Sequence[Watched]", writes: "Sequence[Watched]", timeout: "float | None"
) -> "tuple[Sequence[Watched], Sequence[Watched]]":
    """Those of ``reads`` that can be read, and those of ``writes`` that can be written, as soon as there are
    any; none after ``timeout`` seconds. What has failed, or was closed at the other end, can be both.
    """
    if sys.platform == "win32" and not (reads or writes):  # which its select refuses
        time.sleep(timeout or 0.0)
        return (), ()
    try:
        readable, writable, _ = select.select(reads, writes, (), timeout)
    except ValueError:  # a descriptor above 1,023
        if sys.platform == "win32":
            raise
        return _poll(reads, writes, timeout)
    return readable, writable


def watched(*descriptors: int) -> "Callable[[float | None], list[tuple[int, int]]]":
    """Waits for input of the same descriptors again and again: a function that does, up to so many
    milliseconds, None for ever. It returns descriptors and events; `INPUT` is data and nothing else.
    POSIX.
    """
    if sys.platform == "win32":
        raise OSError("Windows has no poll")
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, INPUT)
    return poll.poll


def _poll(
    reads: "Sequence[Watched]", writes: "Sequence[Watched]", timeout: "float | None"
) -> "tuple[Sequence[Watched], Sequence[Watched]]":
    if sys.platform == "win32":
        raise OSError("Windows has no poll")
    masks: dict[int, int] = {}
    for watched, mask in ((reads, select.POLLIN), (writes, select.POLLOUT)):
        for each in watched:
            masks[_number(each)] = masks.get(_number(each), 0) | mask
    poll = select.poll()
    for number, mask in masks.items():
        poll.register(number, mask)
    found = dict(poll.poll(None if timeout is None else timeout * 1000))
    # POLLHUP, POLLERR and POLLNVAL are reported for any mask.
    readable = [each for each in reads if found.get(_number(each), 0) & ~select.POLLOUT]
    return readable, [each for each in writes if found.get(_number(each), 0) & ~select.POLLIN]


def _number(watched: "Watched") -> int:
    return watched if isinstance(watched, int) else watched.fileno()
