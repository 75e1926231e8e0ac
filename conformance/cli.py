"""``mcpzip-conformance``: judge proxies, list the checks, show one."""

import asyncio
import signal
import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from conformance.check import GROUPS, LEVELS, Check
from conformance.checks import ALL
from conformance.client import PATIENCE
from conformance.report import as_json, terminal
from conformance.runner import TIMEOUT, default_jobs, run
from conformance.selection import select
from conformance.subject import FEATURES, Subject
from conformance.verdict import Report, Verdict
from mcpzip.model.errors import McpzipError

INTERRUPTED = 130


class _Usage(click.Group):
    """Our errors as click's: one sentence, exit code 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except McpzipError as error:
            raise click.UsageError(str(error)) from error


@click.group(cls=_Usage, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Judge MCP proxies: the same scenes straight to a fake server and through the proxy, and what differs.

    A subject is the name of a shipped one or a .toml file that describes a proxy (docs/conformance.md).
    """


@main.command("run")
@click.argument("subjects", nargs=-1, required=True, metavar="SUBJECT...")
@click.option("--group", "groups", multiple=True, help="Only checks of this group. May be repeated.")
@click.option("--check", "ids", multiple=True, help="Only this check. May be repeated.")
@click.option("--level", "levels", multiple=True, help=f"Only checks of this level ({', '.join(LEVELS)}).")
@click.option("--json", "json", is_flag=True, help="Print the report as JSON.")
@click.option(
    "--jobs", type=click.IntRange(1), default=default_jobs(), show_default=True, help="Checks at a time."
)
@click.option(
    "--timeout", type=click.FloatRange(1), default=TIMEOUT, show_default=True, help="Seconds for one check."
)
@click.option(
    "--patience",
    type=click.FloatRange(0.1),
    default=PATIENCE,
    show_default=True,
    help="Seconds for one answer.",
)
def run_command(
    subjects: tuple[str, ...],
    groups: tuple[str, ...],
    ids: tuple[str, ...],
    levels: tuple[str, ...],
    json: bool,
    jobs: int,
    timeout: float,
    patience: float,
) -> None:
    """Play checks against proxies. Exit code 1 when a check of level must fails."""
    loaded = [Subject.load(name) for name in subjects]
    checks = select(ALL, groups=groups, ids=ids, levels=levels)
    try:
        report = asyncio.run(_run(loaded, checks, jobs, timeout, patience))
    except (KeyboardInterrupt, asyncio.CancelledError):
        click.echo("Interrupted: every process and file of the run is gone.", err=True)
        sys.exit(INTERRUPTED)
    if json:
        click.echo(as_json.render(report))
    else:
        terminal.render(report, Console())
    sys.exit(0 if report.clean() else 1)


async def _run(
    subjects: Sequence[Subject], checks: Sequence[Check], jobs: int, timeout: float, patience: float
) -> Report:
    """The run, with a progress bar where stderr is a terminal; SIGTERM and SIGHUP end it as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), task.cancel)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("checks", total=len(subjects) * len(checks))

        def done(subject: Subject, verdict: Verdict) -> None:
            progress.update(bar, advance=1, description=verdict.check)

        return await run(subjects, checks, jobs=jobs, timeout=timeout, patience=patience, done=done)


@main.command("list")
@click.option("--group", "groups", multiple=True, help="Only checks of this group. May be repeated.")
@click.option("--level", "levels", multiple=True, help=f"Only checks of this level ({', '.join(LEVELS)}).")
def list_command(groups: tuple[str, ...], levels: tuple[str, ...]) -> None:
    """List the checks, as Markdown tables."""
    checks = select(ALL, groups=groups, levels=levels)
    for group in dict.fromkeys(check.group for check in checks):
        click.echo(f"**{group}**: {GROUPS[group]}\n")
        click.echo("| check | level | requirement |\n|---|---|---|")
        for check in checks:
            if check.group == group:
                click.echo(f"| `{check.id}` | {check.level} | {_cell(check)} |")
        click.echo()
    click.echo(f"{len(checks)} checks")


@main.command("show")
@click.argument("check")
def show_command(check: str) -> None:
    """Show one check: what it asks for, and where that is written down."""
    [found] = select(ALL, ids=[check])
    click.echo(f"{found.id} ({found.level})\n")
    click.echo(found.requirement)
    click.echo(f"\nsource: {found.source}")
    for feature in found.needs:
        click.echo(f"needs a subject that {FEATURES[feature]}")
    if found.posix:
        click.echo("played on POSIX systems only")


def _cell(check: Check) -> str:
    return check.summary.replace("``", "`").replace("|", "\\|")
