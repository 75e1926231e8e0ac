"""Calls as bars on a line of time (pure).

The rule: calls that overlap, or follow one another closely, share a line of time. What lies far apart
doesn't, because nothing could be seen of either.
"""

from collections.abc import Sequence

import msgspec

from mcpzip.model.durations import span
from mcpzip.server.daemon.call_phases import WORDS, phases, remarks, seconds_of, spent
from mcpzip.server.daemon.call_report import CallReport
from mcpzip.ui.charts import WIDTH

GAP_LEAST, GAP_MOST = 0.25, 5.0
"""Seconds without a call after which another line of time begins: four times the longest call before, between
these two.
"""
_LEAST = 0.0001
"""Seconds of a line of time at least."""
_NARROWEST = 0.5
"""Of what is drawn, in the chart's units."""
_SHORT = 2.0
"""The width of a bar that has one piece only, that of whoever took most of the time."""
_NAMED = 0.05
"""The share of a call's time from which on a part of it is named beside the bar."""
_MARKS = frozenset(("elicitation", "sampling", "roots", "question", "input required"))
"""Events with a mark in the bar; and so has what the policy decided, unless it let the call run."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a bar. kind: its class in the stylesheet. x, width: 0 … `WIDTH`."""

    kind: str
    x: float
    width: float


class Row(msgspec.Struct, frozen=True):
    """A call. took: how long, and what the time passed with, for people. remarks: what else is to be said."""

    call: CallReport
    pieces: list[Piece]
    took: str
    parts: str
    remarks: list[str]


class Line(msgspec.Struct, frozen=True):
    """Calls that share a line of time, the oldest first. at: when it begins, Unix time. took: its length, for
    people.
    """

    at: float
    took: str
    rows: list[Row]


def lines(calls: Sequence[CallReport], now: float) -> list[Line]:
    """``calls`` on their lines of time, the newest line first."""
    groups: list[list[CallReport]] = []
    end = longest = 0.0
    for call in sorted(calls, key=lambda one: (one.at, one.number)):
        seconds = seconds_of(call, now)
        if not groups or call.at - end > min(max(GAP_LEAST, 4 * longest), GAP_MOST):
            groups.append([])
            end = longest = 0.0
        groups[-1].append(call)
        end, longest = max(end, call.at + seconds), max(longest, seconds)
    return [_line(group, now) for group in reversed(groups)]


def _line(calls: Sequence[CallReport], now: float) -> Line:
    begin = calls[0].at
    length = max(_LEAST, max(call.at + seconds_of(call, now) for call in calls) - begin)
    return Line(begin, span(length), [row(call, now, begin, length) for call in calls])


def row(call: CallReport, now: float, begin: float | None = None, length: float | None = None) -> Row:
    """``call`` on a line of time that begins at ``begin`` (Unix time) and has ``length`` seconds; by default
    on one of its own.
    """
    seconds = seconds_of(call, now)
    length = length or max(_LEAST, seconds)
    offset = 0.0 if begin is None else call.at - begin
    taken = spent(call, now)
    if taken and WIDTH * seconds / length < _SHORT:
        most = max(taken, key=lambda one: one[1])[0]
        pieces = [_piece(most, offset, seconds, length)]
    else:
        pieces = [
            _piece(one.who, offset + one.begin, one.end - one.begin, length) for one in phases(call, now)
        ]
        pieces += [_piece("mark", offset + after, 0.0, length) for after in _marks(call)]
    parts = [f"{WORDS[who]} {span(part)}" for who, part in taken if part >= _NAMED * seconds]
    return Row(call, pieces, span(seconds), ", ".join(parts), remarks(call, now))


def _marks(call: CallReport) -> list[float]:
    """Seconds after the beginning."""
    decided = call.decision not in ("", "allow")
    return [one.after for one in call.events if one.what in _MARKS or (decided and one.what == "decided")]


def _piece(kind: str, at: float, seconds: float, length: float) -> Piece:
    width = max(_NARROWEST, WIDTH * min(seconds / length, 1.0))
    return Piece(kind, round(min(WIDTH * min(max(at / length, 0.0), 1.0), WIDTH - width), 2), round(width, 2))
