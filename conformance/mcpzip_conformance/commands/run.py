"""``run``: play checks against subjects."""

import sys
from pathlib import Path

import click

from mcpzip_conformance import known_failures
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.commands import report_files
from mcpzip_conformance.commands.completion import complete_subjects
from mcpzip_conformance.commands.options import Limits, Selection, limits, selection
from mcpzip_conformance.commands.outputs import JsonCommand, Outputs, outputs
from mcpzip_conformance.commands.progress import play, subjects
from mcpzip_conformance.files import writable
from mcpzip_conformance.known_failures import Expectations
from mcpzip_conformance.report.changes import changes
from mcpzip_conformance.subject import family
from mcpzip_conformance.verdict import Report, Status

KNOWN = tuple(check.id for check in ALL)


@click.command("run", cls=JsonCommand)
@click.argument("names", nargs=-1, required=True, metavar="SUBJECT...", shell_complete=complete_subjects)
@selection
@click.option(
    "--expect", metavar="FILE", type=click.Path(), help="Known failures: exit 1 for what differs from them."
)
@click.option(
    "--write-expect",
    metavar="FILE",
    type=click.Path(),
    help="Pin what fails now in FILE; reasons in it stay.",
)
@click.option(
    "--against",
    metavar="VERSION|FILE.json",
    type=click.Path(),
    help="An earlier result: exit 1 for what got worse.",
)
@outputs
@limits
def run_command(
    names: tuple[str, ...],
    groups: tuple[str, ...],
    ids: tuple[str, ...],
    levels: tuple[str, ...],
    expect: str | None,
    write_expect: str | None,
    against: str | None,
    jobs: int,
    timeout: float,
    patience: float,
    **formats: str | None,
) -> None:
    """Play checks against proxies.

    SUBJECT is a shipped one (mcpzip), one variant of it (mcpzip:direct), or a .toml file.

    Exit code 1 if a check of level must fails; with --expect if a check fails that isn't in FILE, or one
    passes that is; with --against if a check got worse than in an earlier result: that of a version of
    mcpzip, as published, or one that --json wrote.
    """
    wanted = Outputs.of(**formats)
    known = _known(expect, write_expect)
    earlier = report_files.earlier(against) if against is not None else None
    chosen, checks = subjects(names), Selection(groups, ids, levels).checks()
    report = play(chosen, checks, Limits(jobs, timeout, patience), known.why)
    if write_expect is not None:
        there = {id for name in names for id in family(name)}
        known = known_failures.write(report, write_expect, KNOWN, there)
        click.echo(_pinned(known_failures.apply(report, known), write_expect), err=True)
    if expect is not None or write_expect is not None:
        report = known_failures.apply(report, known)
    found = changes(report, *earlier, KNOWN) if earlier is not None else None
    wanted.deliver(report, found)
    clean = found is None or not found.worse()
    if found is None or report.expecting:
        clean &= report.clean()
    sys.exit(0 if clean else 1)


def _known(expect: str | None, write_expect: str | None) -> Expectations:
    """The known failures, read before anything is played."""
    if expect is not None and write_expect is not None:
        raise click.UsageError(
            "--expect and --write-expect are one or the other: --write-expect keeps what stands in its file."
        )
    if expect is not None:
        return known_failures.read(expect, KNOWN)
    if write_expect is not None:
        writable(Path(write_expect))
        if Path(write_expect).exists():
            return known_failures.read(write_expect, KNOWN)
    return Expectations()


def _pinned(report: Report, file: str) -> str:
    verdicts = [verdict for subject in report.subjects for verdict in subject.verdicts]
    pinned = sum(verdict.wrong and bool(verdict.pinned) for verdict in verdicts)
    broken = sum(verdict.status is Status.BROKEN and not verdict.pinned for verdict in verdicts)
    sentence = f"{file}: {pinned} known {'failure' if pinned == 1 else 'failures'} pinned."
    return sentence + (f" Of {broken} nothing is known, and they are not." if broken else "")
