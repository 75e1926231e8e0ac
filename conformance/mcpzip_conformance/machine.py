"""Whether the machine is idle enough that a time says something.

The rule: a time is taken only while other programs use little of the processors; otherwise it is said why
not. On Linux that is their use during a moment; elsewhere the load average of the last minute, in which the
run's own work counts too.
"""

import asyncio
import os
from pathlib import Path

_MOMENT = 0.25
"""Seconds over which the use of the processors is looked at."""
_IDLE = 0.2
"""The share of all processors that other programs may use."""
_STAT = Path("/proc/stat")


async def why_not_idle() -> str | None:
    """Why times taken now would say nothing, a sentence; None if the machine is idle. To be called while the
    run does nothing itself."""
    before = _ticks()
    if before is not None:
        await asyncio.sleep(_MOMENT)
        after = _ticks()
        return None if after is None else _sentence(_used(before, after), f"over {_MOMENT:g} s")
    load = getattr(os, "getloadavg", None)
    if load is None:
        return None  # Windows tells neither
    return _sentence(load()[0] / (os.cpu_count() or 1), "by the load average of the last minute")


def _sentence(share: float, measure: str) -> str | None:
    if share <= _IDLE:
        return None
    return (
        f"No time was taken: other work used more than {_IDLE:.0%} of the processors ({measure}), and then "
        "times say nothing. Let the machine be idle, and run the group cost alone."
    )


def _used(before: tuple[int, int], after: tuple[int, int]) -> float:
    """The share of the processors that was used between two looks."""
    busy, total = (later - earlier for earlier, later in zip(before, after, strict=True))
    return busy / total if total > 0 else 0.0


def _ticks() -> tuple[int, int] | None:
    """For how long all processors were busy since the start, and for how long they were there, in ticks of
    the kernel (proc(5)); None if there is no /proc."""
    try:
        fields = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        times = [int(field) for field in fields]
    except (OSError, ValueError):
        return None
    idle = sum(times[3:5])  # idle, and waiting for input and output
    return sum(times) - idle, sum(times)
