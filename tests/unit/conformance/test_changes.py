"""What got better and worse since an earlier result, and the two short forms of a report: badge, summary."""

import io
import json
from dataclasses import replace

import pytest
from helpers.conformance_reports import (
    BARE,
    BROKEN,
    CHECKS,
    EVIL,
    FAILED,
    HOSTILE,
    PASSED,
    REPORTS,
    SAMPLE,
    SKIPPED,
    made,
    requirement,
    subject,
    verdict,
)
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mcpzip_conformance.report import as_badge, as_markdown
from mcpzip_conformance.report.changes import Kind, changes, lines, render
from mcpzip_conformance.verdict import Report, Status, Verdict
from rich.console import Console

KNOWN = [id for id, _ in CHECKS]
STATUS = st.sampled_from(Status)


def one(status: Status | None, check: str = "protocol.ping") -> Report:
    """A report of one subject with one verdict, or none."""
    verdicts = () if status is None else (verdict(check, "must", status),)
    return replace(
        SAMPLE, checks=(requirement(check, "must"),), subjects=(replace(subject(1), verdicts=verdicts),)
    )


def kind(before: Status | None, now: Status | None, check: str = "protocol.ping") -> Kind | None:
    found = changes(one(now, check), one(before, check), "before", KNOWN).of[0][1]
    return found[0].kind if found else None


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (PASSED, FAILED, Kind.WORSE),
        (PASSED, BROKEN, Kind.WORSE),
        (PASSED, SKIPPED, Kind.WORSE),
        (SKIPPED, FAILED, Kind.WORSE),
        (FAILED, PASSED, Kind.BETTER),
        (BROKEN, PASSED, Kind.BETTER),
        (SKIPPED, PASSED, Kind.BETTER),
        (FAILED, SKIPPED, Kind.GONE),
        (FAILED, BROKEN, None),
        (BROKEN, FAILED, None),
        (None, PASSED, Kind.NEW),
        (None, FAILED, Kind.NEW),
        (PASSED, None, None),  # it was not asked for
    ],
)
def test_what_a_change_is(before: Status | None, now: Status | None, expected: Kind | None) -> None:
    assert kind(before, now) is expected
    assert changes(one(now), one(before), "before", KNOWN).worse() is (expected is Kind.WORSE)


@given(STATUS, STATUS)
def test_what_is_worse_one_way_is_not_worse_the_other_way(before: Status, now: Status) -> None:
    assert (before is now) <= (kind(before, now) is None)
    assert {kind(before, now), kind(now, before)} != {Kind.WORSE}


def test_a_check_that_the_runner_has_no_more_is_gone() -> None:
    assert kind(PASSED, None, "protocol.of-old") is Kind.GONE


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [(PASSED, SKIPPED, None), (SKIPPED, PASSED, None), (PASSED, FAILED, Kind.WORSE)],
)
def test_a_figure_that_was_not_taken_is_no_change(before: Status, now: Status, expected: Kind | None) -> None:
    """Times are not taken on a busy machine."""

    def measured(status: Status) -> Report:
        return made(subject(1, {"cost.start-up": status}))

    found = changes(measured(now), measured(before), "before", KNOWN).of[0][1]
    assert [change.kind for change in found] == ([expected] if expected else [])


def test_a_list_of_changes_can_be_read() -> None:
    before = made(subject(1, {"fidelity.meta": FAILED}))
    now = made(subject(1, {"protocol.ids": FAILED}), subject(2))
    found = changes(now, before, "before.json", KNOWN)
    assert list(lines(found)) == [
        "Proxy 2: it has no earlier result",
        "Proxy 1: 1 worse, 1 better",
        "  worse: protocol.ids (must), passed before, failed now: Why protocol.ids is failed.",
        "  better: fidelity.meta (should), failed before, passed now",
    ]
    assert list(lines(changes(before, before, "itself", KNOWN))) == ["Proxy 1: no change"]
    summary = as_markdown.summary(now, found)
    assert "## Against before.json" in summary
    assert "- worse: protocol.ids (must), passed before, failed now: Why protocol.ids is failed." in summary


def test_a_long_list_of_changes_is_cut() -> None:
    many = [verdict(f"protocol.c{number}", "may", FAILED) for number in range(300)]

    def report(verdicts: list[Verdict]) -> Report:
        checks = tuple(requirement(each.check, "may") for each in verdicts)
        return replace(SAMPLE, checks=checks, subjects=(replace(subject(1), verdicts=tuple(verdicts)),))

    now, before = report(many), report([replace(each, status=PASSED) for each in many])
    told = list(lines(changes(now, before, "before", [])))
    assert (len(told), told[-1]) == (202, "  worse: 100 more")


def test_changes_of_a_hostile_report_are_text() -> None:
    screen = io.StringIO()
    passed = replace(
        EVIL,
        subjects=tuple(
            replace(each, verdicts=tuple(replace(v, status=PASSED, pinned="") for v in each.verdicts))
            for each in EVIL.subjects
        ),
    )
    found = changes(EVIL, passed, HOSTILE, KNOWN)
    assert found.worse()
    render(found, Console(file=screen, width=200, force_terminal=True, color_system=None))
    assert "\x1b[31m" not in screen.getvalue()
    assert "\x00" not in screen.getvalue()
    tokens = MarkdownIt("commonmark").enable("table").parse(as_markdown.summary(EVIL, found))
    inside = [child for token in tokens for child in token.children or []]
    assert {child.type for child in inside} <= {
        "text",
        "code_inline",
        "em_open",
        "em_close",
        "strong_open",
        "strong_close",
        "softbreak",
        "text_special",
    }


# The badge


def badge(report: Report) -> tuple[str, str]:
    data = json.loads(as_badge.render(report))
    assert data.keys() == {"schemaVersion", "label", "message", "color"}
    assert (data["schemaVersion"], data["label"]) == (1, "MCP proxy conformance")
    return data["message"], data["color"]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, ("must 6/6, should 3/3", "brightgreen")),
        ({"fidelity.meta": FAILED}, ("must 6/6, should 2/3", "green")),
        ({"fidelity.number-spelling": FAILED}, ("must 6/6, should 3/3", "brightgreen")),
        ({"search.exact-name": SKIPPED}, ("must 6/6, should 2/2", "brightgreen")),
        ({"protocol.ids": FAILED}, ("must 5/6, should 3/3", "red")),
        ({"protocol.ids": BROKEN}, ("must 5/5, should 3/3, 1 broken", "lightgrey")),
    ],
)
def test_a_badge_counts_what_was_judged(statuses: dict[str, Status], expected: tuple[str, str]) -> None:
    assert badge(made(subject(1, statuses))) == expected


def test_a_badge_of_several_subjects_adds_them_up() -> None:
    subjects = [subject(number, {"protocol.ids": FAILED} if number == 1 else {}) for number in range(1, 5)]
    assert badge(made(*subjects)) == ("must 23/24, should 12/12", "orange")
    assert badge(BARE) == ("no result", "lightgrey")


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_every_report_has_a_badge_and_a_summary(report: Report) -> None:
    assert badge(report)[1] in ("brightgreen", "green", "orange", "red", "lightgrey")
    assert as_markdown.summary(report).startswith("# MCP proxy conformance")
