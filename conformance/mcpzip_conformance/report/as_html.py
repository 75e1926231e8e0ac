"""The report as one HTML page without other files or network.

The rule: every text that isn't ours goes through `e` here, and through text nodes in ``page.js``; the policy
of the page lets nothing run but its own script, known by its digest. Without a script the page is a table.
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
"""So many subjects have their titles written straight; more, upright."""
MANY = 12
"""More findings than these are folded, a subject each."""
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
    """``text`` as HTML that shows it, in an element or a quoted attribute. What hides or reorders the text
    around it, as no tag has to, is shown as its escape.
    """
    return escape(sanitize.lines(text), quote=True)


def prose(text: str) -> str:
    """`e`, with what stands between backticks as code."""
    return _CODE.sub(r"<code>\1</code>", e(text))


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(css: str, js: str) -> str:
    """What the page may do: its own style, its own script, and no HTML made of strings by it."""
    style, script = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (css, js))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _data(report: Report) -> str:
    """The report in a script element: what could end it is written as an escape."""
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
    measured = [(verdict, one) for verdict in subject.verdicts for one in verdict.measured]
    if measured:
        figures = (
            f"<div><dt>{e(_called(verdict, one.name))}</dt><dd>{e(figure(one))}</dd></div>"
            for verdict, one in measured
        )
        parts.append(f'<dl class="figures">{"".join(figures)}</dl>')
    if subject.seconds:
        parts.append(f'<p class="took">judged in {subject.seconds:.1f} s</p>')
    return f'<article class="card">{"".join(parts)}</article>'


def _called(verdict: Verdict, name: str) -> str:
    """What a figure is of: the check without its group, and the figure's name where it has one."""
    check = verdict.check.removeprefix(f"{verdict.group}.").replace("-", " ")
    return f"{check}, {name}" if name else check


def _bar(subject: SubjectReport, level: str) -> str:
    """A level's score in figures and as a bar, whose parts are the passed, the failed and the rest."""
    found = score(subject, level)
    parts = (("pass", found.passed), ("fail", found.failed), ("rest", found.broken + found.skipped))
    total = sum(count for _, count in parts)
    if not total:
        return ""
    at, bars = 0.0, ""
    for kind, count in parts:
        width = 100 * count / total
        bars += f'<rect class="{kind}" x="{at:.2f}" width="{width:.2f}" height="6"/>' if count else ""
        at += width
    more = [
        f"{count} {word}" for count, word in ((found.skipped, "skipped"), (found.broken, "broken")) if count
    ]
    rest = f" <small>{', '.join(more)}</small>" if more else ""
    return (
        f"<div><dt>{level}</dt><dd><b>{found.passed}</b> of {found.judged}{rest}</dd>"
        f'<dd class="bar"><svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'
        "</dd></div>"
    )


def _legend(report: Report) -> str:
    return "".join(
        f'<span title="{e(one.meaning)}"><b class="{_class(one)}" aria-hidden="true">{one.sign}</b>'
        f" {e(one.word)}</span>"
        for one in marks(report)
    )


# The matrix


def _matrix(report: Report, run: Sequence[SubjectReport]) -> str:
    verdicts = [by_check(subject) for subject in run]
    kind = "upright" if len(run) > UPRIGHT else "several" if len(run) > 2 else "few"
    heads = "".join(_head(names(report)[subject.id], subject.version) for subject in run)
    bodies = "".join(_group(group, lines, run, verdicts) for group, lines in rows(report).items())
    return (
        '<div class="box" tabindex="0" role="region" aria-labelledby="checks-title">'
        f'<table id="matrix" class="{kind}"><thead><tr><th scope="col">check</th>{heads}</tr></thead>'
        f"{bodies}</table></div>"
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
    found = score(subject, group=group)
    return f'{found.passed}<span aria-label=" of ">/</span>{found.judged}' if found.judged else ""


def _row(row: Row, verdicts: Sequence[Mapping[str, Verdict]]) -> str:
    check = row.check
    name = check.id.removeprefix(f"{check.group}.")
    what = (
        f' <span class="what">{e(", ".join(filter(None, (row.name, row.unit))))}</span>' if row.unit else ""
    )
    level = "" if row.unit else f' <span class="level">{e(check.level)}</span>'
    cells = "".join(_cell(row, of.get(check.id)) for of in verdicts)
    return (
        f'<tr data-check="{e(check.id)}" class="{e(check.level)}"><th scope="row">'
        f'<span class="name">{e(name)}</span>{what}{level}'
        f'<span class="asks">{prose(check.summary)}</span></th>{cells}</tr>'
    )


def _cell(row: Row, verdict: Verdict | None) -> str:
    if verdict is None:
        return "<td></td>"
    if one := row.of(verdict):
        return f'<td class="figure">{e(amount(one.value, one.unit))}</td>'
    shown = mark(verdict)
    return f'<td class="{_class(shown)}" aria-label="{shown.word}"><b>{shown.sign}</b></td>'


def _class(one: Mark) -> str:
    return one.name.lower()


# The findings


def _findings(report: Report, run: Sequence[SubjectReport]) -> str:
    """Every finding with its sentence, a list a subject."""
    found = {subject.id: list(findings(subject, LEVELS)) for subject in run}
    shown = " open" if sum(map(len, found.values())) <= MANY else ""
    parts = (
        f"<details{shown}><summary><b>{e(names(report)[id])}</b> <span>{_levels(verdicts)}</span></summary>"
        f'<ul data-subject="{e(id)}">{"".join(map(_line, verdicts))}</ul></details>'
        for id, verdicts in found.items()
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
