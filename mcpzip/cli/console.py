"""The one way out: all that a command shows somebody is written here, and nowhere else in this folder.

The rules:

1. What people read is text, never markup, and harmless (`mcpzip.model.sanitize`) – on a pipe as well, where
   `less` or a log may end at a terminal. Colours and tables are ours alone.
2. What programs read – ``--json``, and the texts of a result on a pipe – are the bytes as they came. On a
   terminal JSON means the same, and a text is harmless.
3. Secrets are left out of what mcpzip says itself; of what a tool answers, nothing is.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import isfinite
from typing import TextIO

import click
from rich.console import Console, ConsoleOptions
from rich.highlighter import JSONHighlighter
from rich.measure import Measurement
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from mcpzip.model import sanitize
from mcpzip.model.redaction import redact
from mcpzip.server import stderr

WIDE = 200
"""Columns for a program, to which names cut in two are of no use."""
_LABEL = 60
"""Characters beside a progress bar: it has one line."""
_INDENT = "  "
_AS_JSON = JSONHighlighter()


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # it would exit with 1


_out = _Console(markup=False, highlight=False, emoji=False)
if not _out.is_terminal and "COLUMNS" not in os.environ:
    _out.width = WIDE
_err = _Console(stderr=True, markup=False, highlight=False, emoji=False)


def begin() -> None:
    """Has both streams take every character: programs get UTF-8 (RFC 8259, 8.1), a terminal what it has."""
    stderr.sanitize_logs()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")


# ---- sentences


def say(text: str, style: str = "") -> None:
    """Lines for people, on stdout, as wide as they are."""
    _out.print(Text(sanitize.lines(text), style), soft_wrap=True)


def note(text: str) -> None:
    """Lines for people, on stderr: what is no part of what was asked for."""
    _err.print(Text(sanitize.lines(redact(text))), soft_wrap=True)


def tell(text: str) -> None:
    """Lines for the person who signs in, on stderr. The address among them is whole: nothing is left out."""
    _err.print(Text(sanitize.lines(text)), soft_wrap=True)


def warn(warning: str) -> None:
    """Tells the person at the terminal that something is amiss."""
    stderr.warn(warning)


def refuse(error: click.ClickException) -> None:
    """What click has to say of a command line that can't be run."""
    told = io.StringIO()
    error.show(told)
    note(told.getvalue().rstrip("\n"))


# ---- tables and frames

Cell = str | Text


def styled(text: str, style: str = "") -> Text:
    """``text`` in one line and one style: what a cell is made of."""
    return Text(sanitize.one_line(text), style)


def stacked(*parts: Cell) -> Text:
    """``parts`` under one another, in one cell."""
    return Text("\n").join(_cell(part) for part in parts)


def _cell(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else styled(cell)


class _Hanging:
    """A text whose lines are indented but for the first: none looks like a row of its own."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        least, most = Measurement.get(console, options, self._text)
        later = max((line.cell_len for line in self._text.split("\n")[1:]), default=-len(_INDENT))
        return Measurement(least, max(most, later + len(_INDENT)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        room = options.max_width - len(_INDENT)
        for number, part in enumerate(self._text.split("\n")):
            whole = number == 0 and part.cell_len <= options.max_width
            lines = [part] if whole else part.wrap(console, max(room, 1), overflow="fold")
            for at, line in enumerate(lines):
                yield line if number == at == 0 else Text(_INDENT) + line


class Sheet:
    """A table. headings: ``>`` before one stands for numbers. wide: columns that share what room is left."""

    def __init__(self, *headings: str, wide: Sequence[str] = (), title: str = "", bold: str = "") -> None:
        self._table = Table(box=None, pad_edge=bool(title), title_justify="left")
        if title:
            self._table.title = Text(sanitize.one_line(title), "italic")
        for each in headings:
            name = each.lstrip(">")
            self._table.add_column(
                styled(name),
                justify="right" if each.startswith(">") else "left",
                style="bold green" if name == bold else None,
                ratio=1 if name in wide else None,
                overflow="fold",
            )

    def row(self, *cells: Cell) -> None:
        """One line of it. A string is literal: no markup is read."""
        first, *others = map(_cell, cells)
        self._table.add_row(_Hanging(first), *others)

    def show(self) -> None:
        """Prints it, if it has rows."""
        if self._table.row_count:
            _out.print(self._table)


def framed(text: str) -> None:
    """``text`` in a frame."""
    _out.print(Panel(Text(sanitize.lines(text)), border_style="dim", expand=False))


def headed(text: str) -> None:
    """``text`` with a line after it across the terminal."""
    _out.print(Rule(styled(text, "bold"), align="left"))


def pair(left: str, right: str) -> None:
    """Two parts of one line, the first of them in colour."""
    _out.print(Text.assemble((sanitize.lines(left), "bold cyan"), " ", sanitize.lines(right)), soft_wrap=True)


@contextmanager
def pictured(path: str | None, title: str) -> Iterator[None]:
    """Saves what is printed meanwhile as a picture at ``path``, if there is one."""
    _out.record = path is not None
    yield
    if path is not None:
        _out.save_svg(path, title=title)


# ---- waiting


@contextmanager
def waiting(what: str, *, aside: bool = False) -> Iterator[None]:
    """Says ``what`` is waited for. aside: on stderr, and only to a terminal."""
    shown = Text(sanitize.one_line(what))
    with (_err.status(shown) if _err.is_terminal else nullcontext()) if aside else _out.status(shown):
        yield


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on the terminal for ``total`` things that are under way. Gives what tells that one is done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal) as progress:
        bar = progress.add_task(sanitize.one_line(what, _LABEL), total=total)
        yield lambda: progress.advance(bar)


@contextmanager
def working(what: str) -> Iterator[Callable[[float, float | None, str], None]]:
    """A bar on the terminal for work of which somebody tells. Gives what takes how much is done, of how much,
    and a message, or "" to keep the last one; numbers that are none of a bar are passed over.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn("{task.percentage:>3.0f}%", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal) as progress:
        bar = progress.add_task(sanitize.one_line(what, _LABEL), total=None)

        def tell(done: float, total: float | None, message: str) -> None:
            known = total is not None and isfinite(total) and isfinite(done) and total > 0
            share = min(max(done / total, 0.0), 1.0) if known and total else 0.0
            label = sanitize.one_line(redact(message), _LABEL) if message else None
            progress.update(bar, completed=share, total=1.0 if known else None, description=label)

        yield tell


# ---- what programs read


def data(value: object) -> None:
    """``value`` as JSON."""
    _write(sys.stdout, json.dumps(value, ensure_ascii=False, indent=2) + "\n", sanitize.json_text)


def data_line(value: object) -> None:
    """``value`` as JSON on one line, at once."""
    _write(sys.stdout, json.dumps(value, ensure_ascii=False) + "\n", sanitize.json_text)
    sys.stdout.flush()


def raw(text: bytes) -> None:
    """JSON as it came, byte for byte; on a terminal it means the same."""
    if sys.stdout.isatty():
        _write(sys.stdout, text.decode("utf-8", "surrogateescape") + "\n", sanitize.json_text)
    else:
        click.echo(text)


def coloured(value: object) -> None:
    """``value`` as JSON for people."""
    text = sanitize.json_text(json.dumps(value, ensure_ascii=False, indent=2))
    _out.print(_AS_JSON(Text(sanitize.lines(text))), soft_wrap=True)


def answer(text: str, *, failed: bool = False) -> None:
    """A text of a result: as it came on a pipe, harmless on a terminal. failed: on stderr."""
    _write(sys.stderr if failed else sys.stdout, text, sanitize.lines, end="\n")


def _write(stream: TextIO, text: str, shown: Callable[[str], str], end: str = "") -> None:
    stream.write((shown(text) if stream.isatty() else text) + end)
