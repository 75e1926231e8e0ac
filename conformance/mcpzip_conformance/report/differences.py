"""What differs between two subjects, or between two runs of the same one.

The rule: two verdicts differ when their marks do, or when only one of the two was given. Figures never
differ by themselves: each is shown beside the other with their ratio.
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
    """A check on which the two differ. left, right: None where it wasn't played."""

    check: str
    level: str
    left: Verdict | None
    right: Verdict | None


@dataclass(frozen=True, slots=True)
class Change:
    """One figure on both sides, None where it wasn't measured."""

    check: str
    name: str
    unit: str
    left: float | None
    right: float | None

    @property
    def ratio(self) -> float | None:
        """How many times the left figure the right one is; None when that can't be said."""
        return self.right / self.left if self.left and self.right is not None else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two subjects side by side. left, right: what to call them; alike: on how many checks they agree."""

    left: str
    right: str
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    alike: int
    not_run: tuple[str, ...] = ()


def compare(left: SubjectReport, right: SubjectReport, called: tuple[str, str] | None = None) -> Comparison:
    """Where ``left`` and ``right`` differ, by the left one's checks, then those that only the right one has.
    called: what to call the two, instead of their titles."""
    ours, theirs = by_check(left), by_check(right)
    differences: list[Difference] = []
    changes: list[Change] = []
    alike = 0
    for check in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(check), theirs.get(check)
        changes += _changes(check, one.measured if one else (), other.measured if other else ())
        if one and other and mark(one) is mark(other):
            alike += 1
        elif first := one or other:
            differences.append(Difference(check, first.level, one, other))
    called = called or _called(left, right)
    not_run = [name for name, one in zip(called, (left, right), strict=True) if one.not_run]
    return Comparison(*called, tuple(differences), tuple(changes), alike, tuple(not_run))


def compare_runs(left: Report, right: Report) -> tuple[Comparison, ...]:
    """Each subject of ``left`` with the one of that id in ``right``; where both have but one, these two."""
    if len(left.subjects) == len(right.subjects) == 1:
        pairs = [(left.subjects[0], right.subjects[0])]
    else:
        there = {subject.id: subject for subject in right.subjects}
        pairs = [(subject, there[subject.id]) for subject in left.subjects if subject.id in there]
    ours, theirs = names(left), names(right)
    return tuple(
        compare(one, other, (f"{ours[one.id]}, {left.started}", f"{theirs[other.id]}, {right.started}"))
        for one, other in pairs
    )


def render(comparison: Comparison, console: Console, requirements: Iterable[Requirement] = ()) -> None:
    """Print ``comparison``; with ``requirements``, what each check asks for."""
    asks = {requirement.id: requirement.summary for requirement in requirements}
    titles = [printable(name) for name in (comparison.left, comparison.right)]
    for name in comparison.not_run:
        console.print(Text(f"{printable(name)}: {NOT_RUN}"))
    if comparison.differences:
        console.print(_differences(comparison, titles, console))
        for one in comparison.differences:
            _reasons(console, one, titles, asks.get(one.check, ""))
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
    for one in comparison.differences:
        sides = [marked(verdict, console) if verdict else Text("") for verdict in (one.left, one.right)]
        table.add_row(Text(printable(one.check)), Text(printable(one.level)), *sides)
    return table


def _reasons(console: Console, one: Difference, titles: list[str], asks: str) -> None:
    console.print()
    console.print(Text(printable(f"{one.check} ({one.level})"), style="bold"))
    if asks:
        console.print(Text(f"  {printable(asks)}", style="dim"))
    for name, verdict in zip(titles, (one.left, one.right), strict=True):
        said = f"{mark(verdict).word}. {verdict.summary}".rstrip() if verdict else "not played."
        console.print(Text(f"  {name}: {printable(said)}"))


def _figures(comparison: Comparison, titles: list[str]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("measured")
    for title in (*map(Text, titles), Text("ratio")):
        table.add_column(title, justify="right", overflow="fold")
    for one in comparison.changes:
        sides = ["" if value is None else amount(value, one.unit) for value in (one.left, one.right)]
        ratio = "" if one.ratio is None else f"× {amount(one.ratio, 'ratio')}"
        what = printable(f"{one.name}, {one.unit}" if one.name else one.unit)
        table.add_row(Text(printable(one.check)), Text(what), *sides, ratio)
    return table


def _changes(check: str, left: tuple[Measure, ...], right: tuple[Measure, ...]) -> list[Change]:
    ours, theirs = ({(one.name, one.unit): one.value for one in side} for side in (left, right))
    return [Change(check, *key, ours.get(key), theirs.get(key)) for key in dict.fromkeys((*ours, *theirs))]


def _called(left: SubjectReport, right: SubjectReport) -> tuple[str, str]:
    """Their titles; with versions or ids where the titles are the same."""
    if left.title != right.title:
        return left.title, right.title
    if left.version != right.version:
        return f"{left.title} {left.version}".rstrip(), f"{right.title} {right.version}".rstrip()
    return left.id, right.id
