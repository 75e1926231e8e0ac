"""What a run gives: values, for any rendering.

The rule: a report is whole. It names every check it holds a verdict on, with what that asks for and where it
is written, so that a rendering needs nothing but the report.
"""

from dataclasses import dataclass, field
from enum import Enum

FORMAT = "mcpzip-conformance/1"


class Status(Enum):
    """passed; failed: the requirement isn't met; skipped: the subject declares that it lacks what the check
    needs; broken: the runner or the machine failed, and nothing is known of the subject."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One check as a reader needs it. requirement: its whole text; summary: the first paragraph, on one line;
    source: a URL, or a place in this project's docs; measures: it measures, and passes with any figure."""

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

    summary: why it isn't passed, one sentence; diff: straight against through the subject, where the check
    compares; straight, transcript: what was said straight to the server, and what client and subject said,
    when it failed; measured: what it measured; pinned: why it is known to fail, "" when it isn't.
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
        """Whether it failed, or nothing came of it."""
        return self.status in (Status.FAILED, Status.BROKEN)


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """Every verdict on one subject, in the order of the checks. version, homepage: as its file says; not_run:
    why there are no verdicts, "" when it was run; seconds: how long it took."""

    id: str
    title: str
    about: str
    verdicts: tuple[Verdict, ...]
    version: str = ""
    homepage: str = ""
    not_run: str = ""
    seconds: float = 0.0

    def count(self, status: Status, level: str | None = None) -> int:
        """How many verdicts have this status, of one level or of all."""
        return sum(
            verdict.status is status and level in (None, verdict.level) and not verdict.measured
            for verdict in self.verdicts
        )


@dataclass(frozen=True, slots=True)
class Report:
    """A run. started: ISO 8601, UTC; seconds: how long it took; checks: those that were played; expecting:
    known failures were pinned, and whatever differs from them counts."""

    started: str
    seconds: float
    python: str
    platform: str
    checks: tuple[Requirement, ...]
    subjects: tuple[SubjectReport, ...]
    expecting: bool = False
    format: str = field(default=FORMAT)

    def unexpected(self, verdict: Verdict) -> bool:
        """Whether ``verdict`` makes the run fail: a must that failed or broke; with known failures pinned,
        every failure that isn't pinned, every pass that is, and whatever broke."""
        if not self.expecting:
            return verdict.wrong and verdict.level == "must"
        if verdict.status is Status.BROKEN:
            return True
        return verdict.wrong != bool(verdict.pinned) and verdict.status is not Status.SKIPPED

    def clean(self) -> bool:
        """Whether no verdict was unexpected."""
        return not any(self.unexpected(verdict) for subject in self.subjects for verdict in subject.verdicts)
