"""The page of a conformance report in a real browser: Chromium, from a file, with no network."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from helpers.chromium import Browser, Locator, Page
from helpers.contrast import CONTRAST
from mcpzip_conformance.report import as_html
from mcpzip_conformance.verdict import Measure, Report, Requirement, Status, SubjectReport, Verdict

HOSTILE = "</script><img src=x onerror=\"document.title='caught'\"><b>bold</b> {{report}}"
PASSED, FAILED, SKIPPED = Status.PASSED, Status.FAILED, Status.SKIPPED
CHECKS = {
    "protocol.ping": ("must", (PASSED, PASSED, PASSED)),
    "protocol.batch": ("should", (PASSED, SKIPPED, PASSED)),
    "fidelity.text": ("must", (PASSED, PASSED, PASSED)),
    "fidelity.is-error": ("must", (PASSED, FAILED, PASSED)),
    "fidelity.meta": ("should", (PASSED, FAILED, FAILED)),
    "fidelity.number-spelling": ("may", (PASSED, PASSED, FAILED)),
    "search.limit": ("must", (PASSED, SKIPPED, PASSED)),
    "cost.start-up": ("may", (PASSED, PASSED, PASSED)),
}


def report(copies: int = 1) -> Report:
    """Three subjects, the last with a hostile name and hostile words, and one that wasn't run."""
    subjects = [
        SubjectReport(
            id=f"{id}{copy or ''}",
            title=f"{title}{copy or ''}",
            about="Over stdio.",
            verdicts=tuple(
                verdict(check, level, statuses[column], words) for check, (level, statuses) in CHECKS.items()
            ),
            version="1.0",
            seconds=2.5,
        )
        for copy in range(copies)
        for column, (id, title, words) in enumerate(
            (("alpha", "Alpha", ""), ("beta", "Beta", "It is lost."), ("evil", HOSTILE, HOSTILE))
        )
    ]
    checks = tuple(
        Requirement(
            id,
            id.partition(".")[0],
            level,
            f"What `{id}` asks for.",
            f"What `{id}` asks for.\n\nAnd why it matters.",
            f"https://example.org/{id}",
            id.startswith("cost"),
        )
        for id, (level, _) in CHECKS.items()
    )
    absent = SubjectReport("absent", "Absent", "", (), not_run="It needs a login.")
    return Report("2026-11-22T07:40:00+00:00", 9.5, "3.11.7", "linux", checks, (*subjects, absent))


def verdict(check: str, level: str, status: Status, words: str) -> Verdict:
    made = Verdict(check, check.partition(".")[0], level, status, 0.5)
    if check.startswith("cost"):
        return replace(made, measured=(Measure("", 123.4, "ms"),))
    if status is PASSED:
        return made
    if status is SKIPPED:
        return replace(made, summary="It has none.")
    return replace(
        made,
        summary=words,
        diff=("--- straight", "+++ through", "@@ -1,2 +1,1 @@", '-  "isError": true', f"+  {words}"),
        straight=('  0.001 → {"id":1}', f"  0.002 ← {words}"),
        transcript=('  0.003 → {"id":1}', "  0.004 ← {}"),
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(as_html.render(report()), encoding="utf-8")
    return file.as_uri()


class Desk:
    """A fresh tab; ``wrong`` collects whatever it complains of or asks the network for."""

    def __init__(self, browser: Browser, **options: object) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on(
            "request", lambda one: one.url.startswith(("file:", "blob:")) or self.wrong.append(one.url)
        )


@pytest.fixture
def desk(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Desk]:
    desk = Desk(browser, **getattr(request, "param", {}))
    yield desk
    desk.context.close()
    assert desk.wrong == []


@pytest.fixture
def page(desk: Desk, address: str) -> Page:
    desk.page.goto(address)
    return desk.page


def cell(page: Page, check: str, column: int) -> Locator:
    return page.locator(f'tr[data-check="{check}"] > *').nth(column)


def shown(page: Page) -> list[str]:
    """The checks in sight."""
    rows = page.locator("tr[data-check]:visible").all()
    return [row.get_attribute("data-check") or "" for row in rows]


def test_a_failing_cell_opens_what_was_asked_and_what_differs(page: Page) -> None:
    cell(page, "fidelity.is-error", 2).click()
    panel = page.get_by_role("dialog")
    assert panel.get_by_role("heading", level=2).inner_text() == "fidelity.is-error"
    assert panel.locator(".requirement").all_inner_texts() == [
        "What fidelity.is-error asks for.",
        "And why it matters.",
    ]
    assert panel.get_by_role("link").get_attribute("href") == "https://example.org/fidelity.is-error"
    assert panel.locator(".summary").inner_text() == "It is lost."
    assert panel.locator(".diff .del").inner_text().strip() == '-  "isError": true'
    assert panel.locator(".diff .add").inner_text().strip() == "+  It is lost."
    straight, through = panel.locator(".talk").all()
    assert straight.locator(".received .message").inner_text() == "It is lost."
    assert through.locator(".received .message").inner_text() == "{}"
    left, right = straight.bounding_box(), through.bounding_box()
    assert left
    assert right
    assert left["x"] + left["width"] <= right["x"]
    page.get_by_role("button", name="Close").click()
    assert panel.count() == 0


def test_filters_narrow_the_table_and_are_in_the_address(page: Page) -> None:
    assert shown(page) == list(CHECKS)
    page.get_by_label("Group").select_option("fidelity")
    page.get_by_role("button", name="must", exact=True).click()
    assert shown(page) == ["fidelity.text", "fidelity.is-error"]
    page.get_by_role("button", name="failed").click()
    assert shown(page) == ["fidelity.is-error"]
    assert page.locator("#tally").inner_text() == "1 of 8 checks"
    assert page.url.endswith("#group=fidelity&level=must&status=failed")
    page.reload()
    assert shown(page) == ["fidelity.is-error"]
    page.get_by_role("button", name="Clear").click()
    assert shown(page) == list(CHECKS)
    page.get_by_role("button", name="only differences").click()
    assert shown(page) == [
        "protocol.batch",
        "fidelity.is-error",
        "fidelity.meta",
        "fidelity.number-spelling",
        "search.limit",
    ]
    page.get_by_label("Search checks").fill("NUMBER spelling")
    assert shown(page) == ["fidelity.number-spelling"]
    page.get_by_label("Search checks").fill("nothing like it")
    assert page.locator("#nothing").is_visible()


def test_subjects_can_be_left_out(page: Page) -> None:
    page.get_by_text("Subjects", exact=True).last.click()
    page.get_by_label("Beta").uncheck()
    assert cell(page, "fidelity.meta", 2).is_hidden()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="only differences").click()
    assert shown(page) == ["fidelity.meta", "fidelity.number-spelling"]


def leave(page: Page) -> None:
    """Closes the dialog. That it is closed is told with the next frame."""
    page.keyboard.press("Escape")
    page.wait_for_function("!location.hash.includes('check=')")


def test_all_of_it_works_by_keyboard(page: Page) -> None:
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "text"
    cell(page, "protocol.ping", 0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    panel = page.get_by_role("dialog")
    title = panel.get_by_role("heading", level=2)
    assert title.inner_text() == "fidelity.is-error"
    page.keyboard.press("n")
    assert title.inner_text() == "fidelity.meta"
    page.keyboard.press("p")
    assert title.inner_text() == "fidelity.is-error"
    leave(page)
    assert panel.count() == 0
    focused = "[document.activeElement.parentNode.dataset.check, document.activeElement.cellIndex]"
    assert page.evaluate(focused) == ["fidelity.is-error", 2]
    page.keyboard.press("Control+End")
    assert page.evaluate(focused) == ["cost.start-up", 3]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('table')") is None


def test_the_table_says_what_it_is(page: Page) -> None:
    grid = page.get_by_role("grid")
    assert grid.get_by_role("columnheader").count() == 4
    assert grid.get_by_role("rowheader").first.is_visible()
    assert grid.get_by_role("gridcell", name="failed").count() == 4
    assert cell(page, "cost.start-up", 1).inner_text() == "123"
    assert page.locator('tr[data-check] [tabindex="0"]').count() == 1


def test_an_address_opens_its_finding(page: Page, address: str) -> None:
    page.goto("about:blank")
    page.goto(f"{address}#{urlencode({'level': 'should', 'check': 'fidelity.meta', 'subject': 'beta'})}")
    panel = page.get_by_role("dialog")
    assert panel.get_by_role("heading", level=2).inner_text() == "fidelity.meta"
    assert panel.locator('[aria-current="true"]').inner_text().endswith("Beta")
    leave(page)
    assert shown(page) == ["protocol.batch", "fidelity.meta"]
    page.evaluate("location.hash = '#check=protocol.ping'")
    panel.get_by_text("What protocol.ping asks for.").wait_for()
    assert panel.locator(".verdict").count() == 0
    page.go_back()
    panel.wait_for(state="hidden")
    assert shown(page) == ["protocol.batch", "fidelity.meta"]


def test_a_finding_of_the_list_opens_too(page: Page) -> None:
    page.locator("#findings").get_by_role("link", name="fidelity.is-error").click()
    assert page.get_by_role("dialog").locator(".summary").inner_text() == "It is lost."
    assert page.url.endswith("#check=fidelity.is-error&subject=beta")


def test_what_a_subject_says_stays_text(page: Page) -> None:
    heads = page.get_by_role("columnheader").all_inner_texts()
    assert heads[3].startswith(HOSTILE)
    cell(page, "fidelity.meta", 3).click()
    panel = page.get_by_role("dialog")
    assert panel.locator(".summary").inner_text() == HOSTILE
    assert panel.locator(".diff .add").inner_text().strip() == f"+  {HOSTILE}"
    assert page.locator("img, dialog b b").count() == 0
    assert page.title() == "MCP proxy conformance, 2026-11-22"


def test_the_report_can_be_saved(page: Page, tmp_path: Path) -> None:
    with page.expect_download() as coming:
        page.get_by_role("button", name="Save the report as JSON").click()
    assert coming.value.suggested_filename == "conformance-2026-11-22.json"
    coming.value.save_as(tmp_path / "saved.json")
    saved = json.loads((tmp_path / "saved.json").read_text(encoding="utf-8"))
    assert [one["id"] for one in saved["subjects"]] == ["alpha", "beta", "evil", "absent"]


@pytest.mark.parametrize("desk", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_every_text_stands_out_in_light_and_dark(page: Page) -> None:
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(22, 24, 27)" if dark else "rgb(246, 246, 244)")
    page.get_by_role("button", name="only differences").click()
    cell(page, "fidelity.meta", 2).click()
    contrasts = page.evaluate(CONTRAST)
    assert len(contrasts) > 30
    assert {name: ratio for name, ratio in contrasts.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("desk", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
@pytest.mark.parametrize("copies", [1, 7])
def test_a_phone_never_scrolls_the_page_sideways(desk: Desk, copies: int, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(as_html.render(report(copies)), encoding="utf-8")
    page = desk.page
    page.goto(file.as_uri())
    wide = "document.documentElement.scrollWidth - window.innerWidth"
    assert page.evaluate(wide) <= 0
    column = cell(page, "fidelity.meta", 0).bounding_box()
    cell(page, "fidelity.meta", 3).scroll_into_view_if_needed()
    assert column
    again = cell(page, "fidelity.meta", 0).bounding_box()
    assert again
    assert again["x"] == column["x"]
    cell(page, "fidelity.meta", 3).click()
    assert page.evaluate(wide) <= 0
    box = page.get_by_role("dialog").bounding_box()
    assert box
    assert (box["x"], box["width"]) == (0, 390)


@pytest.mark.parametrize("desk", [{"java_script_enabled": False}], indirect=True)
def test_without_a_script_the_matrix_is_there(page: Page) -> None:
    assert len(shown(page)) == len(CHECKS)
    assert cell(page, "fidelity.is-error", 2).inner_text() == "✗"
    assert page.get_by_text("It needs a login.").is_visible()
    assert page.locator("#filters").is_hidden()
    assert page.locator("#legend").is_visible()


def test_on_paper_the_whole_table_is_there(page: Page) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#filters").is_hidden()
    assert page.evaluate("(box => box.scrollHeight - box.clientHeight)(document.querySelector('.box'))") == 0


def test_the_header_and_the_first_column_stay(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(as_html.render(report(7)), encoding="utf-8")
    desk.page.set_viewport_size({"width": 700, "height": 400})
    desk.page.goto(file.as_uri())
    desk.page.evaluate("(box => box.scrollTo(200, 100))(document.querySelector('.box'))")
    places = """() => {
      const box = document.querySelector(".box").getBoundingClientRect();
      const at = (cell) => cell.getBoundingClientRect();
      const rows = document.querySelectorAll("#matrix tr");
      return [at(rows[0].cells[5]).top - box.top, at(rows[9].cells[0]).left - box.left];
    }"""
    assert desk.page.evaluate(places) == [1, 1]
