"""The way out of the commands for what is made for programs and files, when it goes to stdout.

The rule: on a pipe it is as it was made; on a terminal nothing in it acts, hides or reorders what stands
around it (`mcpzip.model.sanitize`). What is made for people is harmless before it is laid out (`printable`).
"""

import sys

import click

from mcpzip.model import sanitize


def data(text: str) -> None:
    """Prints JSON; on a terminal it means the same."""
    _write(sanitize.json_text(text) if sys.stdout.isatty() else text)


def document(text: str) -> None:
    """Prints what is no JSON: Markdown, HTML, XML."""
    _write(sanitize.lines(text) if sys.stdout.isatty() else text)


def _write(text: str) -> None:
    click.echo(text, nl=not text.endswith("\n"))
