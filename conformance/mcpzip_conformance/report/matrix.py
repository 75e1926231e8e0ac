"""What every rendering shows in the same way: marks, rows, scores and figures.

The rule: a check is judged only where it passed or failed. What was skipped, what broke and what merely
measures counts neither for a subject nor against it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from mcpzip_conformance.verdict import Measure, Report, Requirement, Status, SubjectReport, Verdict

NOT_RUN = "not run here"
_SURROGATES = re.compile("[\ud800-\udfff]")


class Mark(Enum):
    """How one verdict is shown. sign: one that needs no colour; plain: the same in ASCII; meaning: a
    sentence for a legend."""

    PASSED = ("passed", "✓", "+", "The requirement is met.")
    FAILED = ("failed", "✗", "x", "The requirement is not met.")
    KNOWN = ("known", "(✗)", "(x)", "It fails, and is pinned as a known failure.")
    SURPRISE = ("unexpected pass", "✓!", "+!", "It passes, though it is pinned as a known failure.")
    BROKEN = ("broken", "?", "?", "The runner or the machine failed: nothing is known of the subject.")
    SKIPPED = ("skipped", "–", "-", "The subject declares that it lacks what the check needs.")

    def __init__(self, word: str, sign: str, plain: str, meaning: str) -> None:
        self.word, self.sign, self.plain, self.meaning = word, sign, plain, meaning


_MARKS = {
    Status.PASSED: Mark.PASSED,
    Status.FAILED: Mark.FAILED,
    Status.BROKEN: Mark.BROKEN,
    Status.SKIPPED: Mark.SKIPPED,
}


def mark(verdict: Verdict) -> Mark:
    """How ``verdict`` is shown; what is pinned has marks of its own."""
    if verdict.pinned and verdict.wrong:
        return Mark.KNOWN
    if verdict.pinned and verdict.status is Status.PASSED:
        return Mark.SURPRISE
    return _MARKS[verdict.status]


def marks(report: Report) -> list[Mark]:
    """Those that occur, in the order of a legend."""
    there = {mark(verdict) for one in report.subjects for verdict in one.verdicts if not verdict.measured}
    return [one for one in Mark if one in there]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: a check, or one figure of a check that measures (``name`` and ``unit``, else "")."""

    check: Requirement
    name: str = ""
    unit: str = ""

    @property
    def label(self) -> str:
        """The check's id; with it, what is measured and its unit."""
        if not self.unit:
            return self.check.id
        name = f" {self.name}" if self.name else ""
        return f"{self.check.id}{name} ({self.unit})"

    def of(self, verdict: Verdict | None) -> Measure | None:
        """This row's figure in ``verdict``."""
        measured = verdict.measured if verdict else ()
        return next((one for one in measured if (one.name, one.unit) == (self.name, self.unit)), None)


def rows(report: Report) -> dict[str, list[Row]]:
    """Every line, by group, in the order of the checks."""
    verdicts = [by_check(subject) for subject in report.subjects]
    made: dict[str, list[Row]] = {}
    for check in report.checks:
        measured = (one for of in verdicts if check.id in of for one in of[check.id].measured)
        names = dict.fromkeys((measure.name, measure.unit) for measure in measured)
        made.setdefault(check.group, []).extend([Row(check, *name) for name in names] or [Row(check)])
    return made


def by_check(subject: SubjectReport) -> Mapping[str, Verdict]:
    """The verdicts on ``subject`` by the check's id; none when it wasn't run."""
    return {verdict.check: verdict for verdict in subject.verdicts}


def played(report: Report) -> list[SubjectReport]:
    """The subjects that were run."""
    return [subject for subject in report.subjects if not subject.not_run]


def names(report: Report) -> dict[str, str]:
    """What to call each subject, by its id: its title, or the id where two have the same title."""
    titles = Counter(subject.title for subject in report.subjects)
    return {one.id: one.title if titles[one.title] == 1 else one.id for one in report.subjects}


@dataclass(frozen=True, slots=True)
class Score:
    """How many checks came out how."""

    passed: int
    failed: int
    skipped: int
    broken: int

    @property
    def judged(self) -> int:
        """Of how many it can be said that they passed or failed."""
        return self.passed + self.failed

    def __str__(self) -> str:
        return f"{self.passed}/{self.judged}" if self.judged else "–"


def score(subject: SubjectReport, level: str | None = None, group: str | None = None) -> Score:
    """The score of one level or all, in one group or all."""
    counts = dict.fromkeys(Status, 0)
    for verdict in subject.verdicts:
        if level in (None, verdict.level) and group in (None, verdict.group) and not verdict.measured:
            counts[verdict.status] += 1
    return Score(*(counts[one] for one in (Status.PASSED, Status.FAILED, Status.SKIPPED, Status.BROKEN)))


def findings(subject: SubjectReport, levels: Iterable[str]) -> Iterator[Verdict]:
    """What there is to say of ``subject``, level after level in the order given: whatever is wrong, and what
    passes though it is pinned."""
    for level in levels:
        for verdict in subject.verdicts:
            if verdict.level == level and mark(verdict) not in (Mark.PASSED, Mark.SKIPPED):
                yield verdict


def sentence(verdict: Verdict) -> str:
    """Why it isn't as it should be, and whether that is known."""
    match mark(verdict):
        case Mark.SURPRISE:
            return f"It passes, though it is pinned as known to fail: {verdict.pinned}"
        case Mark.KNOWN:
            return f"{verdict.summary} (known: {verdict.pinned})"
        case _:
            return verdict.summary


def amount(value: float, unit: str) -> str:
    """A figure in about three digits; tokens are whole."""
    digits = 0 if unit == "tokens" or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def figure(measure: Measure) -> str:
    """A figure with its unit. A ratio has none."""
    unit = "" if measure.unit == "ratio" else f" {measure.unit}"
    return amount(measure.value, measure.unit) + unit


def well_formed(text: str) -> str:
    """``text`` with lone surrogates, which no encoding can write, as escapes."""
    return _SURROGATES.sub(lambda one: f"\\u{ord(one[0]):04x}", text)
