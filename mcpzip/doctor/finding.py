"""What a check finds: a problem, the evidence for it, and what fixes it.

The rules: a finding says what to do about it, as a command wherever one does it. A fix is offered only for
what is safe without asking: it loses nothing that can't be made again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from mcpzip.model.redaction import redact

Level = Literal["error", "warning", "note"]
"""error: something doesn't work. warning: something works worse than it could, or is unsafe. note: worth
knowing, and nothing is wrong."""

LEVELS: tuple[Level, ...] = ("error", "warning", "note")

GROUPS = {
    "config": "Config",
    "environment": "Environment",
    "commands": "Commands",
    "servers": "Servers",
    "sign-in": "Sign-ins",
    "tools": "Tools",
    "texts": "What servers say",
    "files": "Files",
    "clients": "Clients",
    "installation": "Installation",
    "processes": "Processes",
}
"""The groups of checks, in the order in which they are shown, and their titles."""

Fix = Callable[[], str]
"""Fixes a finding. Returns what was done, as a sentence. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem.

    check: its kind, ``group.name``, the same in every version. subject: what it is about: a server, a file, a
    client, a variable. problem: a sentence. evidence: lines that show it. whole: all such lines, for
    programs, if ``evidence`` is a part of them. remedy: sentences. command: a shell
    command that fixes it, or "". fix: fixes it without asking, None if that isn't safe.
    """

    level: Level
    check: str
    subject: str
    problem: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    command: str = ""
    fix: Fix | None = field(default=None, compare=False, repr=False)
    whole: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """The key of its group in `GROUPS`."""
        return self.check.partition(".")[0]

    def as_json(self) -> dict[str, object]:
        """For programs, redacted."""
        return {
            "level": self.level,
            "check": self.check,
            "subject": redact(self.subject),
            "problem": redact(self.problem),
            "evidence": [redact(line) for line in self.whole or self.evidence],
            "remedy": redact(self.remedy),
            "command": redact(self.command),
            "fixable": self.fix is not None,
        }


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """``findings`` by group, the worst first."""
    groups = list(GROUPS)
    return sorted(findings, key=lambda one: (groups.index(one.group), LEVELS.index(one.level)))
