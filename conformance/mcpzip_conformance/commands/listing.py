"""The commands ``list`` and ``show`` (checks), ``subjects``, and ``schema`` (of reports)."""

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mcpzip_conformance import output
from mcpzip_conformance.check import GROUPS, Check
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.commands.completion import complete_checks, complete_families
from mcpzip_conformance.commands.options import Selection, group, level
from mcpzip_conformance.installation import bin_folder
from mcpzip_conformance.report import as_json
from mcpzip_conformance.selection import select
from mcpzip_conformance.subject import FEATURES, Subject, find, load_all, names


@click.command("list")
@group
@level
@click.option(
    "--json", "as_data", is_flag=True, help="As JSON: id, group, level, requirement, source, needs."
)
def list_command(groups: tuple[str, ...], levels: tuple[str, ...], as_data: bool) -> None:
    """List the checks, as Markdown tables."""
    checks = Selection(groups, (), levels).checks()
    if as_data:
        output.data(_json([_data(check) for check in checks]))
        return
    for name in dict.fromkeys(check.group for check in checks):
        click.echo(f"**{name}**: {GROUPS[name]}\n")
        click.echo("| check | level | requirement |\n|---|---|---|")
        for check in checks:
            if check.group == name:
                click.echo(f"| `{check.id}` | {check.level} | {_cell(check)} |")
        click.echo()
    click.echo(f"{len(checks)} checks")


@click.command("show")
@click.argument("check", shell_complete=complete_checks)
def show_command(check: str) -> None:
    """Show one check: its requirement and source."""
    [found] = select(ALL, ids=[check])
    click.echo(f"{found.id} ({found.level})\n")
    click.echo(found.requirement)
    click.echo(f"\nsource: {found.source}")
    for feature in found.needs:
        click.echo(f"needs a subject that {FEATURES[feature]}")
    if found.posix:
        click.echo("played on POSIX systems only")


@click.command("subjects")
@click.option(
    "--show",
    metavar="NAME",
    help="Print the file of a shipped one, to start one's own from.",
    shell_complete=complete_families,
)
@click.option("--json", "as_data", is_flag=True, help="As JSON: id, title, version, homepage, state, about.")
def subjects_command(show: str | None, as_data: bool) -> None:
    """List the shipped subjects, variants and all."""
    if show is not None:
        click.echo(find(show.partition(":")[0]).read_text(encoding="utf-8"), nl=False)
        return
    shipped = [subject for name in names() for subject in load_all(name)]
    if as_data:
        keys = ("id", "title", "version", "homepage", "about")
        output.data(
            _json([{key: getattr(one, key) for key in keys} | {"state": _state(one)} for one in shipped])
        )
        return
    table = Table(show_edge=False, pad_edge=False)
    for heading in ("subject", "title", "version", "state"):
        table.add_column(heading, overflow="fold")
    for one in shipped:
        table.add_row(*map(Text, (one.id, one.title, one.version, _state(one))))
    Console().print(table)


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of a report."""
    click.echo(as_json.render_schema(), nl=False)


def _state(subject: Subject) -> str:
    if subject.not_run:
        return f"not run here: {subject.not_run}"
    if subject.install is None:
        return "ready"
    there = bin_folder(subject.family, subject.install) is not None
    return "installed" if there else "not installed"


def _data(check: Check) -> dict[str, object]:
    keys = ("id", "group", "level", "requirement", "source", "needs", "posix")
    return {key: getattr(check, key) for key in keys}


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _cell(check: Check) -> str:
    return check.summary.replace("``", "`").replace("|", "\\|")
