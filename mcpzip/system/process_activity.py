"""Whether a process that was started works or waits.

The rule: only a process of which the system says so rests; of one of which nothing can be told (another
system than Linux, no such process any more) it is taken that it works.
"""

from pathlib import Path

_PROC = Path("/proc")
_AT_WORK = ("R", "D")
"""States of a thread that has, or would like to have, a processor or a disk."""
_LITTLE = 1
"""Ticks (10 ms) that a resting family may use between two looks."""


class ProcessActivity:
    """Looks at one process, and at all that it started, now and then."""

    def __init__(self, proc: Path = _PROC) -> None:
        """proc: where the system tells of processes."""
        self._proc = proc
        self._pid: int | None = None
        self._ticks: int | None = None

    def follow(self, pid: int) -> None:
        """From now on it is about the process ``pid``."""
        self._pid, self._ticks = pid, None

    def resting(self) -> bool:
        """Whether it has done next to nothing since the last look, and nothing of it is at work right now.
        False at the first look.
        """
        before, self._ticks, working = self._ticks, None, False
        if self._pid is None:
            return False
        ticks, below = 0, [self._pid]
        try:
            while below:
                pid = below.pop()
                ticks += _used(self._stat(self._proc / str(pid)))
                for thread in (self._proc / str(pid) / "task").iterdir():
                    working = working or self._stat(thread)[0] in _AT_WORK
                    below += map(int, (thread / "children").read_text().split())
        except (OSError, ValueError, IndexError):  # one of them has just ended, or there is no such folder
            return False
        self._ticks = ticks
        return not working and before is not None and ticks - before <= _LITTLE

    @staticmethod
    def _stat(folder: Path) -> list[str]:
        """The fields of ``stat`` from the state on (proc(5))."""
        return (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _used(fields: list[str]) -> int:
    """Ticks of processor time, of ended children too."""
    return sum(map(int, fields[11:15]))
