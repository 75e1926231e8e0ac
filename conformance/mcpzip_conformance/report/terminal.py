"""The report for people at a terminal: a table, then every finding with its diff.

The rule: nothing of a subject's own words is taken for markup or obeyed by the terminal. More subjects than
fit are columns with a number, and a legend says whose each is.
"""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mcpzip_conformance.report.matrix import (
    NOT_RUN,
    Mark,
    Row,
    amount,
    by_check,
    figure,
    mark,
    marks,
    names,
    played,
    rows,
    score,
    sentence,
)
from mcpzip_conformance.transcript import printable
from mcpzip_conformance.verdict import Report, Status, SubjectReport, Verdict

WIDE = 4
"""So many subjects have a column under their title; more have numbers."""
CROWDED = 8
"""More than so many stand close, to fit in 100 columns."""
_STYLES = {
    Mark.PASSED: "green",
    Mark.FAILED: "bold red",
    Mark.KNOWN: "yellow",
    Mark.SURPRISE: "bold yellow",
    Mark.BROKEN: "bold magenta",
    Mark.SKIPPED: "dim",
}
_LOUD = (Mark.FAILED, Mark.SURPRISE, Mark.BROKEN)
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_DIFF_SHOWN = 40

Verdicts = Sequence[Mapping[str, Verdict]]


def render(report: Report, console: Console) -> None:
    """Print ``report``."""
    run = played(report)
    narrow = len(run) > WIDE
    if run:
        console.print(_table(report, run, console, narrow))
        if narrow:
            _legend(report, run, console)
    called = names(report)
    for subject in run:
        for verdict in subject.verdicts:
            _finding(console, called[subject.id], verdict)
        _reasons(console, called[subject.id], subject)
    for subject in report.subjects:
        console.print(Text(printable(f"{called[subject.id]}: {_sum(subject)}")))
    console.print(Text(f"{report.seconds:.1f} s"), style="dim")


def marked(verdict: Verdict, console: Console, *, short: bool = False) -> Text:
    """A verdict in a cell: its figures, if it measured; else a word, or a sign of a column or two."""
    if verdict.measured and not short:
        return Text(", ".join(figure(one) for one in verdict.measured))
    one = mark(verdict)
    word = one.word.upper() if one in _LOUD else one.word
    return Text(_sign(one, console) if short else word, style=_STYLES[one])


def _sign(one: Mark, console: Console) -> str:
    return one.plain if console.options.ascii_only else one.sign


def _table(report: Report, run: Sequence[SubjectReport], console: Console, narrow: bool) -> Table:
    table = Table(show_edge=False, pad_edge=False, padding=(0, 0 if len(run) > CROWDED else 1))
    table.add_column("check", no_wrap=True)
    table.add_column("level")
    for number, subject in enumerate(run, 1):
        title = str(number) if narrow else printable(names(report)[subject.id])
        table.add_column(Text(title), justify="right" if narrow else "left", overflow="fold")
    verdicts = [by_check(subject) for subject in run]
    for lines in rows(report).values():
        shown = [row for row in lines if not (narrow and row.unit)]
        for row in shown:
            cells = [_cell(row, of.get(row.check.id), console, narrow) for of in verdicts]
            label, level = Text(printable(row.label)), Text(printable(row.check.level))
            table.add_row(label, level, *cells, end_section=row is shown[-1])
    return table


def _cell(row: Row, verdict: Verdict | None, console: Console, short: bool) -> Text:
    if verdict is None:
        return Text("")
    one = row.of(verdict)
    return Text(amount(one.value, one.unit)) if one else marked(verdict, console, short=short)


def _legend(report: Report, run: Sequence[SubjectReport], console: Console) -> None:
    """Whose each number is, what each sign means, and the figures: narrow columns have no room."""
    console.print()
    for number, subject in enumerate(run, 1):
        console.print(Text(printable(f"{number:>3}  {names(report)[subject.id]} {subject.version}".rstrip())))
    signs = [f"{_sign(one, console)} {one.word}" for one in marks(report)]
    console.print(Text("     " + ", ".join(signs), style="dim"))
    verdicts = [by_check(subject) for subject in run]
    for row in (row for lines in rows(report).values() for row in lines if row.unit):
        told = [
            f"{number}: {marked(verdict, console) if one is None else amount(one.value, one.unit)}"
            for number, of in enumerate(verdicts, 1)
            if (verdict := of.get(row.check.id))
            for one in [row.of(verdict)]
        ]
        console.print(Text(printable(row.label), style="bold"))
        console.print(Text(f"  {'   '.join(told)}"))


def _finding(console: Console, name: str, verdict: Verdict) -> None:
    """A failure with its diff; a known one, or a pass that wasn't expected, in a line."""
    one = mark(verdict)
    if one in (Mark.PASSED, Mark.SKIPPED):
        return
    console.print()
    head = f"{verdict.check} ({verdict.level}), {name}"
    if one is Mark.KNOWN:
        console.print(Text(printable(f"{head}, known: {verdict.pinned}"), style="dim"))
        return
    console.print(Text(printable(head), style="bold"))
    console.print(Text(f"  {printable(sentence(verdict))}"))
    for line in verdict.diff[:_DIFF_SHOWN]:
        text = Text(f"    {printable(line)}", style=_DIFF_STYLES.get(line[:1], ""))
        console.print(text, soft_wrap=True)
    if len(verdict.diff) > _DIFF_SHOWN:
        more = f"    … {len(verdict.diff) - _DIFF_SHOWN} more lines; --json has them"
        console.print(Text(more, style="dim"))


def _reasons(console: Console, name: str, subject: SubjectReport) -> None:
    """Why checks were skipped, each reason once."""
    skipped = [verdict for verdict in subject.verdicts if verdict.status is Status.SKIPPED]
    for reason in dict.fromkeys(verdict.summary for verdict in skipped):
        count = sum(verdict.summary == reason for verdict in skipped)
        console.print(Text(printable(f"{name}: {count} skipped. {reason}"), style="dim"))


def _sum(subject: SubjectReport) -> str:
    if subject.not_run:
        return f"{NOT_RUN}. {subject.not_run}"
    found = score(subject)
    known = sum(mark(verdict) is Mark.KNOWN for verdict in subject.verdicts)
    counts = [
        (found.passed, "passed"),
        (found.failed, f"failed ({known} known)" if known else "failed"),
        (found.skipped, "skipped"),
        (found.broken, "broken"),
        (sum(bool(verdict.measured) for verdict in subject.verdicts), "measured"),
    ]
    told = [f"{count} {word}" for count, word in counts if count]
    took = f" in {subject.seconds:.1f} s" if subject.seconds else ""
    return f"{', '.join(told) or 'nothing played'}{took}"
