"""The renderings of a report for people: each shows the value, and nothing a subject says is markup."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from helpers.conformance_reports import (
    ABSENT,
    BARE,
    CHECKS,
    EVIL,
    FAILED,
    HOSTILE,
    LARGE,
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
from mcpzip_conformance.report import as_html, as_json, as_markdown, differences, terminal
from mcpzip_conformance.verdict import Report
from rich.console import Console

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


def test_a_group_without_a_must_shows_its_may_too() -> None:
    checks = (requirement("poisoning.title", "may"), requirement("poisoning.scripts", "should"))
    verdicts = (verdict("poisoning.title", "may", FAILED), verdict("poisoning.scripts", "should"))
    report = replace(SAMPLE, checks=checks, subjects=(replace(subject(1), verdicts=verdicts),))
    text = as_markdown.render(report)
    assert cells(text, 0)[1][1:3] == ["– · 1/1", "– · 1/1 · 0/1"]
    assert "(*poisoning*: also *may*)" in text
    assert "also *may*" not in as_markdown.render(SAMPLE)


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
        "time",
    ]
    assert scores[2][:4] == ["Proxy 2 1.2", "5/6 · 1/2", "2/2 · 1/1", "1/2 · 0/1"]
    assert scores[2][-2:] == ["1", "4 s"]
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


def test_markdown_links_a_finding_to_the_page_of_findings() -> None:
    whole = made(subject(1, {"protocol.ids": FAILED}, id="a:b"))
    link = "[`protocol.ids`](page.html#check=protocol.ids&subject=a%3Ab): Why protocol.ids is failed."
    assert link in as_markdown.render(whole, details="page.html")
    assert link not in as_markdown.render(whole)


def test_markdown_says_why_there_is_no_figure() -> None:
    busy = "Other work used the processors."
    some, none = subject(1), subject(2)
    checks = {verdict.check: verdict for verdict in none.verdicts}
    late = replace(checks["cost.start-up"], status=SKIPPED, summary=busy, measured=())
    less = replace(checks["cost.context"], measured=checks["cost.context"].measured[:1])
    none = replace(none, verdicts=tuple({**checks, late.check: late, less.check: less}.values()))
    assert cells(as_markdown.render(made(some, none)), 6) == [
        ["check", "measured", "Proxy 1", "Proxy 2"],
        ["cost.start-up", "ms", "1,234", "–"],
        ["cost.context", "tools/list, tokens", "1,234", "2,469"],
        ["cost.context", "a search, tokens", "1,236", "–"],
    ]
    text = as_markdown.render(made(none))
    assert f"`cost.start-up`: {busy}" in text
    assert "## cost" not in text


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


def test_the_page_shows_what_hides_or_reorders_as_escapes() -> None:
    assert as_html.e("a\u202eb\u200b\x1b[0m <i>") == "a\\u202eb\\u200b\\x1b[0m &lt;i&gt;"


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
