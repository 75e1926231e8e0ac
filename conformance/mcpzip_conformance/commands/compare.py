"""``compare``: two subjects, or two runs, and the checks on which they differ."""

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace

import click
import msgspec
from rich.console import Console

from mcpzip_conformance import output
from mcpzip_conformance.commands import report_files
from mcpzip_conformance.commands.completion import complete_subjects
from mcpzip_conformance.commands.options import Limits, Selection, limits, selection
from mcpzip_conformance.commands.progress import play, subjects
from mcpzip_conformance.errors import SelectionError
from mcpzip_conformance.report.differences import Comparison, compare, compare_runs, render
from mcpzip_conformance.verdict import Report


@click.command("compare")
@click.argument("left", metavar="A", shell_complete=complete_subjects)
@click.argument("right", metavar="B", shell_complete=complete_subjects)
@click.option("--json", "as_data", is_flag=True, help="As JSON: the fields of report/differences.py.")
@selection
@limits
def compare_command(
    left: str,
    right: str,
    as_data: bool,
    groups: tuple[str, ...],
    ids: tuple[str, ...],
    levels: tuple[str, ...],
    jobs: int,
    timeout: float,
    patience: float,
) -> None:
    """Show the checks on which A and B differ: each is a subject, which is played, or a report, FILE.json.

    If one is a report, only its checks are played. Of two reports, the common subjects are compared, or the
    only ones.

    Exit code 0 when they are alike, 1 when they differ.
    """
    chosen = Selection(groups, ids, levels)
    first, second = _sides((left, right), chosen, Limits(jobs, timeout, patience))
    comparisons = _compared(first, second, saved=_is_file(left) or _is_file(right))
    if not comparisons:
        has = [", ".join(one.id for one in side.subjects) or "nothing" for side in (first, second)]
        raise SelectionError(
            f"{left} has {has[0]} and {right} has {has[1]}: name one subject on each side, or reports that "
            "have subjects in common."
        )
    if as_data:
        output.data(msgspec.json.format(msgspec.json.encode(comparisons)).decode())
    else:
        requirements = {one.id: one for one in (*first.checks, *second.checks)}
        for comparison in comparisons:
            render(comparison, Console(), requirements.values())
    sys.exit(1 if any(one.differences for one in comparisons) else 0)


def _sides(names: Sequence[str], chosen: Selection, limits: Limits) -> list[Report]:
    """A report for each of ``names``, read from a file or played. Raises SelectionError if no check or
    subject is left to compare."""
    checks = chosen.checks()
    everything = chosen == Selection((), (), ())
    read = {name: report_files.read(name) for name in names if _is_file(name)}
    for name, report in read.items():
        there = {one.id for one in report.checks}
        checks = tuple(check for check in checks if check.id in there)
        # Two reports, whole, may be another runner's, and have checks that aren't ours.
        if not checks and not (everything and all(map(_is_file, names))):
            raise SelectionError(f"{name} has none of the checks: ask for others, or for all of them.")
    wanted = None if everything else {check.id for check in checks}
    live = {name: subjects([name]) for name in names if name not in read}
    return [
        _narrowed(read[name], wanted) if name in read else play(live[name], checks, limits) for name in names
    ]


def _compared(left: Report, right: Report, *, saved: bool) -> tuple[Comparison, ...]:
    """The comparisons of the subjects that belong together, with the dates of the runs if one is
    ``saved``."""
    if not saved and len(left.subjects) == len(right.subjects) == 1:
        return (compare(left.subjects[0], right.subjects[0]),)
    return compare_runs(left, right)


def _narrowed(report: Report, wanted: Collection[str] | None) -> Report:
    """``report`` with only the checks ``wanted``; all if None."""
    if wanted is None:
        return report
    narrowed = (
        replace(one, verdicts=tuple(verdict for verdict in one.verdicts if verdict.check in wanted))
        for one in report.subjects
    )
    checks = tuple(check for check in report.checks if check.id in wanted)
    return replace(report, checks=checks, subjects=tuple(narrowed))


def _is_file(name: str) -> bool:
    return name.endswith(".json")
