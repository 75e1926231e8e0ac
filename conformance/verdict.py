"""What a run gives: values, for any rendering."""

from dataclasses import dataclass
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
class Verdict:
    """One check on one subject. summary: why it isn't passed, one sentence; diff: straight against through
    the subject, where the check compares; transcript: what client and subject said, when it failed."""

    check: str
    group: str
    level: str
    status: Status
    seconds: float
    summary: str = ""
    diff: tuple[str, ...] = ()
    transcript: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """Every verdict on one subject, in the order of the checks."""

    id: str
    title: str
    about: str
    verdicts: tuple[Verdict, ...]

    def count(self, status: Status) -> int:
        """How many verdicts have this status."""
        return sum(verdict.status is status for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Report:
    """A run. started: ISO 8601, UTC; seconds: how long it took."""

    started: str
    seconds: float
    python: str
    platform: str
    subjects: tuple[SubjectReport, ...]
    format: str = FORMAT

    def clean(self) -> bool:
        """Whether no check of level must failed or broke."""
        return not any(
            verdict.level == "must" and verdict.status in (Status.FAILED, Status.BROKEN)
            for subject in self.subjects
            for verdict in subject.verdicts
        )
