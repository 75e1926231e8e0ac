"""Whether a process that was started works or waits.

Only Linux shows this (``/proc``). Where nothing is known, on other systems or after the process has ended,
the process counts as working.
"""

from pathlib import Path

_PROC = Path("/proc")
_WORKING_STATES = ("R", "D")
"""States of a thread that runs, waits for a processor or waits for a disk (proc(5))."""
_IDLE_TICKS = 1
"""Clock ticks (10 ms) that a waiting process tree may use between two calls."""


class ProcessActivity:
    """Observes a process and all its descendants. pid: of that process, None before `follow`."""

    def __init__(self, proc: Path = _PROC) -> None:
        """proc: the folder of the proc file system."""
        self._proc = proc
        self.pid: int | None = None
        self._ticks: int | None = None

    def follow(self, pid: int) -> None:
        """Observes the process ``pid`` from now on."""
        self.pid, self._ticks = pid, None

    def resting(self) -> bool:
        """Whether the processes used almost no processor time since the last call, and none works now. False
        at the first call.
        """
        before, self._ticks, working = self._ticks, None, False
        if self.pid is None:
            return False
        ticks, pids = 0, [self.pid]
        try:
            while pids:
                folder = self._proc / str(pids.pop())
                ticks += sum(map(int, _stat(folder)[11:15]))  # its own and its ended children's
                for thread in (folder / "task").iterdir():
                    working = working or _stat(thread)[0] in _WORKING_STATES
                    pids += map(int, (thread / "children").read_text().split())
        except (OSError, ValueError, IndexError):  # a process has just ended, or there is no proc file system
            return False
        self._ticks = ticks
        return not working and before is not None and ticks - before <= _IDLE_TICKS


def _stat(folder: Path) -> list[str]:
    """The fields of ``stat`` in ``folder`` from the state on (proc(5))."""
    return (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
