"""The report as one HTML page that needs no other files and no network.

The rule: every text from outside is escaped, by `e` here and by text nodes in ``page.js``. The page's content
security policy runs only its own script, identified by its digest. Without scripts the page is a table.
"""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from mcpzip.model import sanitize
from mcpzip_conformance.check import LEVELS
from mcpzip_conformance.report import as_json
from mcpzip_conformance.report.matrix import (
    NOT_RUN,
    Mark,
    Row,
    amount,
    by_check,
    figure,
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
from mcpzip_conformance.verdict import Report, SubjectReport, Verdict

UPRIGHT = 6
"""With more subjects than this, the column titles are rotated."""
MANY = 12
"""With more findings than this, the lists of findings are closed at first."""
_CODE = re.compile("``?([^`]+)``?")
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def render(report: Report) -> str:
    """``report`` as an HTML document."""
    css, js = _part("page.css"), _part("page.js")
    run = played(report)
    values = {
        "policy": _policy(css, js),
        "title": e(f"MCP proxy conformance, {report.started[:10]}"),
        "css": css,
        "js": js,
        "about": _about(report, run),
        "cards": "\n".join(_card(subject, names(report)[subject.id]) for subject in report.subjects),
        "legend": _legend(report),
        "matrix": _matrix(report, run),
        "findings": _findings(report, run),
        "runner": e(f"Python {report.python}, {report.platform}; {report.format}"),
        "report": _data(report),
    }
    return well_formed(_PLACE.sub(lambda place: values[place[1]], _part("page.html")))


def e(text: str) -> str:
    """``text`` escaped for an element or a quoted attribute. Characters that hide or reorder text become
    visible escapes.
    """
    return escape(sanitize.lines(text), quote=True)


def prose(text: str) -> str:
    """As `e`, but text between backticks becomes a ``code`` element."""
    return _CODE.sub(r"<code>\1</code>", e(text))


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(css: str, js: str) -> str:
    """The content security policy: only this style and this script, and no HTML made from strings."""
    style, script = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (css, js))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _data(report: Report) -> str:
    """The report as JSON for a script element: characters that could end the element are escaped."""
    text = as_json.render_short(report)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _about(report: Report, run: Sequence[SubjectReport]) -> str:
    day, _, time = report.started.partition("T")
    subjects = f"{len(run)} {'subject' if len(run) == 1 else 'subjects'}"
    when = f'<time datetime="{e(report.started)}">{e(day)}{e(f", {time[:5]} UTC") if time else ""}</time>'
    return f"{when} · {len(report.checks)} checks against {subjects} · {report.seconds:.0f} s"


# The cards


def _card(subject: SubjectReport, name: str) -> str:
    title = e(name)
    if subject.homepage.startswith(("https://", "http://")):
        title = f'<a href="{e(subject.homepage)}" rel="noopener noreferrer">{title}</a>'
    parts = [f'<h3>{title} <span class="version">{e(subject.version)}</span></h3>']
    if subject.about:
        parts.append(f'<p class="about">{e(subject.about)}</p>')
    if subject.not_run:
        parts.append(f'<p class="not-run"><b>{NOT_RUN}</b> {e(subject.not_run)}</p>')
        return f'<article class="card off">{"".join(parts)}</article>'
    parts.append(f'<dl class="scores">{"".join(_bar(subject, level) for level in LEVELS)}</dl>')
    measured = [(verdict, measure) for verdict in subject.verdicts for measure in verdict.measured]
    if measured:
        figures = (
            f"<div><dt>{e(_title_of(verdict, measure.name))}</dt><dd>{e(figure(measure))}</dd></div>"
            for verdict, measure in measured
        )
        parts.append(f'<dl class="figures">{"".join(figures)}</dl>')
    if subject.seconds:
        parts.append(f'<p class="took">judged in {subject.seconds:.1f} s</p>')
    return f'<article class="card">{"".join(parts)}</article>'


def _title_of(verdict: Verdict, name: str) -> str:
    """The title of a figure: the check without its group, and the figure's name if it has one."""
    check = verdict.check.removeprefix(f"{verdict.group}.").replace("-", " ")
    return f"{check}, {name}" if name else check


def _bar(subject: SubjectReport, level: str) -> str:
    """The score of a level in figures and as a bar with the shares of passed, failed and other checks."""
    counts = score(subject, level)
    parts = (("pass", counts.passed), ("fail", counts.failed), ("rest", counts.broken + counts.skipped))
    total = sum(count for _, count in parts)
    if not total:
        return ""
    x, bars = 0.0, ""
    for kind, count in parts:
        width = 100 * count / total
        bars += f'<rect class="{kind}" x="{x:.2f}" width="{width:.2f}" height="6"/>' if count else ""
        x += width
    more = [
        f"{count} {word}" for count, word in ((counts.skipped, "skipped"), (counts.broken, "broken")) if count
    ]
    rest = f" <small>{', '.join(more)}</small>" if more else ""
    return (
        f"<div><dt>{level}</dt><dd><b>{counts.passed}</b> of {counts.judged}{rest}</dd>"
        f'<dd class="bar"><svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'
        "</dd></div>"
    )


def _legend(report: Report) -> str:
    return "".join(
        f'<span title="{e(mark.meaning)}"><b class="{_class(mark)}" aria-hidden="true">{mark.sign}</b>'
        f" {e(mark.word)}</span>"
        for mark in marks(report)
    )


# The matrix


def _matrix(report: Report, run: Sequence[SubjectReport]) -> str:
    verdicts = [by_check(subject) for subject in run]
    width_class = "upright" if len(run) > UPRIGHT else "several" if len(run) > 2 else "few"
    heads = "".join(_head(names(report)[subject.id], subject.version) for subject in run)
    body = "".join(_group(group, lines, run, verdicts) for group, lines in rows(report).items())
    return (
        '<div class="box" tabindex="0" role="region" aria-labelledby="checks-title">'
        f'<table id="matrix" class="{width_class}"><thead><tr><th scope="col">check</th>{heads}</tr></thead>'
        f"{body}</table></div>"
    )


def _head(name: str, version: str) -> str:
    small = f"<small>{e(version)}</small>" if version else ""
    return f'<th scope="col" title="{e(f"{name} {version}".rstrip())}"><span>{e(name)}</span>{small}</th>'


def _group(
    group: str, lines: Sequence[Row], run: Sequence[SubjectReport], verdicts: Sequence[Mapping[str, Verdict]]
) -> str:
    scores = "".join(f"<td>{_of(subject, group)}</td>" for subject in run)
    head = f'<tr class="group"><th scope="rowgroup">{e(group)}</th>{scores}</tr>'
    return f"<tbody>{head}{''.join(_row(row, verdicts) for row in lines)}</tbody>\n"


def _of(subject: SubjectReport, group: str) -> str:
    counts = score(subject, group=group)
    return f'{counts.passed}<span aria-label=" of ">/</span>{counts.judged}' if counts.judged else ""


def _row(row: Row, verdicts: Sequence[Mapping[str, Verdict]]) -> str:
    check = row.check
    name = check.id.removeprefix(f"{check.group}.")
    measured = (
        f' <span class="what">{e(", ".join(filter(None, (row.name, row.unit))))}</span>' if row.unit else ""
    )
    level = "" if row.unit else f' <span class="level">{e(check.level)}</span>'
    cells = "".join(_cell(row, by_id.get(check.id)) for by_id in verdicts)
    return (
        f'<tr data-check="{e(check.id)}" class="{e(check.level)}"><th scope="row">'
        f'<span class="name">{e(name)}</span>{measured}{level}'
        f'<span class="asks">{prose(check.summary)}</span></th>{cells}</tr>'
    )


def _cell(row: Row, verdict: Verdict | None) -> str:
    if verdict is None:
        return "<td></td>"
    if measure := row.of(verdict):
        return f'<td class="figure">{e(amount(measure.value, measure.unit))}</td>'
    shown = mark(verdict)
    return f'<td class="{_class(shown)}" aria-label="{shown.word}"><b>{shown.sign}</b></td>'


def _class(mark: Mark) -> str:
    return mark.name.lower()


# The findings


def _findings(report: Report, run: Sequence[SubjectReport]) -> str:
    """One list of findings for each subject."""
    verdicts_by_subject = {subject.id: list(findings(subject, LEVELS)) for subject in run}
    opened = " open" if sum(map(len, verdicts_by_subject.values())) <= MANY else ""
    parts = (
        f"<details{opened}><summary><b>{e(names(report)[id])}</b> <span>{_levels(verdicts)}</span></summary>"
        f'<ul data-subject="{e(id)}">{"".join(map(_line, verdicts))}</ul></details>'
        for id, verdicts in verdicts_by_subject.items()
        if verdicts
    )
    return "\n".join(parts) or '<p class="nothing">None.</p>'


def _levels(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.level for verdict in verdicts)
    return ", ".join(f"{counts[level]} {level}" for level in LEVELS if counts[level])


def _line(verdict: Verdict) -> str:
    shown = mark(verdict)
    return (
        f'<li data-check="{e(verdict.check)}"><b class="{_class(shown)}" aria-label="{shown.word}">'
        f'{shown.sign}</b> <span class="level">{e(verdict.level)}</span> '
        f'<span class="said"><span class="name">{e(verdict.check)}</span> {e(sentence(verdict))}</span></li>'
    )
