"""``--help``: every command has examples, and each example is a command line that mcpzip accepts."""

import gc
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner
from helpers.command_lines import accepted

from mcpzip.cli import commands as module
from mcpzip.cli.commands import COMMANDS, commands
from mcpzip.cli.parameters import examples


def _all(
    group: click.Group = commands, parents: tuple[str, ...] = ("mcpzip",)
) -> Iterator[tuple[str, click.Command]]:
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield " ".join((*parents, name)), command
            if isinstance(command, click.Group):
                yield from _all(command, (*parents, name))


EVERY = dict(_all())
LEAVES = [path for path, command in EVERY.items() if not isinstance(command, click.Group)]


def _examples(command: click.Command) -> list[str]:
    marker, title, *rows = (command.epilog or "").split("\n")
    assert (marker, title) == ("\b", "Examples:")
    return [row.strip() for row in rows]


@pytest.mark.parametrize("path", [*LEAVES, "mcpzip"])
def test_each_example_is_accepted(path: str) -> None:
    command = EVERY.get(path, commands)
    for line in _examples(command):
        accepted(line)


@pytest.mark.parametrize("path", EVERY)
def test_help_fits_on_a_line_of_a_terminal(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = EVERY[path]
    shown = command.get_help(click.Context(command, info_name=path, terminal_width=100))
    summaries = shown.partition("\nCommands:\n")[2]
    assert "..." not in summaries, "a summary is cut; give the command a short_help"
    own = shown.split("  Examples:")[0]
    assert max(map(len, own.splitlines())) <= 100


def test_the_summary_has_each_command_once() -> None:
    shown = commands.get_help(click.Context(commands, info_name="mcpzip", terminal_width=80))
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and "  " in line[3:]]
    assert sorted(name for name in listed if name in COMMANDS) == sorted(set(COMMANDS) - {"list"})
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_help_imports_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr(module, "import_module", none)
    assert "Set up:" in commands.get_help(click.Context(commands, info_name="mcpzip"))


def test_the_garbage_collector_runs_in_a_command_and_is_left_alone_where_commands_are_listed() -> None:
    gc.disable()  # as `main` does
    try:
        assert dict(_all()).keys() == EVERY.keys()
        assert not gc.isenabled()
        assert CliRunner().invoke(commands, ["completion", "bash"]).exit_code == 0
        assert gc.isenabled()
    finally:
        gc.enable()


def test_comments_stand_in_one_column() -> None:
    text = examples("mcpzip a", ("mcpzip b", "does b"), ("mcpzip long", "is long"))
    assert text.split("\n") == [
        "\b",
        "Examples:",
        "  mcpzip a",
        "  mcpzip b     # does b",
        "  mcpzip long  # is long",
    ]
