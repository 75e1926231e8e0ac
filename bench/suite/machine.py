"""What the figures were measured on: the machine, the load, the versions, the date."""

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path


def load() -> float | None:
    """The processes that ran or waited for a processor, on average of the last minute; None if this system
    doesn't say it."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def described(mcpzip: str, python: str, before: float | None, seconds: float) -> dict[str, object]:
    """The machine as JSON. before: the load at the start; seconds: the run took."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_gb": _memory(),
        "load_before": before,
        "load_after": load(),
        "seconds": round(seconds),
        "python": _said([python, "--version"]).removeprefix("Python "),
        "node": _said(["node", "--version"]).removeprefix("v"),
        "mcpzip": version_of(mcpzip),
    }


def version_of(mcpzip: str) -> str:
    """The version that the command states."""
    return (_said([mcpzip, "--version"]).split() or [""])[-1]


def _said(argv: list[str]) -> str:
    if shutil.which(argv[0]) is None:
        return ""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None
