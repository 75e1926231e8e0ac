"""A difference between a recorded server and the real one, and the report of all.

The rule: ``breaking`` is what a client that worked with the recorded server may fail at; ``added`` is what it
may ignore; everything else is ``changed``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import UNSET, Struct

from mcpzip.model import sanitize
from mcpzip_fakes.answer import JsonObject

Severity = Literal["breaking", "changed", "added"]
Area = Literal["catalog", "answers"]
SEVERITIES: tuple[Severity, ...] = ("breaking", "changed", "added")
_VALUE = 120
"""Characters of a value in a text for people."""
_SHOWN = 1_000
"""Drifts that a text shows."""


class Drift(Struct, frozen=True, kw_only=True):
    """One difference.

    kind: what it is, in fixed words for programs, such as ``tool-removed``. place: what differs, such as
    ``tool pay``, or ``tools/call pay (exchange 7)``. path: where in it, "" for all of it. what: a phrase such
    as ``was "string", is "array"``. before, after: the values, UNSET if there was or is none.
    """

    severity: Severity
    area: Area
    kind: str
    place: str
    what: str
    path: str = ""
    before: object = UNSET
    after: object = UNSET

    @property
    def line(self) -> str:
        """One line for people."""
        where = f"{self.place}: {self.path}" if self.path else self.place
        return sanitize.one_line(f"{self.severity:8}  {where}: {self.what}")


class NotSent(Struct, frozen=True):
    """A recorded request that was not sent. title: its method and name. why: a phrase."""

    title: str
    why: str


class Report:
    """What a check found. cassette, server: their names. sent: the number of requests."""

    def __init__(self, cassette: str, server: str) -> None:
        self.cassette, self.server = cassette, server
        self.sent = 0
        self.drifts: list[Drift] = []
        self.not_sent: list[NotSent] = []
        self._known: set[tuple[str, str, str, str]] = set()

    def add(self, drifts: Iterable[Drift]) -> None:
        """Adds those that are not there yet: several sessions may show the same."""
        for drift in drifts:
            key = (drift.kind, drift.place.partition(" (exchange ")[0], drift.path, drift.what)
            if key not in self._known:
                self._known.add(key)
                self.drifts.append(drift)

    def at_least(self, severity: Severity) -> list[Drift]:
        """The drifts that are so severe."""
        wanted = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return [drift for drift in self.drifts if drift.severity in wanted]

    def lines(self) -> Iterator[str]:
        """The report for people."""
        said = ", ".join(
            f"{count} {severity}"
            for severity in SEVERITIES
            if (count := sum(drift.severity == severity for drift in self.drifts))
        )
        yield sanitize.one_line(
            f"{self.cassette}, against {self.server}: {counted(len(self.drifts), 'drift')}"
            + (f" ({said})" if said else "")
        )
        ordered = sorted(self.drifts, key=lambda drift: SEVERITIES.index(drift.severity))
        for drift in ordered[:_SHOWN]:
            yield f"  {drift.line}"
        if len(ordered) > _SHOWN:
            yield f"  … and {len(ordered) - _SHOWN:,} more: --json has all"
        yield f"{counted(self.sent, 'request')} sent, {len(self.not_sent)} not sent."
        for (title, why), count in Counter((each.title, each.why) for each in self.not_sent).items():
            yield sanitize.one_line(f"  not sent: {title}{f' ({count} times)' if count > 1 else ''}: {why}")

    def as_json(self) -> JsonObject:
        """The report for programs."""
        told = {severity: sum(d.severity == severity for d in self.drifts) for severity in SEVERITIES}
        return {
            "cassette": self.cassette,
            "server": self.server,
            "sent": self.sent,
            "counts": told,
            "drifts": msgspec.to_builtins(self.drifts),
            "not_sent": msgspec.to_builtins(self.not_sent),
        }


def counted(number: int, what: str) -> str:
    """``3 drifts``, ``1 drift``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def shown(value: object) -> str:
    """A JSON value in a phrase: on one line, cut."""
    try:
        text = msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError):
        text = "(a value that can't be shown)"
    return sanitize.one_line(text, _VALUE)


def was_and_is(before: object, after: object) -> str:
    """The phrase for two values, one of which may be UNSET."""
    if before is UNSET:
        return f"is new: {shown(after)}"
    if after is UNSET:
        return f"is gone, was {shown(before)}"
    one, other = shown(before), shown(after)
    if one == other and isinstance(before, str) and isinstance(after, str):  # they differ where they were cut
        at = next((n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0)
        start = max(0, at - _VALUE // 4)
        one, other = (f"…{shown(text[start : start + _VALUE])}" for text in (before, after))
    return f"was {one}, is {other}"
