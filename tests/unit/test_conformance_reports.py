"""The renderings of a report: each shows the value, and nothing a program under test says is markup."""

import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from conformance import report as renderings
from conformance.report import as_html, as_json, as_junit, as_markdown, differences, terminal
from conformance.report.matrix import Mark, amount, mark, rows, score
from conformance.verdict import Measure, Report, Requirement, Status, SubjectReport, Verdict

PASSED, FAILED, SKIPPED, BROKEN = Status.PASSED, Status.FAILED, Status.SKIPPED, Status.BROKEN
HOSTILE = (
    "</script><img src=x onerror=alert(1)>|`*_[b](javascript:0)_*`|&amp;\x1b[31m\x00\u2028\ud800 {{report}}"
)

CHECKS = (
    ("protocol.ping", "must"),
    ("protocol.ids", "must"),
    ("protocol.batch", "should"),
    ("fidelity.text", "must"),
    ("fidelity.is-error", "must"),
    ("fidelity.meta", "should"),
    ("fidelity.number-spelling", "may"),
    ("resilience.no-double-execution", "must"),
    ("search.exact-name", "should"),
    ("security.secrets-in-messages", "must"),
    ("cost.start-up", "may"),
    ("cost.context", "may"),
)
FIGURES = {
    "cost.start-up": (("", "ms"),),
    "cost.context": (("tools/list", "tokens"), ("a search", "tokens")),
}


def requirement(id: str, level: str) -> Requirement:
    text = f"What `{id}` asks for.\n\nAnd why."
    source = "https://example.org/spec#" + id
    return Requirement(id, id.partition(".")[0], level, text.partition("\n")[0], text, source, id in FIGURES)


def verdict(id: str, level: str, status: Status = PASSED, **more: object) -> Verdict:
    made = Verdict(id, id.partition(".")[0], level, status, 0.25)
    if status is not PASSED:
        made = replace(made, summary=f"Why {id} is {status.value}.")
    if status is FAILED:
        made = replace(
            made,
            diff=("--- straight", "+++ through", "@@ -1 +1 @@", '-  "isError": true', '+  "isError": false'),
            straight=('  0.001 → {"id":1}', '  0.002 ← {"id":1,"result":{"isError":true}}'),
            transcript=('  0.003 → {"id":1}', '  0.009 ← {"id":1,"result":{}}'),
        )
    return replace(made, **more)  # type: ignore[arg-type]


def subject(number: int, statuses: dict[str, Status] | None = None, **more: object) -> SubjectReport:
    made = []
    for id, level in CHECKS:
        one = verdict(id, level, (statuses or {}).get(id, PASSED))
        if id in FIGURES and one.status is PASSED:
            one = replace(
                one,
                measured=tuple(
                    Measure(name, 1234.5 * number + at, unit) for at, (name, unit) in enumerate(FIGURES[id])
                ),
            )
        made.append(one)
    about = f"Proxy number {number}, over stdio."
    whole = SubjectReport(
        f"proxy-{number}", f"Proxy {number}", about, tuple(made), f"1.{number}", seconds=3.5
    )
    return replace(whole, **more)  # type: ignore[arg-type]


def pinned(whole: SubjectReport, *ids: str) -> SubjectReport:
    verdicts = (replace(one, pinned="issue 7") if one.check in ids else one for one in whole.verdicts)
    return replace(whole, verdicts=tuple(verdicts))


def made(*subjects: SubjectReport, expecting: bool = False) -> Report:
    checks = tuple(requirement(id, level) for id, level in CHECKS)
    return Report("2026-11-22T07:40:00+00:00", 12.25, "3.11.7", "linux", checks, subjects, expecting)


ABSENT = subject(9, id="absent", title="Absent", not_run="It needs Go.", verdicts=())
SAMPLE = made(
    subject(1, homepage="https://example.org/one"),
    subject(2, {"fidelity.is-error": FAILED, "fidelity.meta": FAILED, "search.exact-name": SKIPPED}),
    pinned(
        subject(3, {"protocol.ids": FAILED, "protocol.batch": BROKEN, "cost.start-up": FAILED}),
        "protocol.ids",
        "protocol.ping",
    ),
    ABSENT,
)
LARGE = made(*(subject(number, {"protocol.ids": FAILED}) for number in range(1, 9)), ABSENT)
BARE = made(ABSENT)
EVIL = replace(
    made(
        replace(
            subject(
                1, id=HOSTILE, title=HOSTILE, version=HOSTILE, about=HOSTILE, homepage="javascript:alert(1)"
            ),
            verdicts=tuple(
                replace(
                    verdict(id, level, FAILED),
                    summary=HOSTILE,
                    diff=(HOSTILE,),
                    transcript=(HOSTILE,),
                    pinned=why,
                )
                for (id, level), why in zip(CHECKS, ["", HOSTILE] * 6, strict=True)
            ),
        ),
        replace(ABSENT, not_run=HOSTILE),
    ),
    platform=HOSTILE,
)
REPORTS = {"sample": SAMPLE, "large": LARGE, "bare": BARE, "evil": EVIL}


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
            "r.json is no conformance report: expected float, got str - at $.seconds; write it",
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
    for said in ('-  "isError": true', "straight to the server:", "through the subject:", "source: https://"):
        assert said in failure.text
    skipped = case[("proxy-3.protocol", "protocol.ids")].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "Why protocol.ids is failed. (known: issue 7)"
    surprise = case[("proxy-3.protocol", "protocol.ping")].find("failure")
    assert surprise is not None
    assert surprise.get("message") == "It passes, though it is pinned as known to fail: issue 7"
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
    assert failure.get("message") == root[0].get("name") == as_junit.speakable(text)
    assert as_junit.speakable(text) in failure.text


# Markdown


def cells(markdown: str, table: int) -> list[list[str]]:
    """The texts of a table's rows, as a reader of the rendered page sees them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    found: list[list[list[str]]] = []
    before = ""
    for token in tokens:
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and before in ("td_open", "th_open"):
            found[-1][-1].append("".join(child.content for child in token.children or []))
        before = token.type
    return found[table]


def test_markdown_is_a_scorecard() -> None:
    text = as_markdown.render(SAMPLE)
    assert text.startswith("# MCP proxy conformance, 2026-11-22\n\n12 checks against 3 subjects, 07:40 UTC; ")
    scores = cells(text, 0)
    assert scores[0] == [
        "subject",
        "all",
        "protocol",
        "fidelity",
        "resilience",
        "search",
        "security",
        "skipped",
    ]
    assert scores[2][:4] == ["Proxy 2 1.2", "5/6 · 1/2", "2/2 · 1/1", "1/2 · 0/1"]
    assert scores[4][:2] == ["Absent 1.9", "not run here"]
    assert "- *not run here*, Absent: It needs Go." in text
    assert cells(text, 1)[2] == ["protocol.ids", "must", "✓", "✓", "(✗)"]
    assert cells(text, 2)[2] == ["fidelity.is-error", "must", "✓", "✗", "✓"]
    assert cells(text, 6) == [
        ["check", "measured", "Proxy 1", "Proxy 2", "Proxy 3"],
        ["cost.start-up", "ms", "1,234", "2,469", "✗"],
        ["cost.context", "tools/list, tokens", "1,234", "2,469", "3,704"],
        ["cost.context", "a search, tokens", "1,236", "2,470", "3,704"],
    ]
    assert "**Proxy 2**\n\n- `fidelity.is-error`: Why fidelity.is-error is failed.\n" in text
    assert "fidelity.meta`: " not in text


def test_markdown_without_findings_says_so() -> None:
    assert as_markdown.render(made(subject(1))).endswith("## Findings of level must\n\nNone.\n")
    assert "*not run here*" in as_markdown.render(BARE)


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.just(HOSTILE.replace("\ud800", "")))
def test_markdown_shows_any_text_as_text(text: str) -> None:
    whole = made(
        replace(
            subject(1, title=f"a{text}b"), verdicts=(verdict("protocol.ping", "must", FAILED, summary=text),)
        )
    )
    rendered = as_markdown.render(whole)
    parser = MarkdownIt("commonmark").enable("table")
    kinds = {child.type for token in parser.parse(rendered) for child in [token, *(token.children or [])]}
    assert kinds.isdisjoint({"html_inline", "html_block", "link_open", "image", "s_open", "fence"})
    shown = " ".join("".join(char if char.isprintable() else " " for char in f"a{text}b").split())
    assert cells(rendered, 1)[0] == ["check", "level", shown]


# HTML


class Page(HTMLParser):
    """What a browser without a script sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.within = tag
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.within, []).append(data)


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_is_whole_and_holds_the_report(name: str) -> None:
    page = Page(as_html.render(REPORTS[name]))
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 2
    assert not {"img", "link", "iframe", "base", "object"} & set(tags)
    for _, attributes in page.elements:
        assert not any(key.startswith("on") or key in ("style", "src") for key in attributes)
        assert not (attributes.get("href") or "").startswith("javascript:")
    data, js = "".join(page.texts["script"]).strip().split("\n", 1)
    assert js.startswith('"use strict"')
    held = as_json.read(as_json.render(REPORTS[name]), "x")
    assert as_json.read(data, "page") == held


def test_the_policy_lets_in_what_is_there_and_nothing_else() -> None:
    page = Page(as_html.render(SAMPLE))
    [policy] = [
        attributes["content"]
        for tag, attributes in page.elements
        if attributes.get("http-equiv") and tag == "meta"
    ]
    assert policy
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_the_page_without_a_script_is_the_matrix() -> None:
    page = Page(as_html.render(SAMPLE))
    marked = [attributes for tag, attributes in page.elements if tag == "td" and attributes.get("class")]
    assert len(marked) == 3 * 13
    assert sum(one.get("aria-label") == "known" for one in marked) == 1
    assert "✗" in page.texts["b"]
    assert "3,704" in page.texts["td"]
    assert "not run here" in page.texts["b"]


# The terminal


def printed(report: Report, width: int = 100, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    terminal.render(report, Console(file=file, width=width, legacy_windows=False))
    file.flush()
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue().decode(encoding)


def test_the_terminal_shows_words_and_figures() -> None:
    text = printed(SAMPLE)
    lines = {
        line.split()[0]: [part.strip() for part in re.split("[│┃]", line)]
        for line in text.splitlines()
        if "│" in line
    }
    assert lines["protocol.ping"] == ["protocol.ping", "must", "passed", "passed", "UNEXPECTED PASS"]
    assert lines["protocol.ids"] == ["protocol.ids", "must", "passed", "passed", "known"]
    assert lines["cost.start-up"][2:] == ["1,234", "2,469", "FAILED"]
    assert '    -  "isError": true' in text
    assert "Proxy 2: 1 skipped. Why search.exact-name is skipped." in text
    assert "Proxy 3: 8 passed, 2 failed (1 known), 1 broken, 1 measured in 3.5 s" in text
    assert "Absent: not run here. It needs Go." in text


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_many_subjects_have_numbers_and_fit(encoding: str) -> None:
    text = printed(LARGE, encoding=encoding)
    table = text.partition("\n\n")[0].splitlines()
    assert all(len(line) <= 100 for line in table)
    assert re.findall(r"\d", table[0]) == list("12345678")
    [line] = [line for line in table if line.startswith("protocol.ids")]
    assert re.findall(r"[✗x]", line) == ["✗" if encoding == "utf-8" else "x"] * 8
    assert "  3  Proxy 3 1.3" in text
    assert "1: 1,234   2: 2,469" in text


def test_twenty_subjects_fit_too() -> None:
    text = printed(made(*map(subject, range(1, 21))))
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "20  Proxy 20" in text


def test_nothing_run_is_no_table() -> None:
    assert printed(BARE).splitlines()[0] == "Absent: not run here. It needs Go."


def test_the_terminal_obeys_no_subject() -> None:
    text = printed(EVIL)
    assert "\x1b" not in text
    assert "\\x1b[31m" in text


# Differences


def compared(comparison: differences.Comparison, report: Report = SAMPLE) -> str:
    console = Console(file=io.StringIO(), width=100)
    differences.render(comparison, console, report.checks)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_two_subjects_differ_where_their_marks_do() -> None:
    found = differences.compare(SAMPLE.subjects[0], SAMPLE.subjects[1])
    assert [
        (one.check, one.left and one.left.status, one.right and one.right.status) for one in found.differences
    ] == [
        ("fidelity.is-error", PASSED, FAILED),
        ("fidelity.meta", PASSED, FAILED),
        ("search.exact-name", PASSED, SKIPPED),
    ]
    assert found.alike == len(CHECKS) - 3
    assert next((one.check, one.name, one.ratio) for one in found.changes) == ("cost.start-up", "", 2.0)
    text = compared(found)
    assert "Proxy 2: failed. Why fidelity.is-error is failed." in text
    assert "× 2.00" in text
    assert text.endswith("3 differ, 9 alike\n")


def test_a_figure_on_one_side_has_no_ratio() -> None:
    found = differences.compare(SAMPLE.subjects[0], SAMPLE.subjects[2])
    change = found.changes[0]
    assert (change.check, change.left, change.right, change.ratio) == ("cost.start-up", 1234.5, None, None)
    assert "not played" in compared(differences.compare(SAMPLE.subjects[0], ABSENT))
    assert "Absent: not run here" in compared(differences.compare(SAMPLE.subjects[0], ABSENT))


def test_two_runs_are_compared_subject_by_subject() -> None:
    later = replace(SAMPLE, started="2026-11-23T00:00:00+00:00", subjects=SAMPLE.subjects[1:])
    found = differences.compare_runs(SAMPLE, later)
    assert [one.left for one in found] == [
        f"{title}, {SAMPLE.started}" for title in ("Proxy 2", "Proxy 3", "Absent")
    ]
    assert all(one.differences == () for one in found)
    [pair] = differences.compare_runs(made(subject(1)), made(subject(2, {"protocol.ids": FAILED})))
    assert [one.check for one in pair.differences] == ["protocol.ids"]


def test_a_comparison_obeys_no_subject() -> None:
    assert "\x1b" not in compared(differences.compare(EVIL.subjects[0], SAMPLE.subjects[0]))
