"""The outputs of a report: the terminal, and files.

``--json`` alone prints, as in every command; the next word is its file if it ends in ``.json`` or is ``-``.
The others always need a file; ``-`` is stdout.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console

from mcpzip_conformance import output
from mcpzip_conformance.files import writable, written
from mcpzip_conformance.report import as_badge, as_html, as_json, as_junit, as_markdown, changes, terminal
from mcpzip_conformance.report.changes import Changes
from mcpzip_conformance.verdict import Report

STDOUT = "-"

_Command = TypeVar("_Command", bound=Callable[..., object])

_RENDERINGS: dict[str, tuple[Callable[[Report], str], str]] = {
    "json": (as_json.render, "as JSON, every finding with its diff and messages"),
    "junit": (as_junit.render, "as JUnit XML"),
    "markdown": (as_markdown.render, "as a Markdown scorecard"),
    "summary": (as_markdown.summary, "in short, in Markdown: scores and findings, for the page of a CI job"),
    "badge": (as_badge.render, "as the JSON of a badge of shields.io"),
    "html": (as_html.render, "as one HTML page"),
}


@dataclass(frozen=True, slots=True)
class Outputs:
    """The wanted output formats. files: by format, a path or `STDOUT`."""

    files: dict[str, str]

    @classmethod
    def of(cls, **files: str | None) -> "Outputs":
        """The requested outputs. Raises UsageError if two go to stdout, and McpzipError if a file can't be
        written, which is checked before anything is played."""
        requested = {name: file for name in _RENDERINGS if (file := files.get(name)) is not None}
        if list(requested.values()).count(STDOUT) > 1:
            both = " and ".join(f"--{name}" for name, file in requested.items() if file == STDOUT)
            raise click.UsageError(f"{both} would both go to stdout: give one of them a file.")
        for file in requested.values():
            if file != STDOUT:
                writable(Path(file))
        return cls(requested)

    def deliver(self, report: Report, against: Changes | None = None) -> None:
        """Write the files. Show the report on the terminal unless a format is printed there. against: what
        changed since an earlier result, if that was asked; the terminal and the summary show it."""
        for name, file in self.files.items():
            text = as_markdown.summary(report, against) if name == "summary" else _RENDERINGS[name][0](report)
            if file == STDOUT:
                (output.data if name == "json" else output.document)(text)
            else:
                written(Path(file), text if text.endswith("\n") else text + "\n")
        if STDOUT not in self.files.values():
            terminal.render(report, Console())
        if against is not None:
            changes.render(against, Console(stderr=STDOUT in self.files.values()))


class JsonCommand(click.Command):
    """A command whose ``--json`` needs no file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in click, but ``--json`` takes the next word only if that can be its file. Raises UsageError if
        that word may be meant as a report to read."""
        words = []
        for word, file, after in zip(args, [*args[1:], ""], [*args[2:], "", ""], strict=False):
            alone = word == "--json" and file != STDOUT and not file.endswith(".json")
            if word == "--json" and not alone and after.endswith(".json") and Path(file).exists():
                raise click.UsageError(
                    f"--json would write over {file}: write --json={STDOUT} to print, or --json={file}"
                )
            words.append(f"--json={STDOUT}" if alone else word)
        return super().parse_args(ctx, words)


def outputs(command: _Command) -> _Command:
    """--json, --junit and so on, as arguments for `Outputs.of`."""
    for name, (_, what) in reversed(_RENDERINGS.items()):
        metavar = "[FILE.json]" if name == "json" else "FILE"
        command = click.option(f"--{name}", metavar=metavar, type=click.Path(), help=f"The report {what}.")(
            command
        )
    return command
