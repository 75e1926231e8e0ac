"""The calls that a daemon remembers, as commands and the page are told of them.

The rule: an answer has the newest calls that changed since the reader's last look, `AT_ONCE` at most. The
reader asks again for those before them, so that neither side handles more at a time.
"""

from collections.abc import Iterable
from heapq import merge
from itertools import islice
from operator import attrgetter

import msgspec

from mcpzip.model.names import join
from mcpzip.proxy.call_record import UNDER_WAY, CallRecord

AT_ONCE = 250
"""Calls in one answer."""
_FINE = ("", "result", "input required", "asked")


class CallEvent(msgspec.Struct, frozen=True):
    """what: one of `proxy.call_record.HAPPENED`. after: seconds after the beginning of the call."""

    what: str
    after: float


class ProgressReport(msgspec.Struct, frozen=True):
    """How often a server told of its progress. first, last: seconds after the beginning of the call."""

    count: int
    first: float
    last: float


class CallReport(msgspec.Struct, frozen=True):
    """A call. client, version, pid: who makes it. at: Unix time. seconds: None while it is under way. For the
    rest see `proxy.call_record.CallRecord`.
    """

    number: int
    client: str
    version: str
    pid: int
    server: str
    tool: str
    at: float
    seconds: float | None
    outcome: str
    error: str
    decision: str
    rule: str
    approved_by: str
    arguments: int
    result: int
    tokens: int
    repairs: int
    kept: bool
    parent: int
    continues: int
    progress: ProgressReport | None = None
    events: tuple[CallEvent, ...] = ()

    @classmethod
    def of(cls, record: CallRecord) -> "CallReport":
        """The report of ``record``."""
        caller, progress = record.caller, record.progress
        return cls(
            record.number,
            caller.name,
            caller.version,
            caller.pid,
            record.server,
            record.tool,
            round(record.at, 3),
            None if record.seconds == UNDER_WAY else round(record.seconds, 6),
            record.outcome,
            record.error,
            record.decision,
            record.rule,
            record.approved_by,
            record.arguments,
            record.result,
            record.tokens,
            record.repairs,
            record.kept,
            record.parent,
            record.continues,
            None if progress is None else ProgressReport(progress.count, progress.first, progress.last),
            tuple([CallEvent(what, round(after, 6)) for what, after in record.happened()]),
        )

    @property
    def failed(self) -> bool:
        """Whether it ended without a result, and without a question to its client."""
        return self.outcome not in _FINE

    @property
    def name(self) -> str:
        """That of its tool, with the server."""
        return join(self.server, self.tool)


class CallsAnswer(msgspec.Struct, frozen=True):
    """pid: of the daemon; the numbers of another one mean nothing in this one. change: the number of the last
    change so far. calls: the newest first. more: whether calls before them are left out.
    """

    pid: int
    change: int
    calls: tuple[CallReport, ...]
    more: bool


def calls_answer(
    remembered: Iterable[Iterable[CallRecord]], pid: int, since: int = 0, before: int = 0
) -> CallsAnswer:
    """The answer to a reader. remembered: the calls of each proxy, the newest first. since: the last change
    that the reader knows. before: the number of the oldest call that it got at this look; 0 for none yet.
    """
    change = 0
    changed: list[CallRecord] = []
    for record in merge(*remembered, key=attrgetter("number"), reverse=True):
        change = max(change, record.change)
        # What is under way may have changed without a number of its own: events are noted often.
        if (not before or record.number < before) and (record.change > since or record.seconds == UNDER_WAY):
            changed.append(record)
    shown = tuple(map(CallReport.of, islice(changed, AT_ONCE)))
    return CallsAnswer(pid, change, shown, len(changed) > AT_ONCE)
