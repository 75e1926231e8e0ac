"""Writes docs/commands.md: every command with its usage, text, arguments, options and examples.

Run it with ``python tools/commands.py`` or ``nox -s commands``. A test compares the page.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from mcpzip.cli.commands import SECTIONS, commands

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"

_HEAD = """\
# The commands

`tools/commands.py` writes this page from the program; `mcpzip COMMAND --help` says the same.
`mcpzip --config FILE COMMAND` is `mcpzip COMMAND --config FILE`. `--json` prints output for programs.
Exit codes: 0 done, 1 failed, 2 the request or the config is wrong.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    with click.Context(commands, info_name="mcpzip") as root:
        for title, names in SECTIONS.items():
            parts.append(f"## {title}\n")
            for name in names:
                command = commands.get_command(root, name)
                assert command is not None
                parts += _sections(f"mcpzip {name}", command, root)
    return "\n".join(parts)


def _sections(path: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    with click.Context(command, info_name=path.split()[-1], parent=parent) as context:
        yield f"### {path}\n"
        yield f"{_text(command)}\n"
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                yield from _sections(f"{path} {name}", child, context)
            return
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"```text\n{path} {usage}\n```\n"
        if rows := list(_options(command, context)):
            yield "\n".join(("| option | what it does |", "|---|---|", *rows, ""))
        if command.epilog:
            lines = [line[2:] for line in command.epilog.splitlines()[2:]]
            yield "\n".join(("```text", *lines, "```", ""))


def _text(command: click.Command) -> str:
    """The docstring, one line a paragraph."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(_escaped(" ".join(paragraph.split())) for paragraph in paragraphs)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None and "--help" not in parameter.opts:
            names, says = record
            yield f"| `{names.replace('|', chr(92) + '|')}` | {_escaped(says)} |"


def _escaped(text: str) -> str:
    return re.sub(r"([<>|*])", r"\\\1", text)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8", newline="\n")
