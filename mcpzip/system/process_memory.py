"""The memory that processes and their descendants use now.

On Linux it is the proportional set size (``Pss`` in ``/proc/PID/smaps_rollup``, proc(5)), which counts memory
that several processes share once; on macOS and other POSIX systems the resident set size that ps(1) shows,
which counts it in each; on Windows it is not known.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PS_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Memory:
    """own: of the process, in bytes. whole: with all its descendants, which with it are ``processes``."""

    own: int
    whole: int
    processes: int


def memory_of(pid: int, proc: Path = _PROC) -> Memory | None:
    """The memory of the process ``pid`` of this machine; None if it has ended, or nothing is known. proc: the
    folder of the proc file system. Takes milliseconds; blocks.
    """
    sizes = dict(_by_proc(pid, proc) if (proc / "self").exists() else _by_ps(pid))
    return Memory(sizes[pid], sum(sizes.values()), len(sizes)) if pid in sizes else None


def _by_proc(pid: int, proc: Path) -> Iterator[tuple[int, int]]:
    """The process ``pid`` and its descendants, each with its memory in bytes."""
    pids = [pid]
    while pids:
        folder = proc / str(each := pids.pop())
        try:
            yield each, _pss(folder)
            for thread in (folder / "task").iterdir():
                pids += map(int, (thread / "children").read_text().split())
        except (OSError, ValueError):  # it has just ended
            continue


def _pss(folder: Path) -> int:
    """The proportional set size of a process, in bytes. Raises OSError, ValueError."""
    with (folder / "smaps_rollup").open() as lines:
        for line in lines:
            if line.startswith("Pss:"):
                return int(line.removeprefix("Pss:").removesuffix("kB\n")) * 1024
    raise ValueError(folder)


def _by_ps(pid: int) -> Iterator[tuple[int, int]]:
    """As `_by_proc`, from ps(1); nothing if there is none."""
    if sys.platform == "win32":
        return
    command = ["ps", "-axo", "pid=,ppid=,rss="]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PS_TIMEOUT, check=True)
        rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return
    sizes = {own: kilobytes * 1024 for own, _, kilobytes in rows}
    children: dict[int, list[int]] = {}
    for own, parent, _ in rows:
        children.setdefault(parent, []).append(own)
    pids = [pid] if pid in sizes else []
    while pids:
        yield (each := pids.pop()), sizes[each]
        pids += children.get(each, ())
