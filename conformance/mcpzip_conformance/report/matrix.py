"""What all output formats share: marks, table rows, scores and figures.

The rule: only checks that passed or failed are judged. Skipped, broken and measuring checks don't change a
subject's score.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from mcpzip_conformance.verdict import Measure, Report, Requirement, Status, SubjectReport, Verdict

NOT_RUN = "not run here"
SURROGATES = re.compile("[\ud800-\udfff]")


class Mark(Enum):
    """How a verdict is shown. sign: readable without colour; plain: the sign in ASCII; meaning: a sentence
    for the legend."""

    PASSED = ("passed", "✓", "+", "The requirement is met.")
    FAILED = ("failed", "✗", "x", "The requirement is not met.")
    KNOWN = ("known", "(✗)", "(x)", "The check fails, as expected: it is a known failure.")
    SURPRISE = ("unexpected pass", "✓!", "+!", "The check passes although it is a known failure.")
    BROKEN = ("broken", "?", "?", "The runner or the machine failed: there is no result for the subject.")
    SKIPPED = ("skipped", "–", "-", "The subject declares that it lacks a feature that the check needs.")

    def __init__(self, word: str, sign: str, plain: str, meaning: str) -> None:
        self.word, self.sign, self.plain, self.meaning = word, sign, plain, meaning


_MARKS = {
    Status.PASSED: Mark.PASSED,
    Status.FAILED: Mark.FAILED,
    Status.BROKEN: Mark.BROKEN,
    Status.SKIPPED: Mark.SKIPPED,
}


def mark(verdict: Verdict) -> Mark:
    """How ``verdict`` is shown. Known failures have marks of their own."""
    if verdict.pinned and verdict.wrong:
        return Mark.KNOWN
    if verdict.pinned and verdict.status is Status.PASSED:
        return Mark.SURPRISE
    return _MARKS[verdict.status]


def marks(report: Report) -> list[Mark]:
    """The marks that occur in ``report``, in the order of the legend."""
    present = {
        mark(verdict) for subject in report.subjects for verdict in subject.verdicts if not verdict.measured
    }
    return [mark for mark in Mark if mark in present]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: a check, or one figure of a measuring check (then it has a ``unit`` and maybe a
    ``name``, which are "" otherwise)."""

    check: Requirement
    name: str = ""
    unit: str = ""

    @property
    def label(self) -> str:
        """The check's id, with the name and unit of the figure."""
        if not self.unit:
            return self.check.id
        name = f" {self.name}" if self.name else ""
        return f"{self.check.id}{name} ({self.unit})"

    def of(self, verdict: Verdict | None) -> Measure | None:
        """This row's figure in ``verdict``, if there is one."""
        measured = verdict.measured if verdict else ()
        return next(
            (measure for measure in measured if (measure.name, measure.unit) == (self.name, self.unit)), None
        )


def rows(report: Report) -> dict[str, list[Row]]:
    """The rows of all checks by group, in the order of the checks."""
    verdicts = [by_check(subject) for subject in report.subjects]
    result: dict[str, list[Row]] = {}
    for check in report.checks:
        measured = (
            measure for by_id in verdicts if check.id in by_id for measure in by_id[check.id].measured
        )
        names = dict.fromkeys((measure.name, measure.unit) for measure in measured)
        result.setdefault(check.group, []).extend([Row(check, *name) for name in names] or [Row(check)])
    return result


def by_check(subject: SubjectReport) -> Mapping[str, Verdict]:
    """The verdicts on ``subject`` by the id of the check."""
    return {verdict.check: verdict for verdict in subject.verdicts}


def played(report: Report) -> list[SubjectReport]:
    """The subjects that were run."""
    return [subject for subject in report.subjects if not subject.not_run]


def names(report: Report) -> dict[str, str]:
    """The name to show for each subject, by its id: its title, or the id if two have the same title."""
    titles = Counter(subject.title for subject in report.subjects)
    return {
        subject.id: subject.title if titles[subject.title] == 1 else subject.id for subject in report.subjects
    }


@dataclass(frozen=True, slots=True)
class Score:
    """The number of checks with each status."""

    passed: int
    failed: int
    skipped: int
    broken: int

    @property
    def judged(self) -> int:
        """The number of checks that passed or failed."""
        return self.passed + self.failed

    def __str__(self) -> str:
        return f"{self.passed}/{self.judged}" if self.judged else "–"


def score(subject: SubjectReport, level: str | None = None, group: str | None = None) -> Score:
    """The score over the checks of ``level`` and ``group``; None stands for all."""
    counts = dict.fromkeys(Status, 0)
    for verdict in subject.verdicts:
        if level in (None, verdict.level) and group in (None, verdict.group) and not verdict.measured:
            counts[verdict.status] += 1
    return Score(
        *(counts[status] for status in (Status.PASSED, Status.FAILED, Status.SKIPPED, Status.BROKEN))
    )


def findings(subject: SubjectReport, levels: Iterable[str]) -> Iterator[Verdict]:
    """The verdicts that failed, broke or passed unexpectedly, ordered by ``levels``."""
    for level in levels:
        for verdict in subject.verdicts:
            if verdict.level == level and mark(verdict) not in (Mark.PASSED, Mark.SKIPPED):
                yield verdict


def sentence(verdict: Verdict) -> str:
    """Why the check didn't pass, or that it passed although it is a known failure."""
    match mark(verdict):
        case Mark.SURPRISE:
            return f"It passes, but is listed as a known failure: {verdict.pinned}"
        case Mark.KNOWN:
            return f"{verdict.summary} (known: {verdict.pinned})"
        case _:
            return verdict.summary


def amount(value: float, unit: str) -> str:
    """``value`` with about three digits; tokens without decimals."""
    digits = 0 if unit == "tokens" or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def figure(measure: Measure) -> str:
    """The value with its unit, which a ratio doesn't have."""
    unit = "" if measure.unit == "ratio" else f" {measure.unit}"
    return amount(measure.value, measure.unit) + unit


def well_formed(text: str) -> str:
    """``text`` with lone surrogates, which UTF-8 can't encode, replaced by escapes."""
    return SURROGATES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
