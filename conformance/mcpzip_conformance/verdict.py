"""The results of a run: values for every output format.

The rule: a report is complete. It contains every check of its verdicts, with requirement and source, so that
an output format needs only the report.
"""

from dataclasses import dataclass, field
from enum import Enum

FORMAT = "mcpzip-conformance/1"


class Status(Enum):
    """passed; failed: the requirement isn't met; skipped: the subject lacks a feature that the check needs;
    broken: the runner or the machine failed, which is no result of the subject."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One check in a report. requirement: its whole text; summary: the first paragraph, on one line; source:
    a URL, or a section of this project's docs; measures: it measures, and passes with any figure."""

    id: str
    group: str
    level: str
    summary: str
    requirement: str
    source: str
    measures: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure. unit: ``tokens``, ``ms``, ``MB`` or ``ratio``."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One check on one subject.

    summary: why it isn't passed, one sentence; diff: direct against through the subject, if the check
    compares; straight, transcript: if it failed, the conversation with the server directly, and the one with
    the subject; measured: its figures; pinned: why it is known to fail, "" if it isn't.
    """

    check: str
    group: str
    level: str
    status: Status
    seconds: float
    summary: str = ""
    diff: tuple[str, ...] = ()
    straight: tuple[str, ...] = ()
    transcript: tuple[str, ...] = ()
    measured: tuple[Measure, ...] = ()
    pinned: str = ""

    @property
    def wrong(self) -> bool:
        """Whether it failed or broke."""
        return self.status in (Status.FAILED, Status.BROKEN)


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """Every verdict on one subject, in the order of the checks. version, homepage: from its file; not_run:
    why there are no verdicts, "" if it was run; seconds: duration."""

    id: str
    title: str
    about: str
    verdicts: tuple[Verdict, ...]
    version: str = ""
    homepage: str = ""
    not_run: str = ""
    seconds: float = 0.0

    def count(self, status: Status, level: str | None = None) -> int:
        """The number of verdicts with this status, of one level or of all."""
        return sum(
            verdict.status is status and level in (None, verdict.level) and not verdict.measured
            for verdict in self.verdicts
        )


@dataclass(frozen=True, slots=True)
class Report:
    """A run. started: ISO 8601, UTC; seconds: duration; checks: those that were played; expecting: whether
    the run had a list of known failures, from which every difference counts."""

    started: str
    seconds: float
    python: str
    platform: str
    checks: tuple[Requirement, ...]
    subjects: tuple[SubjectReport, ...]
    expecting: bool = False
    format: str = field(default=FORMAT)

    def unexpected(self, verdict: Verdict) -> bool:
        """Whether ``verdict`` makes the run fail: a must that failed or broke; with known failures, every
        other failure, every known failure that passed, and every check that broke."""
        if not self.expecting:
            return verdict.wrong and verdict.level == "must"
        if verdict.status is Status.BROKEN:
            return True
        return verdict.wrong != bool(verdict.pinned) and verdict.status is not Status.SKIPPED

    def clean(self) -> bool:
        """Whether no verdict was unexpected."""
        return not any(self.unexpected(verdict) for subject in self.subjects for verdict in subject.verdicts)
