"""``--help``: every command has examples, and each example is a command line that mcpzip accepts."""

import shlex
from collections.abc import Iterator

import click
import pytest

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
        words = shlex.split(line.split(" | ")[0], comments=True)
        if words[0] == "echo":  # how a shell's start file is changed
            words = shlex.split(words[1].removeprefix('eval "$(').removesuffix(')"'))
        if "=" in words[0]:  # a variable
            words = words[1:]
        for redirection in ("<", ">"):
            words = words[: words.index(redirection)] if redirection in words else words
        assert words.pop(0) == "mcpzip"
        context: click.Context | None = None
        current: click.Command = commands
        while isinstance(current, click.Group):
            context = current.make_context(current.name, words, context)
            _, found, words = current.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None
            current = found
        current.make_context(current.name, words, context)  # raises UsageError for what it doesn't know


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


def test_comments_stand_in_one_column() -> None:
    text = examples("mcpzip a", ("mcpzip b", "does b"), ("mcpzip long", "is long"))
    assert text.split("\n") == [
        "\b",
        "Examples:",
        "  mcpzip a",
        "  mcpzip b     # does b",
        "  mcpzip long  # is long",
    ]
