"""Reads reports from files, and merges them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mcpzip.model.errors import McpzipError
from mcpzip_conformance.check import GROUPS
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.errors import SelectionError
from mcpzip_conformance.report import as_json
from mcpzip_conformance.verdict import Report

PUBLISHED = Path(__file__).parents[1] / "published"
"""The scorecards of versions, without conversations: VERSION.json."""


def read(file: str) -> Report:
    """The report in ``file``. Raises McpzipError if it can't be read."""
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise McpzipError(f"{file} can't be read ({error.strerror}): check the path.") from error
    return as_json.read(data, file)


def earlier(name: str) -> tuple[Report, str]:
    """The result to compare with, and what it is called: a file, or what a version of mcpzip published, which
    is shipped. Raises McpzipError if there is none."""
    if name.endswith(".json"):
        return read(name), name
    shipped = PUBLISHED / f"{name}.json"
    if re.fullmatch(r"[\w.+-]+", name) and shipped.is_file():
        return read(str(shipped)), f"the published result of version {name}"
    known = ", ".join(sorted(path.stem for path in PUBLISHED.glob("*.json"))) or "none"
    raise SelectionError(
        f"There is no published result of version {name!r} (there is: {known}): name one, or a file that "
        "run --json FILE.json wrote."
    )


def merged(reports: Sequence[Report], names: Sequence[str]) -> Report:
    """One report with the subjects of all reports. names: the names of the reports for errors. It starts with
    the earliest, its duration is the sum, and known failures count only if all reports have them. Raises
    SelectionError if a subject is in two reports."""
    first = min(reports, key=lambda report: report.started)
    owner: dict[str, str] = {}
    for report, name in zip(reports, names, strict=True):
        for subject in report.subjects:
            if subject.id in owner:
                both = f"{owner[subject.id]} and in {name}"
                raise SelectionError(f"{subject.id!r} is in {both}: leave one of them out.")
            owner[subject.id] = name
    checks = {check.id: check for report in reversed(reports) for check in report.checks}
    order = {check.id: place for place, check in enumerate(ALL)}
    groups = {group: place for place, group in enumerate(GROUPS)}
    last = len(ALL)
    return replace(
        first,
        seconds=round(sum(report.seconds for report in reports), 3),
        python=_all(report.python for report in reports),
        platform=_all(report.platform for report in reports),
        checks=tuple(
            sorted(
                checks.values(),
                key=lambda check: (groups.get(check.group, last), order.get(check.id, last), check.id),
            )
        ),
        subjects=tuple(subject for report in reports for subject in report.subjects),
        expecting=all(report.expecting for report in reports),
    )


def _all(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))
