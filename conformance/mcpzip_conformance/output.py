"""Writes the commands' output for programs and files to stdout.

The rule: on a pipe output is unchanged; on a terminal, characters that act, hide or reorder text are escaped
(`mcpzip.model.sanitize`). Output for people is sanitized earlier (`printable`).
"""

import sys

import click

from mcpzip.model import sanitize


def data(text: str) -> None:
    """Prints JSON; on a terminal with escapes that don't change its meaning."""
    _write(sanitize.json_text(text) if sys.stdout.isatty() else text)


def document(text: str) -> None:
    """Prints a document that is not JSON: Markdown, HTML, XML."""
    _write(sanitize.lines(text) if sys.stdout.isatty() else text)


def _write(text: str) -> None:
    click.echo(text, nl=not text.endswith("\n"))
