"""Writes the scorecard from results of the conformance runner: the tables of docs/scorecard.md, the page with
every finding, docs/scorecard-findings.html, and the result that is shipped, for `run --against VERSION`.

    python tools/scorecard.py RESULT.json...    what `mcpzip-conformance run NAME --json=NAME.json` wrote
    python tools/scorecard.py                   docs/scorecard.md again, from what is shipped

Of several results of a subject each check's last one counts. What stands in docs/scorecard.md outside the
marked parts is written by hand. A test compares the page with the shipped result.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mcpzip_conformance.checks import ALL
from mcpzip_conformance.commands.report_files import PUBLISHED, read
from mcpzip_conformance.files import written
from mcpzip_conformance.report import as_html, as_json, as_markdown
from mcpzip_conformance.runner import not_applicable, requirement
from mcpzip_conformance.subject import Subject, load_all, names
from mcpzip_conformance.verdict import Report, Requirement, Status, SubjectReport, Verdict

from mcpzip import __version__

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FINDINGS = DOCS / "scorecard.md", DOCS / "scorecard-findings.html"
SHIPPED = PUBLISHED / f"{__version__}.json"
BY_ID = {check.id: check for check in ALL}
CONTROLS = ("direct", "direct-http", "direct-sse", "relay")
"""Families of the runner's own, which aren't on the scorecard."""

_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)


def page(report: Report, text: str) -> str:
    """``text``, the page, with its marked parts written anew: ``scores``, ``checks``."""
    card = as_markdown.render(report, details=FINDINGS.name)
    head, rest = card.split("\n## ", 1)
    parts = {"scores": head.split("\n\n", 1)[1], "checks": f"## {rest}"}
    return _PART.sub(lambda match: f"{match[1]}\n{parts[match[2]].strip()}\n\n{match[3]}", text)


def collected(reports: Sequence[Report]) -> Report:
    """One report of all subjects, with those that weren't run, in the order of their files, mcpzip first; its
    checks are those there are now."""
    reports = sorted(reports, key=lambda report: report.started)
    found: dict[str, SubjectReport] = {}
    for report in reports:
        for subject in report.subjects:
            if not subject.not_run:
                found[subject.id] = _over(found.get(subject.id), subject)
    order = sorted(set(names()) - set(CONTROLS), key=lambda name: (name != "mcpzip", name))
    declared = [subject for name in order for subject in load_all(name)]
    subjects = [
        replace(
            found[one.id],
            title=one.title,
            about=one.about,
            version=one.version,
            homepage=one.homepage,
            verdicts=tuple(_applied(one, verdict) for verdict in found[one.id].verdicts),
        )
        if one.id in found
        else SubjectReport(one.id, one.title, one.about, (), one.version, one.homepage, one.not_run)
        for one in declared
    ]
    if missing := [one.id for one in subjects if not one.verdicts and not one.not_run]:
        raise SystemExit(f"There is no result of {', '.join(missing)}: run them first.")
    return replace(
        reports[-1],
        seconds=round(sum(one.seconds for one in subjects), 3),
        checks=tuple(map(requirement, ALL)),
        subjects=tuple(subjects),
        expecting=False,
    )


def shipped(report: Report) -> str:
    """``report`` as JSON without what only a person reads, one verdict a line."""
    bare = replace(
        report,
        checks=tuple(
            Requirement(one.id, one.group, one.level, "", "", "", one.measures) for one in report.checks
        ),
        subjects=tuple(
            replace(one, verdicts=tuple(map(_bare, one.verdicts)), about="") for one in report.subjects
        ),
    )
    data = json.loads(as_json.render_short(bare))
    for subject in data["subjects"]:
        if verdicts := subject.pop("verdicts", None):
            subject["verdicts"] = verdicts
    lines = [f'"{key}":{_line(value)}' for key, value in data.items() if key not in ("checks", "subjects")]
    lines.append(f'"checks":[\n{_lines(data["checks"])}\n]')
    lines.append('"subjects":[\n' + ",\n".join(map(_subject, data["subjects"])) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _over(before: SubjectReport | None, after: SubjectReport) -> SubjectReport:
    """The verdicts of both, by check; the ones of ``after`` count. Checks that are no more are dropped."""
    verdicts = {verdict.check: verdict for verdict in (*(before.verdicts if before else ()), *after.verdicts)}
    known = [verdicts[check.id] for check in ALL if check.id in verdicts]
    return replace(
        after,
        verdicts=tuple(replace(verdict, pinned="") for verdict in known),
        seconds=round(sum(verdict.seconds for verdict in known), 3),
    )


def _applied(subject: Subject, verdict: Verdict) -> Verdict:
    """``verdict``, or that the check is skipped, if the subject's file says so by now."""
    why_not = not_applicable(subject, BY_ID[verdict.check])
    if why_not is None:
        return verdict
    return Verdict(verdict.check, verdict.group, verdict.level, Status.SKIPPED, 0.0, why_not)


def _bare(verdict: Verdict) -> Verdict:
    return replace(verdict, seconds=round(verdict.seconds, 1), diff=(), straight=(), transcript=())


def _subject(subject: dict[str, object]) -> str:
    verdicts = subject.pop("verdicts", [])
    assert isinstance(verdicts, list)
    return f'{_line(subject)[:-1]},"verdicts":[\n{_lines(verdicts)}\n]}}'


def _lines(items: Iterable[object]) -> str:
    return ",\n".join(map(_line, items))


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    if files := sys.argv[1:]:
        everything = collected([read(file) for file in files])
        written(FINDINGS, as_html.render(everything))
        written(SHIPPED, shipped(everything))
    written(PAGE, page(read(str(SHIPPED)), PAGE.read_text("utf-8")))
