"""The report for people at a terminal: a table a group, then every finding with its diff.

Nothing of a subject's own words is taken for markup.
"""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.verdict import Report, Status, SubjectReport, Verdict

_MARKS = {
    Status.PASSED: ("passed", "green"),
    Status.FAILED: ("FAILED", "bold red"),
    Status.SKIPPED: ("skipped", "dim"),
    Status.BROKEN: ("BROKEN", "bold magenta"),
}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_DIFF_SHOWN = 40


def render(report: Report, console: Console) -> None:
    """Print ``report``."""
    console.print(_table(report.subjects))
    for subject in report.subjects:
        for verdict in subject.verdicts:
            if verdict.status in (Status.FAILED, Status.BROKEN):
                _finding(console, subject, verdict)
        _reasons(console, subject)
    for subject in report.subjects:
        console.print(Text(_sum(subject)))
    console.print(Text(f"{report.seconds:.1f} s"), style="dim")


def _table(subjects: Sequence[SubjectReport]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("level")
    for subject in subjects:
        table.add_column(Text(subject.title), no_wrap=True)
    rows = list(zip(*(subject.verdicts for subject in subjects), strict=True))
    for index, row in enumerate(rows):
        last = index + 1 == len(rows) or rows[index + 1][0].group != row[0].group
        marks = [Text(*_MARKS[verdict.status]) for verdict in row]
        table.add_row(row[0].check, row[0].level, *marks, end_section=last)
    return table


def _finding(console: Console, subject: SubjectReport, verdict: Verdict) -> None:
    console.print()
    console.print(Text(f"{verdict.check} ({verdict.level}), {subject.title}", style="bold"))
    console.print(Text(f"  {verdict.summary}"))
    for line in verdict.diff[:_DIFF_SHOWN]:
        console.print(Text(f"    {line}", style=_DIFF_STYLES.get(line[:1], "")), soft_wrap=True)
    if len(verdict.diff) > _DIFF_SHOWN:
        console.print(
            Text(f"    … {len(verdict.diff) - _DIFF_SHOWN} more lines; --json has them", style="dim")
        )


def _reasons(console: Console, subject: SubjectReport) -> None:
    """Why checks were skipped, each reason once."""
    skipped = [verdict for verdict in subject.verdicts if verdict.status is Status.SKIPPED]
    for reason in dict.fromkeys(verdict.summary for verdict in skipped):
        count = sum(verdict.summary == reason for verdict in skipped)
        console.print(Text(f"{subject.title}: {count} skipped. {reason}", style="dim"))


def _sum(subject: SubjectReport) -> str:
    counts = [f"{subject.count(status)} {status.value}" for status in Status if subject.count(status)]
    return f"{subject.title}: {', '.join(counts)}"
