"""The output of all commands; no other module of this folder writes to stdout or stderr.

The rules:

1. Texts for people are never read as markup, and are sanitized (`mcpzip.model.sanitize`), also on a pipe,
   because `less` or a log may show them on a terminal. Only this module makes colours and tables.
2. Output for programs (``--json``, and the texts of a result on a pipe) is written byte for byte. On a
   terminal JSON is escaped to the same value, and a text is sanitized.
3. Secrets are redacted in mcpzip's own messages, and never in a tool's result.
"""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import isfinite
from typing import TYPE_CHECKING, TextIO

import click
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, ConsoleOptions
from rich.highlighter import JSONHighlighter
from rich.measure import Measurement
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from mcpzip.model import sanitize
from mcpzip.model.redaction import redact
from mcpzip.server import stderr

if TYPE_CHECKING:
    from rich.progress import Progress  # imported only for a bar: it is a third of what rich imports

WIDE = 200
"""Columns on a pipe, so that no name is wrapped for a program."""
_LABEL = 60
"""Characters beside a progress bar, which has one line."""
_INDENT = "  "
_GAP = 2
"""Spaces between the columns of a table."""
_LEAST = 30
"""Columns that a wide column of a table has at least."""
_AS_JSON = JSONHighlighter()


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would exit with 1


_out = _Console(markup=False, highlight=False, emoji=False)
if not _out.is_terminal and "COLUMNS" not in os.environ:
    _out.width = WIDE
_err = _Console(stderr=True, markup=False, highlight=False, emoji=False)


def configure_streams() -> None:
    """Makes both streams accept every character: UTF-8 on a pipe (RFC 8259, 8.1), the terminal's encoding
    otherwise.
    """
    stderr.sanitize_logs()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")


# ---- sentences


def say(text: str, style: str = "") -> None:
    """Prints lines for people on stdout, without wrapping."""
    _out.print(Text(sanitize.lines(text), style), soft_wrap=True)


def wrapped(text: str, style: str = "", *, indent: int = 2) -> None:
    """Prints a paragraph for people on stdout, redacted, indented, and wrapped at words."""
    width = max(_out.width - indent, 20)
    for line in Text(sanitize.lines(redact(text)), style).wrap(_out, width, overflow="fold"):
        _out.print(Text(" " * indent) + line, soft_wrap=True)


def note(text: str) -> None:
    """Prints lines for people on stderr, redacted: remarks that are no part of the result."""
    _err.print(Text(sanitize.lines(redact(text))), soft_wrap=True)


def tell_person(text: str) -> None:
    """Prints lines for the person who signs in on stderr, not redacted: the sign-in URL must be complete."""
    _err.print(Text(sanitize.lines(text)), soft_wrap=True)


def warn(warning: str) -> None:
    """Prints a warning on stderr, redacted."""
    stderr.warn(warning)


def usage_error(error: click.ClickException) -> None:
    """Prints click's message for a wrong command line."""
    message = io.StringIO()
    error.show(message)
    note(message.getvalue().rstrip("\n"))


def clear() -> None:
    """Clears a terminal, before what is shown again; on a pipe writes an empty line."""
    if _out.is_terminal:
        _out.clear()
    else:
        say("")


# ---- tables and frames

Cell = str | Text


def styled(text: str, style: str = "") -> Text:
    """A cell with ``text`` on one line."""
    return Text(sanitize.one_line(text), style)


def stack(*parts: Cell) -> Text:
    """A cell with ``parts`` on lines of their own."""
    return Text("\n").join(_cell(part) for part in parts)


def _cell(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else styled(cell)


class _HangingIndent:
    """A text whose lines after the first are indented, so that none looks like a row of the table."""

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


class Table:
    """A table, or where that would be too narrow, its rows one below the other. A cell of the first
    column is split only if it is longer than a line.

    headings: ``>`` before one right-aligns its column. wide: columns that share the remaining width.
    optional: columns that are left out where there is no room, the first one first. bold: a column in bold.
    """

    def __init__(
        self,
        *headings: str,
        wide: Sequence[str] = (),
        optional: Sequence[str] = (),
        title: str = "",
        bold: str = "",
    ) -> None:
        self._names = [heading.lstrip(">") for heading in headings]
        self._right = [heading.startswith(">") for heading in headings]
        self._wide, self._optional, self._title, self._bold = wide, optional, title, bold
        self._rows: list[list[Text]] = []

    def row(self, *cells: Cell) -> None:
        """Adds a row. Strings are not read as markup."""
        self._rows.append([_cell(cell) for cell in cells])

    def show(self) -> None:
        """Prints the table, if it has rows."""
        if not self._rows:
            return
        columns = list(range(len(self._names)))
        for name in self._optional:
            if not self._has_room(columns):
                columns.remove(self._names.index(name))
        if not self._has_room(columns):
            for row in self._rows:
                self._print_stacked(row, columns)
            return
        table = self._table(columns)
        if _out.is_terminal or _out.record:
            _out.print(table)
            return
        with _out.capture() as printed:
            _out.print(table)
        for line in printed.get().splitlines():  # a program, or a file, has no use for the padding
            _out.print(Text(line.rstrip()), soft_wrap=True)

    def _has_room(self, columns: Sequence[int]) -> bool:
        """Whether each cell of ``columns`` fits on a line, and wide ones have `_LEAST` columns."""
        used = 0
        for at in columns:
            lines = [line for row in self._rows for line in row[at].split("\n")]
            longest = max([len(self._names[at]), *(line.cell_len for line in lines)])
            used += min(longest, _LEAST) if self._names[at] in self._wide else longest
        return used + _GAP * (len(columns) - 1) <= _out.width

    def _print_stacked(self, row: Sequence[Text], columns: Sequence[int]) -> None:
        """Prints the first cell on a line, and the others indented below it, numbers with their headings."""
        _out.print(_HangingIndent(Text(row[0].plain, "bold")))
        short: list[Text] = []
        below: list[Text] = []
        for at in columns[1:]:
            if row[at].plain:
                cells = below if self._names[at] in self._wide else short
                cells.append(Text(f"{self._names[at]} ") + row[at] if self._right[at] else row[at])
        width = max(_out.width - len(_INDENT), 1)
        for cell in (Text("  ").join(short), *below):
            for line in cell.wrap(_out, width, overflow="fold") if cell.plain else ():
                _out.print(Text(_INDENT) + line, soft_wrap=True)

    def _table(self, columns: Sequence[int]) -> RichTable:
        table = RichTable(box=None, pad_edge=bool(self._title), title_justify="left")
        if self._title:
            table.title = Text(sanitize.one_line(self._title), "italic")
        for at in columns:
            name = self._names[at]
            table.add_column(
                styled(name),
                justify="right" if self._right[at] else "left",
                style="bold green" if name == self._bold else None,
                ratio=1 if name in self._wide else None,
                overflow="fold",
            )
        for row in self._rows:
            first, *others = (row[at] for at in columns)
            table.add_row(_HangingIndent(first), *others)
        return table


def panel(text: str) -> None:
    """Prints ``text`` in a frame."""
    _out.print(Panel(Text(sanitize.lines(text)), border_style="dim", expand=False))


def rule(text: str) -> None:
    """Prints ``text`` followed by a horizontal line."""
    _out.print(Rule(styled(text, "bold"), align="left"))


def pair(left: str, right: str) -> None:
    """Prints one line of two parts, the first in colour."""
    _out.print(Text.assemble((sanitize.lines(left), "bold cyan"), " ", sanitize.lines(right)), soft_wrap=True)


SVG = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""rich's template of a picture, without its font from another host."""


@contextmanager
def save_svg(path: str | None, title: str) -> Iterator[None]:
    """Saves the output of the context as an SVG at ``path``, unless that is None."""
    _out.record = path is not None
    yield
    if path is not None:
        _out.save_svg(path, title=title, code_format=SVG)


# ---- waiting


def _is_plain() -> bool:
    """Whether the user wants nothing that moves (https://no-color.org), or the terminal can't show it."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")


def _is_still() -> bool:
    """Whether nothing on stderr may move."""
    return not _err.is_terminal or _is_plain()


@contextmanager
def spinner(text: str, *, aside: bool = False) -> Iterator[None]:
    """Shows ``text`` while the context runs. aside: on stderr, and only on a terminal."""
    shown = Text(sanitize.one_line(text))
    if aside and _is_plain():
        if _err.is_terminal:
            _err.print(shown, soft_wrap=True)
        yield
        return
    with (_err.status(shown) if _err.is_terminal else nullcontext()) if aside else _out.status(shown):
        yield


@contextmanager
def counting_bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on the terminal for ``total`` items. Yields the function that counts one as done."""
    with _progress(percentage=False) as progress:
        bar = progress.add_task(sanitize.one_line(what, _LABEL), total=total)
        yield lambda: progress.advance(bar)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, float | None, str], None]]:
    """A progress bar on the terminal for a tool call. Yields the function that takes progress, total and a
    message, or "" to keep the last message; without a finite total the bar shows activity only.
    """
    with _progress(percentage=True) as progress:
        bar = progress.add_task(sanitize.one_line(what, _LABEL), total=None)

        def update(done: float, total: float | None, message: str) -> None:
            known = total is not None and isfinite(total) and isfinite(done) and total > 0
            share = min(max(done / total, 0.0), 1.0) if known and total else 0.0
            label = sanitize.one_line(redact(message), _LABEL) if message else None
            progress.update(bar, completed=share, total=1.0 if known else None, description=label)

        yield update


def _progress(*, percentage: bool) -> "Progress":
    """A bar with a label and the time, on the terminal only. percentage: with that instead of the numbers."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    done = TaskProgressColumn("{task.percentage:>3.0f}%", markup=False) if percentage else None
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        done or TextColumn("{task.completed}/{task.total}", markup=False),
        TimeElapsedColumn(),
        console=_err,
        transient=True,
        disable=not _err.is_terminal or _is_plain(),
    )


# ---- output for programs


def data(value: object) -> None:
    """Prints ``value`` as JSON."""
    _write(sys.stdout, json.dumps(value, ensure_ascii=False, indent=2) + "\n", sanitize.json_text)


def data_line(value: object) -> None:
    """Prints ``value`` as JSON on one line, and flushes."""
    _write(sys.stdout, json.dumps(value, ensure_ascii=False) + "\n", sanitize.json_text)
    sys.stdout.flush()


def raw(text: bytes) -> None:
    """Prints JSON byte for byte; on a terminal, escaped to the same value."""
    if sys.stdout.isatty():
        _write(sys.stdout, text.decode("utf-8", "surrogateescape") + "\n", sanitize.json_text)
    else:
        click.echo(text)


def pretty_json(value: object) -> None:
    """Prints ``value`` as indented, coloured JSON for people."""
    text = sanitize.json_text(json.dumps(value, ensure_ascii=False, indent=2))
    _out.print(_AS_JSON(Text(sanitize.lines(text))), soft_wrap=True)


def answer(text: str, *, failed: bool = False) -> None:
    """Prints a text of a result: unchanged on a pipe, sanitized on a terminal. failed: to stderr."""
    _write(sys.stderr if failed else sys.stdout, text, sanitize.lines, end="\n")


def _write(stream: TextIO, text: str, shown: Callable[[str], str], end: str = "") -> None:
    stream.write((shown(text) if stream.isatty() else text) + end)
