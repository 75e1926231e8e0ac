"""Whether a process that was started works or waits.

Only Linux shows this (``/proc``). Where nothing is known, on other systems or after the process has ended,
the process counts as working.
"""

import os

_PROC = "/proc"
_WORKING_STATES = ("R", "D")
"""States of a thread that runs, waits for a processor or waits for a disk (proc(5))."""
_IDLE_TICKS = 1
"""Clock ticks (10 ms) that a waiting process tree may use between two calls."""


class ProcessActivity:
    """Observes a process and all its descendants. pid: of that process, None before `follow`."""

    def __init__(self, proc: "str | os.PathLike[str]" = _PROC) -> None:
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
                folder = os.path.join(self._proc, str(pids.pop()))
                ticks += sum(map(int, _stat(folder)[11:15]))  # its own and its ended children's
                tasks = os.path.join(folder, "task")
                for name in os.listdir(tasks):
                    thread = os.path.join(tasks, name)
                    working = working or _stat(thread)[0] in _WORKING_STATES
                    pids += map(int, _content(thread, "children").split())
        except (OSError, ValueError, IndexError):  # a process has just ended, or there is no proc file system
            return False
        self._ticks = ticks
        return not working and before is not None and ticks - before <= _IDLE_TICKS


def _stat(folder: str) -> list[str]:
    """The fields of ``stat`` in ``folder`` from the state on (proc(5))."""
    return _content(folder, "stat").rpartition(")")[2].split()


def _content(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
        return file.read()
