"""Who a server has left behind, wherever it moved: found by a mark in the environment.

The rule: a mark is one server process's own, made anew at each start, and inherited by all whom that starts.
Only a process of ours that bears it is ever signalled. Linux tells of environments (``/proc/*/environ``);
elsewhere nobody is seen. Who wiped its environment isn't seen either.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

MARK = "MCPZIP_SERVER"
"""The variable that carries the mark. Where a server's config sets it, to whatever, there is no mark: what
that server leaves in a session of its own stays.
"""
_PROC = Path("/proc")
_BEARING = MARK.encode() + b"="


def new_mark() -> str:
    """A mark that nobody has."""
    return os.urandom(16).hex()


@dataclass(frozen=True, slots=True)
class OrphanProcess:
    """A process that bears a mark. group: its process group. born: when it was started, in the system's own
    unit, which tells it from a later process of the same number.
    """

    pid: int
    group: int
    born: str

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        now = _of(_PROC / str(self.pid))
        return now is not None and now.born == self.born

    def signal(self, number: signal.Signals) -> None:
        """Signals it if it is still the same."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except (ProcessLookupError, PermissionError):
                pass


def can_see_environments() -> bool:
    """Whether this system tells of other processes' environments."""
    return os.path.exists("/proc/self/environ")


def find_marked(proc: Path = _PROC) -> dict[str, list[OrphanProcess]]:
    """All processes of ours that bear a mark, by their marks. Some milliseconds of work."""
    found: dict[str, list[OrphanProcess]] = {}
    me = os.getpid()
    for name in os.listdir(proc):
        if not name.isdigit() or int(name) == me:
            continue
        try:
            environ = (proc / name / "environ").read_bytes()  # refused: it is not ours
        except OSError:
            continue
        marks = [one[len(_BEARING) :] for one in environ.split(b"\0") if one.startswith(_BEARING)]
        if marks and marks[0] and (stray := _of(proc / name)) is not None:
            found.setdefault(marks[0].decode("ascii", "replace"), []).append(stray)
    return found


def _of(folder: Path) -> OrphanProcess | None:
    """The process of ``folder``; None when it has ended."""
    try:
        fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else OrphanProcess(int(folder.name), int(fields[2]), fields[19])
