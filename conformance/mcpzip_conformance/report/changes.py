"""What a run has better and worse than an earlier result.

The rule: worse is a check that passed and doesn't now, or that fails now and didn't then; better is one that
passes now and didn't then. New is a check that the earlier result doesn't have, gone one that isn't judged
any more: neither is worse. Figures don't count.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum

from rich.console import Console
from rich.text import Text

from mcpzip_conformance.report.matrix import by_check, mark, names
from mcpzip_conformance.transcript import printable
from mcpzip_conformance.verdict import Report, Status, SubjectReport, Verdict

_SHOWN = 200
"""Checks of one kind that are listed for a subject. The rest is counted."""


class Kind(Enum):
    """How a check changed; the heading in a list."""

    WORSE = "worse"
    BETTER = "better"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Change:
    """One check on one subject. before, now: None without a result."""

    check: str
    level: str
    kind: Kind
    before: Verdict | None
    now: Verdict | None

    def __str__(self) -> str:
        sides = [mark(side).word if side else "no result" for side in (self.before, self.now)]
        why = f": {self.now.summary}" if self.now is not None and self.now.wrong else ""
        return f"{self.check} ({self.level}), {sides[0]} before, {sides[1]} now{why}"


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes from an earlier result. source: what that was, for people; started: when; of: by subject
    that was run now, in its order; missing: the titles of those that the earlier result doesn't have."""

    source: str
    started: str
    of: tuple[tuple[str, tuple[Change, ...]], ...]
    missing: tuple[str, ...]

    def worse(self) -> bool:
        """Whether anything got worse."""
        return any(change.kind is Kind.WORSE for _, changes in self.of for change in changes)


def changes(report: Report, earlier: Report, source: str, known: Collection[str]) -> Changes:
    """What changed from ``earlier`` to ``report``. source: what ``earlier`` is, for people; known: the ids of
    the checks that could be played: one of them that wasn't was not asked for, and isn't gone."""
    before = {subject.id: subject for subject in earlier.subjects if not subject.not_run}
    titles = names(report)
    run = [subject for subject in report.subjects if not subject.not_run]
    return Changes(
        source,
        earlier.started,
        tuple(
            (titles[subject.id], tuple(_of(before[subject.id], subject, known)))
            for subject in run
            if subject.id in before
        ),
        tuple(titles[subject.id] for subject in run if subject.id not in before),
    )


def render(found: Changes, console: Console) -> None:
    """Prints ``found``."""
    console.print(Text(printable(f"Against {found.source} ({found.started}):"), style="bold"))
    for line in lines(found):
        console.print(Text(printable(line)))


def lines(found: Changes) -> Iterator[str]:
    """``found`` as lines of text: a line a subject, and one, indented, a changed check."""
    for title in found.missing:
        yield f"{title}: it has no earlier result"
    for title, all_changes in found.of:
        counts = [
            f"{sum(change.kind is kind for change in all_changes)} {kind.value}"
            for kind in Kind
            if any(change.kind is kind for change in all_changes)
        ]
        yield f"{title}: {', '.join(counts) or 'no change'}"
        for kind in Kind:
            those = [change for change in all_changes if change.kind is kind]
            yield from (f"  {kind.value}: {change}" for change in those[:_SHOWN])
            if len(those) > _SHOWN:
                yield f"  {kind.value}: {len(those) - _SHOWN} more"


def _of(before: SubjectReport, now: SubjectReport, known: Collection[str]) -> Iterator[Change]:
    earlier, later = by_check(before), by_check(now)
    for check in dict.fromkeys((*later, *earlier)):
        old, new = earlier.get(check), later.get(check)
        if new is None and check in known:
            continue  # it wasn't asked for
        kind = _kind(old, new)
        first = new or old
        if kind is not None and first is not None:
            yield Change(check, first.level, kind, old, new)


def _kind(old: Verdict | None, new: Verdict | None) -> Kind | None:
    if new is None:
        return Kind.GONE
    if old is None:
        return Kind.NEW
    if new.wrong:
        return None if old.wrong else Kind.WORSE
    if old.measured or new.measured or old.status is new.status:
        return None
    if new.status is Status.PASSED:
        return Kind.BETTER
    return Kind.WORSE if old.status is Status.PASSED else Kind.GONE
