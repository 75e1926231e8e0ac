"""Command lines of our programs that are read but not run."""

import shlex

import click
from mcpzip_conformance.cli import main as conformance
from mcpzip_fakes.cli import main as fake

from mcpzip.cli.commands import commands

_PROGRAMS: dict[str, click.Command] = {
    "mcpzip": commands,
    "mcpzip-conformance": conformance,
    "mcpzip-fake": fake,
}


def accepted(line: str) -> None:
    """Raises click.UsageError unless the program accepts ``line``, up to a pipe, redirection or comment."""
    words = shlex.split(line, comments=True)
    if words[0] == "echo":  # how a shell's start file is changed
        words = shlex.split(words[1].removeprefix('eval "$(').removesuffix(')"'))
    if "=" in words[0]:  # a variable
        words = words[1:]
    for end in ("|", "<", ">", ">>"):
        words = words[: words.index(end)] if end in words else words
    context: click.Context | None = None
    current = _PROGRAMS[words.pop(0)]
    while isinstance(current, click.Group):
        context = current.make_context(current.name, words, context)
        _, found, words = current.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        current = found
    current.make_context(current.name, words, context)
