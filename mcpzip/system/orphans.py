"""Finds the processes that a server left behind, by a mark in their environment.

Each start of a server gets a new mark, which all processes that the server starts inherit. It names the
process of mcpzip that made it. Only processes whose environment we may read (those of the same user) and that
carry a mark are ever signalled. This works on Linux alone (``/proc/*/environ``), and misses processes that
cleared their environment.
"""

import os
import signal

import msgspec

MARK_VARIABLE = "MCPZIP_SERVER"
"""The environment variable of the mark. If a server's config sets it, the server has no mark, and what it
leaves in other sessions stays.
"""
_PROC = "/proc"
_StrPath = str | os.PathLike[str]
_PREFIX = MARK_VARIABLE.encode() + b"="


def new_mark() -> str:
    """A unique mark: the number and start time of this process, and 32 hex digits, joined by ``-``."""
    own = _process_at(_PROC, str(os.getpid()))
    return f"{os.getpid()}-{own.started if own is not None else 0}-{os.urandom(16).hex()}"


class OrphanProcess(msgspec.Struct, frozen=True):
    """A process with a mark. group: its process group. started: its start time in clock ticks since boot
    (proc(5)), which distinguishes it from a later process with the same number.
    """

    pid: int
    group: int
    started: str

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        current = _process_at(_PROC, str(self.pid))
        return current is not None and current.started == self.started

    @property
    def command(self) -> str:
        """Its program and arguments, 200 characters at most; "" if it has ended."""
        try:
            with open(os.path.join(_PROC, str(self.pid), "cmdline"), "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            return ""
        return b" ".join(words).decode("utf-8", "replace").strip()[:200]

    def signal(self, number: signal.Signals) -> None:
        """Sends it the signal, if it is alive."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except (ProcessLookupError, PermissionError):
                pass


def can_see_environments() -> bool:
    """Whether this system shows the environments of other processes."""
    return os.path.exists("/proc/self/environ")


def find_marked(proc: _StrPath = _PROC) -> dict[str, list[OrphanProcess]]:
    """All processes of this user that carry a mark, by mark. Takes some milliseconds."""
    found: dict[str, list[OrphanProcess]] = {}
    own_pid = os.getpid()
    for name in os.listdir(proc):
        if not name.isdigit() or int(name) == own_pid:
            continue
        try:
            with open(os.path.join(proc, name, "environ"), "rb") as file:
                environ = file.read()
        except OSError:  # another user's process, or it has ended
            continue
        marks = [item[len(_PREFIX) :] for item in environ.split(b"\0") if item.startswith(_PREFIX)]
        if marks and marks[0] and (process := _process_at(proc, name)) is not None:
            found.setdefault(marks[0].decode("ascii", "replace"), []).append(process)
    return found


def find_left(proc: _StrPath = _PROC) -> list[OrphanProcess]:
    """The processes of this user that carry the mark of a process that has ended. Those of other process
    namespaces (containers) are left out, because process numbers mean others there.
    """
    found: list[OrphanProcess] = []
    for mark, processes in find_marked(proc).items():
        number, _, rest = mark.partition("-")
        started, _, unique = rest.partition("-")
        if not (number.isdecimal() and started.isdecimal() and len(unique) == 32) or started == "0":
            continue  # of another version of mcpzip, or made by somebody else
        owner = _process_at(proc, number)
        if owner is None or owner.started != started:
            found += [one for one in processes if _is_in_our_namespace(proc, one.pid)]
    return found


def _is_in_our_namespace(proc: _StrPath, pid: int) -> bool:
    try:
        theirs, ours = (os.readlink(os.path.join(proc, name, "ns", "pid")) for name in (str(pid), "self"))
    except OSError:
        return False
    return theirs == ours


def _process_at(proc: _StrPath, pid: str) -> OrphanProcess | None:
    """The process with this number; None if it has ended."""
    try:
        with open(os.path.join(proc, pid, "stat"), encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else OrphanProcess(int(pid), int(fields[2]), fields[19])
