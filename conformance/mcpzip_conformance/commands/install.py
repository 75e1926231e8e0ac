"""``install`` and ``uninstall``: subjects that come from a package registry."""

import signal
import sys
from collections.abc import Iterable
from types import FrameType

import click
from rich.console import Console

from mcpzip_conformance import installation
from mcpzip_conformance.commands.completion import complete_families
from mcpzip_conformance.commands.progress import INTERRUPTED
from mcpzip_conformance.errors import InstallError
from mcpzip_conformance.subject import Subject, load_all, names

_MB = 1_000_000


@click.command("install")
@click.argument("subjects", nargs=-1, metavar="SUBJECT...", shell_complete=complete_families)
@click.option("--force", is_flag=True, help="Install anew what is installed.")
@click.option("--list", "listing", is_flag=True, help="List what is installed, and what could be.")
def install_command(subjects: tuple[str, ...], force: bool, listing: bool) -> None:
    """Install the pinned packages of subjects from PyPI or npm, each in its own folder of the cache folder.

    That is $MCPZIP_CONFORMANCE_CACHE, or mcpzip-conformance where this system keeps caches.
    """
    if listing:
        _list()
        return
    if not subjects:
        raise click.UsageError("name a subject, or see --list")
    if sys.platform != "win32":
        signal.signal(signal.SIGTERM, _interrupt)
    console = Console(stderr=True)
    for name, subject in _families(subjects):
        if subject.install is None:
            click.echo(f"{name}: there is nothing to install, its file has no [install]")
            continue
        with console.status(f"{subject.family}: {' '.join(subject.install.pins)}"):
            try:
                place = installation.install(subject.family, subject.install, force=force, waiting=_waiting)
            except InstallError as error:
                raise click.ClickException(str(error)) from error
            except KeyboardInterrupt:
                click.echo(f"Interrupted: {subject.family} is not installed.", err=True)
                sys.exit(INTERRUPTED)
        click.echo(f"{name}: installed, its programs are in {place}")


@click.command("uninstall")
@click.argument("subjects", nargs=-1, metavar="SUBJECT...", shell_complete=complete_families)
@click.option("--all", "everything", is_flag=True, help="Everything that is installed.")
def uninstall_command(subjects: tuple[str, ...], everything: bool) -> None:
    """Remove what was installed for subjects, of any version."""
    if bool(subjects) == everything:
        raise click.UsageError("name a subject, or say --all")
    installed = installation.installed()
    names = [one.name for one in installed] if everything else [_family(name) for name in subjects]
    for name in dict.fromkeys(names):
        taken = sum(one.bytes() for one in installed if one.name == name)
        gone = installation.remove(name, _waiting)
        click.echo(f"{name}: {f'removed, {taken / _MB:.0f} MB' if gone else 'it is not installed'}")


def _families(names: Iterable[str]) -> Iterable[tuple[str, Subject]]:
    """The subject files that ``names`` mean, each once: variants have the pins of their file."""
    found: dict[tuple[str, tuple[str, ...]], tuple[str, Subject]] = {}
    for name in names:
        for subject in load_all(name):
            pins = subject.install.pins if subject.install is not None else ()
            found.setdefault((subject.family, pins), (name, subject))
    return found.values()


def _family(name: str) -> str:
    """The name of a subject's folders. If the subject's file is gone, the name as it is written."""
    known = {one.name for one in installation.installed()}
    return name if name in known else load_all(name)[0].family


def _list() -> None:
    wanted = {
        installation.folder(subject.family, subject.install): subject
        for name in names()
        for subject in load_all(name)
        if subject.install is not None
    }
    there = {one.folder: one for one in installation.installed()}
    click.echo(f"in {installation.cache()}")
    for folder, subject in wanted.items():
        one = there.pop(folder, None)
        state = f"installed, {one.bytes() / _MB:.0f} MB" if one is not None and one.whole else "not installed"
        click.echo(f"{subject.family}: {state}")
    for one in there.values():
        state = f"installed, {one.bytes() / _MB:.0f} MB" if one.whole else "begun, and never finished"
        click.echo(f"{one.name}: {state}; no shipped subject has these pins")


def _waiting() -> None:
    click.echo("Another install is under way: waiting for its end.", err=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
