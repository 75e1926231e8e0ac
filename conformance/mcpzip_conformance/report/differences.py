"""The differences between two subjects, or between two runs of the same subject.

The rule: two verdicts differ if their marks differ, or if one of them is missing. Figures don't count as
differences; they are shown side by side with their ratio.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mcpzip_conformance.report.matrix import NOT_RUN, amount, by_check, mark, names
from mcpzip_conformance.report.terminal import marked
from mcpzip_conformance.transcript import printable
from mcpzip_conformance.verdict import Measure, Report, Requirement, SubjectReport, Verdict


@dataclass(frozen=True, slots=True)
class Difference:
    """A check with different verdicts. left, right: None if the check wasn't played there."""

    check: str
    level: str
    left: Verdict | None
    right: Verdict | None


@dataclass(frozen=True, slots=True)
class Change:
    """One figure on both sides; None if it wasn't measured there."""

    check: str
    name: str
    unit: str
    left: float | None
    right: float | None

    @property
    def ratio(self) -> float | None:
        """The right figure divided by the left one; None if one is missing or the left one is 0."""
        return self.right / self.left if self.left and self.right is not None else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two subjects compared. left, right: their names; alike: the number of checks with the same mark;
    not_run: the names of those that weren't run."""

    left: str
    right: str
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    alike: int
    not_run: tuple[str, ...] = ()


def compare(left: SubjectReport, right: SubjectReport, titles: tuple[str, str] | None = None) -> Comparison:
    """The differences between ``left`` and ``right``, in the order of the left one's checks, then those that
    only the right one has. titles: names for the two, instead of their own."""
    left_verdicts, right_verdicts = by_check(left), by_check(right)
    differences: list[Difference] = []
    changes: list[Change] = []
    alike = 0
    for check in dict.fromkeys((*left_verdicts, *right_verdicts)):
        left_verdict, right_verdict = left_verdicts.get(check), right_verdicts.get(check)
        changes += _changes(
            check,
            left_verdict.measured if left_verdict else (),
            right_verdict.measured if right_verdict else (),
        )
        if left_verdict and right_verdict and mark(left_verdict) is mark(right_verdict):
            alike += 1
        elif first := left_verdict or right_verdict:
            differences.append(Difference(check, first.level, left_verdict, right_verdict))
    titles = titles or _titles(left, right)
    not_run = [title for title, subject in zip(titles, (left, right), strict=True) if subject.not_run]
    return Comparison(*titles, tuple(differences), tuple(changes), alike, tuple(not_run))


def compare_runs(left: Report, right: Report) -> tuple[Comparison, ...]:
    """Compares each subject of ``left`` with the subject of the same id in ``right``. If both have only one,
    these two are compared, whatever their ids."""
    if len(left.subjects) == len(right.subjects) == 1:
        pairs = [(left.subjects[0], right.subjects[0])]
    else:
        by_id = {subject.id: subject for subject in right.subjects}
        pairs = [(subject, by_id[subject.id]) for subject in left.subjects if subject.id in by_id]
    left_names, right_names = names(left), names(right)
    return tuple(
        compare(
            left_subject,
            right_subject,
            (
                f"{left_names[left_subject.id]}, {left.started}",
                f"{right_names[right_subject.id]}, {right.started}",
            ),
        )
        for left_subject, right_subject in pairs
    )


def render(comparison: Comparison, console: Console, requirements: Iterable[Requirement] = ()) -> None:
    """Prints ``comparison``, with the summaries of the checks that are in ``requirements``."""
    summaries = {requirement.id: requirement.summary for requirement in requirements}
    titles = [printable(name) for name in (comparison.left, comparison.right)]
    for name in comparison.not_run:
        console.print(Text(f"{printable(name)}: {NOT_RUN}"))
    if comparison.differences:
        console.print(_differences(comparison, titles, console))
        for difference in comparison.differences:
            _reasons(console, difference, titles, summaries.get(difference.check, ""))
        console.print()
    if comparison.changes:
        console.print(_figures(comparison, titles))
        console.print()
    console.print(Text(f"{len(comparison.differences)} differ, {comparison.alike} alike"))


def _differences(comparison: Comparison, titles: list[str], console: Console) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("level")
    for name in titles:
        table.add_column(Text(name), overflow="fold")
    for difference in comparison.differences:
        sides = [
            marked(verdict, console) if verdict else Text("")
            for verdict in (difference.left, difference.right)
        ]
        table.add_row(Text(printable(difference.check)), Text(printable(difference.level)), *sides)
    return table


def _reasons(console: Console, difference: Difference, titles: list[str], summary: str) -> None:
    console.print()
    console.print(Text(printable(f"{difference.check} ({difference.level})"), style="bold"))
    if summary:
        console.print(Text(f"  {printable(summary)}", style="dim"))
    for name, verdict in zip(titles, (difference.left, difference.right), strict=True):
        text = f"{mark(verdict).word}. {verdict.summary}".rstrip() if verdict else "not played."
        console.print(Text(f"  {name}: {printable(text)}"))


def _figures(comparison: Comparison, titles: list[str]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("measured")
    for title in (*map(Text, titles), Text("ratio")):
        table.add_column(title, justify="right", overflow="fold")
    for change in comparison.changes:
        sides = ["" if value is None else amount(value, change.unit) for value in (change.left, change.right)]
        ratio = "" if change.ratio is None else f"× {amount(change.ratio, 'ratio')}"
        measured = printable(f"{change.name}, {change.unit}" if change.name else change.unit)
        table.add_row(Text(printable(change.check)), Text(measured), *sides, ratio)
    return table


def _changes(check: str, left: tuple[Measure, ...], right: tuple[Measure, ...]) -> list[Change]:
    left_values, right_values = (
        {(measure.name, measure.unit): measure.value for measure in side} for side in (left, right)
    )
    return [
        Change(check, *key, left_values.get(key), right_values.get(key))
        for key in dict.fromkeys((*left_values, *right_values))
    ]


def _titles(left: SubjectReport, right: SubjectReport) -> tuple[str, str]:
    """Their titles; if these are the same, with versions; if these are the same too, their ids."""
    if left.title != right.title:
        return left.title, right.title
    if left.version != right.version:
        return f"{left.title} {left.version}".rstrip(), f"{right.title} {right.version}".rstrip()
    return left.id, right.id
