"""The report as a scorecard in GitHub's Markdown, for a page of a project's docs.

The rule: the page has figures, marks and the sentences of the verdicts, and no opinion. Text from a program
under test is escaped, so that it is never markup.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlencode

from mcpzip_conformance.check import LEVELS
from mcpzip_conformance.report.changes import Changes
from mcpzip_conformance.report.changes import lines as lines_of_changes
from mcpzip_conformance.report.matrix import (
    NOT_RUN,
    Row,
    Score,
    amount,
    by_check,
    findings,
    mark,
    marks,
    names,
    played,
    rows,
    score,
    sentence,
    well_formed,
)
from mcpzip_conformance.verdict import Report, Status, SubjectReport, Verdict

_SCORED = ("must", "should")
_LEAST = "may"
"""Scored too in a group without a must."""
_MINUTES = 120
"""Seconds from which a time is shown in minutes."""
_FIGURES = (
    "*A ÷ B* is a ratio: 2 is twice as much. *Tokens* are bytes of JSON, divided by four. A dash: there is "
    "no such figure."
)
_PLAIN = re.compile(r"[\w.:/+()-][\w.:/+() -]*")
_MARKUP = re.compile(r"[\\`*{}\[\]<>|~#&$]|(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}

_URL = re.compile(r"https?://[\w.~:/?#@!$&*+,;=%-]+")
"""A URL that needs no escaping in Markdown."""


def render(report: Report, details: str = "") -> str:
    """``report`` as a Markdown document. details: the address of the page that `as_html` made of the same
    report, to which each finding links; "" for none."""
    parts = [_title(report), _scores(report)]
    for group, lines in rows(report).items():
        judged = [row for row in lines if not row.check.measures]
        if judged:
            parts.append(f"## {escaped(group)}\n\n{_checks(report, judged)}")
    measured = [row for lines in rows(report).values() for row in lines if row.check.measures]
    if measured:
        parts.append(f"## Measured\n\n{_figures(report, measured)}")
    parts.append(f"## Findings of level {LEVELS[0]}\n\n{_findings(report, LEVELS[0], details)}")
    return well_formed("\n\n".join(parts)) + "\n"


def summary(report: Report, changes: Changes | None = None) -> str:
    """``report`` in short, for the page of a CI job: the scores, what changed, and the findings. The rest is
    in the other formats."""
    parts = [_title(report), _scores(report)]
    if changes is not None:
        told = "\n".join(f"- {escaped(line.strip())}" for line in lines_of_changes(changes))
        parts.append(f"## Against {escaped(changes.source)}\n\n{told or 'Nothing to compare.'}")
    parts += [f"## Findings of level {level}\n\n{_findings(report, level)}" for level in _SCORED]
    return well_formed("\n\n".join(parts)) + "\n"


def escaped(text: str) -> str:
    """``text`` on one line, with the characters of Markdown's markup escaped."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return _MARKUP.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), line)


def _title(report: Report) -> str:
    day, _, time = report.started.partition("T")
    run = played(report)
    subjects = f"{len(report.checks)} checks against {len(run)} {'subject' if len(run) == 1 else 'subjects'}"
    at = f", {time[:5]} UTC" if time else ""
    where = f"Python {report.python}, {report.platform}, {report.seconds:.0f} s"
    return f"# MCP proxy conformance, {escaped(day)}\n\n{subjects}{at}; {escaped(where)}."


def _scores(report: Report) -> str:
    measuring = {check.id for check in report.checks if check.measures}
    groups = [group for group, lines in rows(report).items() if any(not row.check.measures for row in lines)]
    levels = " and ".join(f"*{level}*" for level in _SCORED)
    scored = {group: _levels(report, group) for group in groups}
    least = [escaped(group) for group in groups if _LEAST in scored[group]]
    also = f" (*{', '.join(least)}*: also *{_LEAST}*)" if least else ""
    legend = (
        f"Passed/judged checks of each group: {levels}{also}. Judged checks are those that passed or failed; "
        "*skipped* checks need a feature that the subject declares that it lacks. *Time*: all checks of the "
        "subject, one after another; several were played at a time."
    )
    lines = []
    for subject in report.subjects:
        name = f"{_linked(subject, names(report)[subject.id])} {escaped(subject.version)}".rstrip()
        if subject.not_run:
            lines.append([name, f"*{NOT_RUN}*", *[""] * (len(groups) + 2)])
            continue
        judged = [verdict for verdict in subject.verdicts if verdict.check not in measuring]
        subject = replace(subject, verdicts=tuple(judged))
        each = [[score(subject, level) for level in _SCORED]]
        each += [[score(subject, level, group) for level in scored[group]] for group in groups]
        lines.append([name, *map(_both, each), str(score(subject).skipped), _took(subject.seconds)])
    table = _table(["subject", "all", *map(escaped, groups), "skipped", "time"], lines)
    reasons = [
        f"- *{NOT_RUN}*, {escaped(names(report)[subject.id])}: {escaped(subject.not_run)}"
        for subject in report.subjects
        if subject.not_run
    ]
    return "\n\n".join([legend, table, *(["\n".join(reasons)] if reasons else [])])


def _levels(report: Report, group: str) -> tuple[str, ...]:
    """The levels of which a group's score is shown."""
    of_group = {check.level for check in report.checks if check.group == group}
    return _SCORED if "must" in of_group or _LEAST not in of_group else (*_SCORED, _LEAST)


def _took(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _MINUTES else f"{seconds / 60:.0f} min"


def _both(scores: Sequence[Score]) -> str:
    return " · ".join(map(str, scores)) if any(score.judged for score in scores) else "–"


def _checks(report: Report, lines: Sequence[Row]) -> str:
    subjects = played(report)
    verdicts = [by_check(subject) for subject in subjects]
    table = _table(
        ["check", "level", *(escaped(names(report)[subject.id]) for subject in subjects)],
        (
            [_code(row.check.id), row.check.level, *(_cell(by_id.get(row.check.id)) for by_id in verdicts)]
            for row in lines
        ),
    )
    present = {mark(by_id[row.check.id]) for row in lines for by_id in verdicts if row.check.id in by_id}
    legend = ", ".join(f"{mark.sign} {mark.word}" for mark in marks(report) if mark in present)
    return f"{table}\n\n{legend}" if legend else table


def _figures(report: Report, lines: Sequence[Row]) -> str:
    subjects = played(report)
    verdicts = [by_check(subject) for subject in subjects]
    table = _table(
        ["check", "measured", *(escaped(names(report)[subject.id]) for subject in subjects)],
        (
            [
                _code(row.check.id),
                escaped(f"{row.name}, {row.unit}" if row.name else row.unit),
                *(_value(row, by_id.get(row.check.id)) for by_id in verdicts),
            ]
            for row in lines
            if row.unit
        ),
        right=range(2, 2 + len(subjects)),
    )
    return "\n\n".join([_FIGURES, table, *_why_not_measured(lines, verdicts)])


def _why_not_measured(lines: Sequence[Row], verdicts: Sequence[Mapping[str, Verdict]]) -> Iterator[str]:
    """A paragraph for each reason why a check has no figure of any subject."""
    reasons: dict[str, list[str]] = {}
    for row in lines:
        if not row.unit:
            for reason in {by_id[row.check.id].summary for by_id in verdicts if row.check.id in by_id}:
                reasons.setdefault(reason, []).append(_code(row.check.id))
    for reason, checks in reasons.items():
        if reason:
            yield f"{', '.join(checks)}: {escaped(reason)}"


def _findings(report: Report, level: str, details: str = "") -> str:
    parts = []
    for subject in played(report):
        lines = [
            f"- {_opened(_code(verdict.check), details, verdict, subject)}: {escaped(sentence(verdict))}"
            for verdict in findings(subject, [level])
        ]
        if lines:
            parts.append(f"**{escaped(names(report)[subject.id])}**\n\n" + "\n".join(lines))
    return "\n\n".join(parts) or "None."


def _opened(text: str, details: str, verdict: Verdict, subject: SubjectReport) -> str:
    """``text``, linked to the finding on the page ``details`` if there is one."""
    if not details:
        return text
    return f"[{text}]({details}#{urlencode({'check': verdict.check, 'subject': subject.id})})"


def _cell(verdict: Verdict | None) -> str:
    return mark(verdict).sign if verdict else ""


def _value(row: Row, verdict: Verdict | None) -> str:
    figure = row.of(verdict)
    if figure:
        return amount(figure.value, figure.unit)
    return "–" if verdict and verdict.status is Status.PASSED else _cell(verdict)


def _linked(subject: SubjectReport, name: str) -> str:
    title = escaped(name)
    if re.fullmatch(r"https?://[\w./~%:@?=&#+-]+", subject.homepage):
        return f"[{title}]({subject.homepage})" if _URL.fullmatch(subject.homepage) else title
    return title


def _code(text: str) -> str:
    return f"`{text}`" if _PLAIN.fullmatch(text) else escaped(text)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    rule = ["---:" if column in set(right) else "---" for column in range(len(head))]
    return "\n".join(_lines([head, rule, *lines]))


def _lines(lines: Iterable[Sequence[str]]) -> Iterator[str]:
    return (f"| {' | '.join(line)} |" for line in lines)
