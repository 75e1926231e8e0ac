"""The report for a terminal: a table, then every finding with its diff.

The rule: text from a subject is never markup and never controls the terminal. With many subjects the columns
have numbers, and a legend has the titles.
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
"""With more subjects than this, the columns have numbers instead of titles."""
CROWDED = 8
"""With more subjects than this, there is no space between the columns, so that they fit in 100 characters."""
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
    """Prints ``report``."""
    run = played(report)
    narrow = len(run) > WIDE
    if run:
        console.print(_table(report, run, console, narrow))
        if narrow:
            _legend(report, run, console)
    titles = names(report)
    for subject in run:
        for verdict in subject.verdicts:
            _finding(console, titles[subject.id], verdict)
        _reasons(console, titles[subject.id], subject)
    for subject in report.subjects:
        console.print(Text(printable(f"{titles[subject.id]}: {_sum(subject)}")))
    console.print(Text(f"{report.seconds:.1f} s"), style="dim")


def marked(verdict: Verdict, console: Console, *, short: bool = False) -> Text:
    """A verdict for a table cell: its figures if it has some and ``short`` is false; otherwise the word of
    its mark, or with ``short`` the sign."""
    if verdict.measured and not short:
        return Text(", ".join(figure(measure) for measure in verdict.measured))
    shown = mark(verdict)
    word = shown.word.upper() if shown in _LOUD else shown.word
    return Text(_sign(shown, console) if short else word, style=_STYLES[shown])


def _sign(mark: Mark, console: Console) -> str:
    return mark.plain if console.options.ascii_only else mark.sign


def _table(report: Report, run: Sequence[SubjectReport], console: Console, narrow: bool) -> Table:
    table = Table(show_edge=False, pad_edge=False, padding=(0, 0 if len(run) > CROWDED else 1))
    table.add_column("check", no_wrap=True)
    table.add_column("level")
    for number, subject in enumerate(run, 1):
        title = str(number) if narrow else printable(names(report)[subject.id])
        table.add_column(Text(title), justify="right" if narrow else "left", overflow="fold")
    verdicts = [by_check(subject) for subject in run]
    for lines in rows(report).values():
        visible = [row for row in lines if not (narrow and row.unit)]
        for row in visible:
            cells = [_cell(row, by_id.get(row.check.id), console, narrow) for by_id in verdicts]
            label, level = Text(printable(row.label)), Text(printable(row.check.level))
            table.add_row(label, level, *cells, end_section=row is visible[-1])
    return table


def _cell(row: Row, verdict: Verdict | None, console: Console, short: bool) -> Text:
    if verdict is None:
        return Text("")
    measure = row.of(verdict)
    return Text(amount(measure.value, measure.unit)) if measure else marked(verdict, console, short=short)


def _legend(report: Report, run: Sequence[SubjectReport], console: Console) -> None:
    """The subjects by number, the meaning of the signs, and the figures, for which the columns are too
    narrow."""
    console.print()
    for number, subject in enumerate(run, 1):
        console.print(Text(printable(f"{number:>3}  {names(report)[subject.id]} {subject.version}".rstrip())))
    signs = [f"{_sign(mark, console)} {mark.word}" for mark in marks(report)]
    console.print(Text("     " + ", ".join(signs), style="dim"))
    verdicts = [by_check(subject) for subject in run]
    for row in (row for lines in rows(report).values() for row in lines if row.unit):
        values = []
        for number, by_id in enumerate(verdicts, 1):
            if verdict := by_id.get(row.check.id):
                measure = row.of(verdict)
                value = marked(verdict, console) if measure is None else amount(measure.value, measure.unit)
                values.append(f"{number}: {value}")
        console.print(Text(printable(row.label), style="bold"))
        console.print(Text(f"  {'   '.join(values)}"))


def _finding(console: Console, name: str, verdict: Verdict) -> None:
    """A failure with its diff; a known failure on one line."""
    shown = mark(verdict)
    if shown in (Mark.PASSED, Mark.SKIPPED):
        return
    console.print()
    head = f"{verdict.check} ({verdict.level}), {name}"
    if shown is Mark.KNOWN:
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
    """The reasons why checks were skipped, each with the number of checks."""
    skipped = [verdict for verdict in subject.verdicts if verdict.status is Status.SKIPPED]
    for reason in dict.fromkeys(verdict.summary for verdict in skipped):
        count = sum(verdict.summary == reason for verdict in skipped)
        console.print(Text(printable(f"{name}: {count} skipped. {reason}"), style="dim"))


def _sum(subject: SubjectReport) -> str:
    if subject.not_run:
        return f"{NOT_RUN}. {subject.not_run}"
    counts = score(subject)
    known = sum(mark(verdict) is Mark.KNOWN for verdict in subject.verdicts)
    parts = [
        (counts.passed, "passed"),
        (counts.failed, f"failed ({known} known)" if known else "failed"),
        (counts.skipped, "skipped"),
        (counts.broken, "broken"),
        (sum(bool(verdict.measured) for verdict in subject.verdicts), "measured"),
    ]
    texts = [f"{count} {word}" for count, word in parts if count]
    took = f" in {subject.seconds:.1f} s" if subject.seconds else ""
    return f"{', '.join(texts) or 'nothing played'}{took}"
