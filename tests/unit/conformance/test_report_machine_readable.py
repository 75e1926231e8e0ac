"""The renderings of a report for programs, JSON and JUnit, and the marks and rows all renderings share."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import fields, replace
from pathlib import Path

import jsonschema
import pytest
from helpers.conformance_reports import (
    ABSENT,
    BARE,
    CHECKS,
    EVIL,
    FAILED,
    HOSTILE,
    REPORTS,
    SAMPLE,
    made,
    requirement,
    subject,
    verdict,
)
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_conformance import report as renderings
from mcpzip_conformance.report import as_json, as_junit
from mcpzip_conformance.report.matrix import Mark, amount, mark, rows, score
from mcpzip_conformance.verdict import Measure, Report, Requirement, SubjectReport, Verdict

# Marks and rows


def test_what_is_pinned_has_marks_of_its_own() -> None:
    shown = {one.check: mark(one) for one in SAMPLE.subjects[2].verdicts}
    assert shown["protocol.ids"] is Mark.KNOWN
    assert shown["protocol.ping"] is Mark.SURPRISE
    assert shown["protocol.batch"] is Mark.BROKEN
    assert shown["fidelity.text"] is Mark.PASSED


def test_every_mark_has_a_sign_and_a_word_of_its_own() -> None:
    for kind in ("word", "sign", "plain"):
        assert len({getattr(one, kind) for one in Mark}) == len(Mark)


def test_only_passed_and_failed_count_in_a_score() -> None:
    assert str(score(SAMPLE.subjects[1], "must")) == "5/6"
    assert str(score(SAMPLE.subjects[1], "should")) == "1/2"
    assert score(SAMPLE.subjects[1], "should").skipped == 1
    assert str(score(SAMPLE.subjects[2], "should")) == "2/2"
    assert str(score(SAMPLE.subjects[0], "may")) == "1/1"
    assert str(score(ABSENT)) == "–"


def test_each_figure_of_a_check_has_a_row() -> None:
    assert [row.label for row in rows(SAMPLE)["cost"]] == [
        "cost.start-up (ms)",
        "cost.context tools/list (tokens)",
        "cost.context a search (tokens)",
    ]
    assert [row.label for row in rows(BARE)["cost"]] == ["cost.start-up", "cost.context"]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.1234, "ms", "0.12"),
        (12.34, "MB", "12.3"),
        (1234.5, "ms", "1,234"),
        (12.6, "tokens", "13"),
        (0, "ms", "0.00"),
    ],
)
def test_a_figure_has_about_three_digits(value: float, unit: str, shown: str) -> None:
    assert amount(value, unit) == shown


# JSON


@pytest.mark.parametrize("name", ["sample", "large", "bare"])
@pytest.mark.parametrize("render", [as_json.render, as_json.render_short])
def test_what_is_written_is_read_and_valid(name: str, render: object) -> None:
    assert callable(render)
    text = render(REPORTS[name])
    assert as_json.read(text, "x") == REPORTS[name]
    assert as_json.read(text.encode(), "x") == REPORTS[name]
    jsonschema.Draft202012Validator(as_json.schema()).validate(json.loads(text))


def test_lone_surrogates_are_written_as_their_escapes() -> None:
    read = as_json.read(as_json.render(EVIL).encode(), "x")
    assert read.subjects[0].title == HOSTILE.replace("\ud800", "\\ud800")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_a_shell_redirected_is_read(encoding: str) -> None:
    assert as_json.read(as_json.render(SAMPLE).encode(encoding), "x") == SAMPLE


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"seconds": "1"},
            "r.json is not a conformance report: expected float, got str - at $.seconds; write it",
        ),
        ({"checks": 1}, "expected array, got int - at $.checks"),
        ({"format": "bowtie/9"}, "its format is 'bowtie/9'; this program reads 'mcpzip-conformance/1'."),
        ({"checks": []}, "'proxy-1' has a verdict on 'protocol.ping', which is not among its checks"),
        ({"subjects": [{}]}, "object missing required field id - at $.subjects[0]"),
    ],
)
def test_a_wrong_file_is_one_sentence(change: dict[str, object], says: str) -> None:
    text = json.dumps({**json.loads(as_json.render(SAMPLE)), **change})
    with pytest.raises(as_json.ReportError) as caught:
        as_json.read(text, "r.json")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (replace(SAMPLE, subjects=SAMPLE.subjects[:1] * 2), "it has the subject 'proxy-1' 2 times"),
        (
            replace(SAMPLE, checks=SAMPLE.checks + SAMPLE.checks[:1]),
            "it has the check 'protocol.ping' 2 times",
        ),
        (
            made(replace(subject(1), verdicts=subject(1).verdicts[:1] * 3)),
            "it has the verdict of 'proxy-1' on 'protocol.ping' 3 times",
        ),
        (
            replace(SAMPLE, checks=(*SAMPLE.checks, requirement("x.y", "shall"))),
            "the level of 'x.y' is 'shall', not must, should, may",
        ),
        (
            made(replace(subject(1), verdicts=(verdict(*CHECKS[0], measured=(Measure("a", 1, "s"),)),))),
            "'protocol.ping' measures in 's', not in tokens, ms, MB, ratio",
        ),
    ],
)
def test_what_types_cannot_say_is_checked_too(wrong: Report, says: str) -> None:
    with pytest.raises(as_json.ReportError, match=re.escape(says)):
        as_json.read(as_json.render(wrong), "r.json")


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_whatever_the_file_holds_the_error_is_ours(data: bytes) -> None:
    with pytest.raises(as_json.ReportError):
        as_json.read(data, "x")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(as_json.ReportError):
        as_json.read(b'{"x-deep":' + b"[" * 100_000, "x")


def test_the_published_schema_is_the_code_s() -> None:
    published = Path(renderings.__file__).with_name("schema.json")
    assert published.read_text(encoding="utf-8") == as_json.render_schema()


def test_the_schema_describes_every_field_and_is_one() -> None:
    schema = as_json.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert isinstance(schema["$defs"], dict)
    for part in (Report, Requirement, SubjectReport, Verdict, Measure):
        properties = schema["$defs"][part.__name__]["properties"]
        assert list(properties) == [one.name for one in fields(part)]
        assert all(one["description"].endswith(".") for one in properties.values())


@pytest.mark.parametrize(
    ("where", "value"),
    [("status", "green"), ("level", "shall"), ("seconds", -1), ("check", ""), ("typo", 1), ("diff", "-a")],
)
def test_the_schema_refuses_what_is_wrong(where: str, value: object) -> None:
    document = json.loads(as_json.render(SAMPLE))
    document["subjects"][0]["verdicts"][0][where] = value
    assert not jsonschema.Draft202012Validator(as_json.schema()).is_valid(document)


def test_other_runners_may_add_what_is_theirs() -> None:
    document = json.loads(as_json.render(SAMPLE))
    document["x-runner"] = {"name": "another"}
    document["subjects"][0]["verdicts"][0]["x-log"] = ["a"]
    jsonschema.Draft202012Validator(as_json.schema()).validate(document)
    assert as_json.read(json.dumps(document), "x") == SAMPLE


# JUnit


def test_junit_counts_what_there_is() -> None:
    root = ET.fromstring(as_junit.render(SAMPLE).encode())
    assert root.attrib == {
        "name": "MCP proxy conformance",
        "time": "12.250",
        "tests": "36",
        "failures": "4",
        "errors": "1",
        "skipped": "2",
    }
    assert [suite.get("name") for suite in root] == ["Proxy 1", "Proxy 2", "Proxy 3", "Absent"]
    assert root[0].get("timestamp") == "2026-11-22T07:40:00"


def test_junit_tells_what_each_came_to() -> None:
    root = ET.fromstring(as_junit.render(SAMPLE).encode())
    case = {(one.get("classname"), one.get("name")): one for one in root.iter("testcase")}
    assert len(case[("proxy-1.protocol", "protocol.ping")]) == 0
    failure = case[("proxy-2.fidelity", "fidelity.is-error")].find("failure")
    assert failure is not None
    assert failure.attrib == {"message": "Why fidelity.is-error is failed.", "type": "must"}
    assert failure.text
    for said in ('-  "isError": true', "directly to the server:", "through the subject:", "source: https://"):
        assert said in failure.text
    skipped = case[("proxy-3.protocol", "protocol.ids")].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "Why protocol.ids is failed. (known: issue 7)"
    surprise = case[("proxy-3.protocol", "protocol.ping")].find("failure")
    assert surprise is not None
    assert surprise.get("message") == "It passes, but is listed as a known failure: issue 7"
    assert case[("proxy-3.protocol", "protocol.batch")].find("error") is not None
    figures = case[("proxy-1.cost", "cost.context")].findall("properties/property")
    assert [(one.get("name"), one.get("value")) for one in figures] == [
        ("tools/list (tokens)", "1234.5"),
        ("a search (tokens)", "1235.5"),
    ]


def test_junit_says_what_was_not_run() -> None:
    [suite] = ET.fromstring(as_junit.render(BARE).encode())
    assert suite.get("tests") == "0"
    told = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert told["not run here"] == "It needs Go."


@given(st.text(st.characters()) | st.just(HOSTILE))
def test_junit_holds_any_text(text: str) -> None:
    whole = made(
        replace(
            subject(1, title=text),
            verdicts=(verdict("protocol.ping", "must", FAILED, summary=text, diff=(text,)),),
        )
    )
    root = ET.fromstring(as_junit.render(whole).encode())
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.text
    assert failure.get("message") == root[0].get("name") == as_junit.xml_text(text)
    assert as_junit.xml_text(text) in failure.text
