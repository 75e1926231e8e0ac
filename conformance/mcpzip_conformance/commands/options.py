"""Options that several commands have, each written once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import click

from mcpzip_conformance.check import LEVELS, Check
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.client import PATIENCE
from mcpzip_conformance.commands.completion import complete_checks, complete_groups, complete_levels
from mcpzip_conformance.runner import TIMEOUT, default_jobs
from mcpzip_conformance.selection import select

_Command = TypeVar("_Command", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Selection:
    """The options that select checks; an empty one selects all."""

    groups: tuple[str, ...]
    ids: tuple[str, ...]
    levels: tuple[str, ...]

    def checks(self) -> tuple[Check, ...]:
        """Those that fit. SelectionError."""
        return select(ALL, groups=self.groups, ids=self.ids, levels=self.levels)


@dataclass(frozen=True, slots=True)
class Limits:
    """jobs: checks at a time; timeout, patience: seconds for a check, and for an answer within it."""

    jobs: int
    timeout: float
    patience: float


group = click.option(
    "--group",
    "groups",
    multiple=True,
    help="Only checks of this group. May be repeated.",
    shell_complete=complete_groups,
)
level = click.option(
    "--level",
    "levels",
    multiple=True,
    help=f"Only checks of this level ({', '.join(LEVELS)}).",
    shell_complete=complete_levels,
)
check = click.option(
    "--check",
    "ids",
    multiple=True,
    help="Only this check. May be repeated.",
    shell_complete=complete_checks,
)
timeout = click.option(
    "--timeout", type=click.FloatRange(1), default=TIMEOUT, show_default=True, help="Seconds for one check."
)
patience = click.option(
    "--patience",
    type=click.FloatRange(0.1),
    default=PATIENCE,
    show_default=True,
    help="Seconds for one answer.",
)
jobs = click.option(
    "--jobs", type=click.IntRange(1), default=default_jobs(), show_default=True, help="Checks at a time."
)


def selection(command: _Command) -> _Command:
    """--group, --check and --level, as the arguments ``groups``, ``ids`` and ``levels``."""
    return group(check(level(command)))


def limits(command: _Command) -> _Command:
    """--jobs, --timeout and --patience."""
    return jobs(timeout(patience(command)))
