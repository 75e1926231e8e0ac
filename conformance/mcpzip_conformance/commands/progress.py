"""Plays checks with a progress bar, and ends cleanly on Ctrl-C."""

import asyncio
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import click
import msgspec
from mcpzip_fakes.sdk import check_sdk
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from mcpzip_conformance.check import Check
from mcpzip_conformance.commands.options import Limits
from mcpzip_conformance.errors import InstallError, SelectionError
from mcpzip_conformance.installation import bin_folder
from mcpzip_conformance.runner import run
from mcpzip_conformance.subject import Subject, load_all
from mcpzip_conformance.verdict import Report, SubjectReport, Verdict

INTERRUPTED = 130

_T = TypeVar("_T")


def subjects(names: Iterable[str]) -> tuple[Subject, ...]:
    """The subjects with these ``names`` (FAMILY, FAMILY:VARIANT, or a path), each once, if they are
    installed. Raises SelectionError, SubjectError, InstallError, SdkMissingError."""
    check_sdk()
    found: dict[str, Subject] = {}
    missing: list[str] = []
    for name in names:
        for subject in load_all(name):
            if found.setdefault(subject.id, subject) != subject:
                raise SelectionError(f"Two subjects are called {subject.id!r}: rename one of the files.")
            if not _installed(subject):
                missing.append(name)
    if missing:
        words = list(dict.fromkeys(missing))
        are = "isn't" if len(words) == 1 else "aren't"
        raise InstallError(
            f"{' and '.join(words)} {are} installed: run mcpzip-conformance install {' '.join(words)}."
        )
    return tuple(found.values())


def one_subject(name: str) -> Subject:
    """The subject with this ``name``. Raises SelectionError if there are several, and as `subjects`."""
    Subject.load(name)
    [subject] = subjects([name])
    return subject


def play(
    chosen: Sequence[Subject],
    checks: Sequence[Check],
    limits: Limits,
    known: Callable[[str, str], object] = lambda subject, check: False,
) -> Report:
    """Play the checks, with a progress bar if stderr is a terminal. known: whether a failure of a check (id)
    on a subject (id) is known; known failures aren't counted in the bar. If the run is interrupted, the
    program exits with `INTERRUPTED`. A subject whose file says that it isn't run here is played if its
    program is installed."""
    ready = [msgspec.structs.replace(one, not_run="") for one in chosen if is_here(one)]
    report = _play(ready, checks, limits, known)
    by_id = {one.id: one for one in report.subjects}
    return replace(report, subjects=tuple(by_id.get(one.id) or _not_run(one) for one in chosen))


def _play(
    chosen: Sequence[Subject], checks: Sequence[Check], limits: Limits, known: Callable[[str, str], object]
) -> Report:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[news]}", style="red", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=len(chosen) * len(checks), news="")
        failed = 0

        def done(subject: Subject, verdict: Verdict) -> None:
            nonlocal failed
            failed += verdict.wrong and not known(subject.id, verdict.check)
            news = f"{failed} failed" if failed else ""
            progress.update(bar, advance=1, description=f"{subject.id} {verdict.check}", news=news)

        work = run(
            chosen, checks, jobs=limits.jobs, timeout=limits.timeout, patience=limits.patience, done=done
        )
        return until_interrupted(work)


def until_interrupted(work: Coroutine[object, object, _T]) -> _T:
    """Run ``work`` and return its result. SIGTERM and SIGHUP interrupt it like Ctrl-C: it cleans up, and the
    program exits."""

    async def stoppable() -> _T:
        task = asyncio.current_task()
        assert task is not None
        if sys.platform != "win32":
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                    asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await work

    try:
        return asyncio.run(stoppable())
    except (KeyboardInterrupt, asyncio.CancelledError):
        click.echo("Interrupted: every process and file of the run is gone.", err=True)
        sys.exit(INTERRUPTED)


def is_here(subject: Subject) -> bool:
    """Whether the subject's program is installed. Not checked if the file doesn't exclude the subject from
    runs."""
    if not subject.not_run:
        return True
    if subject.install is not None:
        return bin_folder(subject.family, subject.install) is not None
    program = subject.start.command[0]
    return "{" in program or shutil.which(program) is not None


def _not_run(subject: Subject) -> SubjectReport:
    return SubjectReport(
        id=subject.id,
        title=subject.title,
        about=subject.about,
        verdicts=(),
        version=subject.version,
        homepage=subject.homepage,
        not_run=subject.not_run,
    )


def _installed(subject: Subject) -> bool:
    return (
        subject.install is None
        or bool(subject.not_run)
        or bin_folder(subject.family, subject.install) is not None
    )
