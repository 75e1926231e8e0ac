"""How long the calls of one server took, one after the other, as columns (pure)."""

from collections.abc import Iterable
from statistics import median

import msgspec

from mcpzip.model.durations import span
from mcpzip.server.daemon.call_phases import spent
from mcpzip.server.daemon.call_report import CallReport

COLUMNS = 60
"""Calls that are shown, the last ones."""
HEIGHT, STEP = 60.0, 5.0
"""Of the longest column, and from one column to the next, in the chart's units."""
_LOWEST = 1.0


class Column(msgspec.Struct, frozen=True):
    """A call. kind: its class in the stylesheet. x, y, height: in the chart's units, from the upper left."""

    kind: str
    x: float
    y: float
    height: float


class Latency(msgspec.Struct, frozen=True):
    """The last calls of a server, the oldest first. median, high, most: times at the server, for people; 95
    of 100 calls took ``high`` at most. begin, end: when the first and the last began, Unix times.
    """

    columns: list[Column]
    failed: int
    median: str
    high: str
    most: str
    begin: float
    end: float


def latency(calls: Iterable[CallReport], server: str) -> Latency | None:
    """Those of ``server``, of ``calls`` (the oldest first) that were sent and have ended; None if there are
    none.
    """
    found = [
        (call, seconds)
        for call in calls
        if call.server == server
        and call.seconds is not None
        and (seconds := dict(spent(call, 0.0)).get("server", 0.0)) > 0
    ][-COLUMNS:]
    if not found:
        return None
    times = sorted(seconds for _, seconds in found)
    most = times[-1]
    columns = []
    for number, (call, seconds) in enumerate(found):
        height = round(max(_LOWEST, HEIGHT * seconds / most), 1)
        kind = "failed" if call.failed else "server"
        columns.append(Column(kind, number * STEP, round(HEIGHT - height, 1), height))
    return Latency(
        columns,
        sum(call.failed for call, _ in found),
        span(median(times)),
        span(times[min(len(times) - 1, int(0.95 * len(times)))]),
        span(most),
        found[0][0].at,
        found[-1][0].at,
    )
