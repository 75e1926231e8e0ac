"""Processor time, memory and children of a process.

The rule: Linux provides all figures, other systems (by ``ps``) the memory; a missing figure is None.
"""

import os
import subprocess
from pathlib import Path

_PROC = Path("/proc")


def cpu_seconds(pid: int) -> float | None:
    """Processor time of all threads of ``pid`` that live, to the nanosecond (Linux)."""
    threads = thread_seconds(pid)
    return None if threads is None else sum(threads.values())


def thread_seconds(pid: int) -> dict[int, float] | None:
    """Processor time of each thread of ``pid`` that lives, by its id (Linux)."""
    try:
        threads = list((_PROC / str(pid) / "task").iterdir())
        return {int(one.name): int((one / "schedstat").read_text().split()[0]) / 1e9 for one in threads}
    except OSError:
        return None


def resident_bytes(pid: int) -> int | None:
    """Resident memory of ``pid``, shared pages included."""
    try:
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    said = _ps("-o", "rss=", "-p", str(pid))
    return int(said) * 1024 if said.isdigit() else None


def proportional_bytes(pid: int) -> int | None:
    """The proportional set size of ``pid``: its own pages, and its part of those that it shares (Linux)."""
    try:
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def children(pid: int) -> list[str] | None:
    """The command lines of the running children of ``pid``."""
    try:
        found = []
        for thread in (_PROC / str(pid) / "task").iterdir():
            for child in (thread / "children").read_text().split():
                command = (_PROC / child / "cmdline").read_bytes()
                found.append(command.replace(b"\0", b" ").decode("utf-8", "replace").strip())
        return found
    except OSError:
        pass
    lines = [line.split(None, 1) for line in _ps("-A", "-o", "ppid=,command=").splitlines()]
    return [line[1] for line in lines if len(line) == 2 and line[0] == str(pid)] if lines else None


def _ps(*arguments: str) -> str:
    if os.name == "nt":
        return ""
    try:
        return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
