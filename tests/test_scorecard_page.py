"""docs/scorecard.md and the page with all findings agree with the result that is shipped."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.commands.report_files import earlier
from mcpzip_conformance.known_failures import family_of
from mcpzip_conformance.report.changes import changes
from mcpzip_conformance.report.matrix import findings
from mcpzip_conformance.subject import load_all, names
from mcpzip_conformance.verdict import Report

from mcpzip import __version__

ROOT = Path(__file__).parents[1]
PAGE, FINDINGS = (ROOT / "docs" / name for name in ("scorecard.md", "scorecard-findings.html"))
NOT_UP = re.compile("took no connections|before it took connections|can't be started")
"""In the summary of a finding on a proxy with which there was no conversation."""


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "scorecard.py"))


@pytest.fixture(scope="module")
def shipped() -> Report:
    return earlier(__version__)[0]


def test_the_page_is_up_to_date(tool: dict[str, Any], shipped: Report) -> None:
    current = PAGE.read_text("utf-8")
    assert current.count("<!-- generated: ") == current.count("<!-- end of generated -->") == 2
    assert current == tool["page"](shipped, current), "run: python tools/scorecard.py"


def test_it_has_every_subject_there_is_and_ten_families_that_were_run(
    tool: dict[str, Any], shipped: Report
) -> None:
    declared = {one.id for name in names() if name not in tool["CONTROLS"] for one in load_all(name)}
    assert {one.id for one in shipped.subjects} == declared
    assert len({family_of(one.id) for one in shipped.subjects if not one.not_run}) >= 10


def test_every_check_that_there_is_was_played(shipped: Report) -> None:
    known = [check.id for check in ALL]
    for subject in shipped.subjects:
        assert [verdict.check for verdict in subject.verdicts] == ([] if subject.not_run else known), (
            subject.id
        )


def test_every_failed_must_is_on_the_page_with_its_conversation(shipped: Report) -> None:
    text = PAGE.read_text("utf-8")
    found = re.search(
        r'<script type="application/json" id="report">(.*?)</script>', FINDINGS.read_text("utf-8")
    )
    assert found is not None
    whole = {
        (subject["id"], verdict["check"]): verdict
        for subject in json.loads(found[1])["subjects"]
        for verdict in subject.get("verdicts", ())
    }
    for subject in shipped.subjects:
        for verdict in findings(subject, ["must"]):
            link = f"scorecard-findings.html#check={verdict.check}&subject={subject.id.replace(':', '%3A')}"
            assert link in text
            finding = whole[subject.id, verdict.check]
            assert finding["summary"] == verdict.summary
            talked = finding.get("transcript") or finding.get("straight")
            assert talked or NOT_UP.search(verdict.summary), f"{subject.id} {verdict.check}"


def test_nothing_got_worse_since_itself(shipped: Report) -> None:
    found = changes(shipped, *earlier(__version__), [check.id for check in ALL])
    assert {changed for _, changed in found.of} == {()}
    assert not found.worse()
