"""`mcpzip ui` in a real browser: Chromium, on loopback, with a server whose texts want to be markup."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.chromium import Browser, Page
from helpers.contrast import CONTRAST
from helpers.driver import run
from helpers.real_servers import NODE_MODULES, NPM_CI
from helpers.ui_client import Page as Served
from helpers.ui_client import page_of
from helpers.ui_places import MARKUP, hold_back, hostile_place

AXE = NODE_MODULES / "axe-core" / "axe.min.js"
PATIENCE = 20_000
"""Milliseconds."""
SCHEMES, WIDTHS = ("light", "dark"), (360, 1600)
DIFFERENCE = "/config/diff"
"""A page that a form leads to."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = hostile_place(tmp_path_factory.mktemp("ui"))
    hold_back(place, run)
    return place


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Served]:
    with page_of(place) as served:
        yield served.sign_in()


@pytest.fixture(scope="module")
def paths(served: Served) -> tuple[str, ...]:
    """Every kind of page."""
    tools = re.findall(r'href="[^"]+?(/tools/[^"]+)"', served.get("/servers/evil").text)
    held = re.findall(r'href="[^"]+?(/review/[^"]+)"', served.get("/review").text)
    for tool in tools:
        served.submit(tool, json="{}")  # a call that fails, of a tool whose name is markup
    calls = re.findall(r'href="[^"]+?(/calls/[^"]+)"', served.get("/calls").text)
    assert (len(tools), len(held), len(calls)) == (2, 3, 2)
    return (
        "/",
        "/servers",
        "/servers/evil",
        "/search?query=find+me&limit=1",
        *tools,
        "/calls",
        calls[0],
        "/review",
        held[1],  # with an approved definition
        "/config",
        DIFFERENCE,
        "/add",
        "/doctor",
        "/nothing",
    )


@contextmanager
def opened(browser: Browser, served: Served, scheme: str = "light", width: int = 1000) -> Iterator[Page]:
    """A tab that is signed in. Whatever the page asks of others, and every error on the console, fails."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda one: one.type == "error" and "404" not in one.text and wrong.append(one.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("request", lambda one: one.url.startswith(served.origin + "/") or wrong.append(one.url))
    page.goto(served.url)
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    wrong[:] = [one for one in wrong if "401" not in one]  # the page that asks for the token
    try:
        yield page
    finally:
        context.close()
    assert wrong == []


def go(page: Page, served: Served, path: str) -> None:
    """Goes to ``path``, and where a form leads there, sends that."""
    page.goto(served.origin + served.root + (path if path != DIFFERENCE else "/config"))
    if path == DIFFERENCE:
        document = json.loads(page.get_by_label("Its text").input_value())
        document["mcpServers"]["evil"]["share"] = "never"
        page.get_by_label("Its text").fill(json.dumps(document, indent=2))
        page.get_by_role("button", name="Show the difference").click()
        page.get_by_role("heading", name="What differs").wait_for()
        page.wait_for_load_state("load")  # with its style: the click only began to load it


def test_the_token_moves_from_the_address_into_a_cookie(browser: Browser, served: Served) -> None:
    with opened(browser, served) as page:
        assert page.url == f"{served.origin}{served.root}/"
        assert page.evaluate("document.cookie") == ""
        (cookie,) = page.context.cookies()
        assert cookie["path"] == f"{served.root}/"
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert served.token not in cookie["value"]
        page.goto(f"{served.origin}{served.root}/#token=wrong")
        page.reload()
        assert page.get_by_role("heading", level=1).inner_text() == "Overview"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages_are_read_by_everybody(
    browser: Browser, served: Served, paths: tuple[str, ...], scheme: str, width: int
) -> None:
    with opened(browser, served, scheme, width) as page:
        for path in paths:
            go(page, served, path)
            assert page.locator("h1").count() == 1, path
            assert page.locator("main").count() == 1, path
            assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, path
            for summary in page.locator("summary").all():
                summary.click()
            contrasts = page.evaluate(CONTRAST)
            assert {name: ratio for name, ratio in contrasts.items() if ratio < 4.5} == {}, path
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == ("rgb(22, 24, 27)" if scheme == "dark" else "rgb(246, 246, 244)")
            assert page.locator("img, iframe, script:not([src])").count() == 0, path


@pytest.mark.npm
def test_axe_finds_nothing(browser: Browser, served: Served, paths: tuple[str, ...]) -> None:
    """In one scheme and width: of these only contrasts and widths depend, which the test above measures."""
    if not AXE.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"axe-core is not installed: {NPM_CI}")
    with opened(browser, served, width=360) as page:
        for path in paths:
            go(page, served, path)
            page.evaluate(AXE.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run()")
            wrong = {one["id"]: [node["html"] for node in one["nodes"]] for one in found["violations"]}
            assert wrong == {}, path
            assert len(found["passes"]) > 10


def test_without_a_script_everything_is_read_and_done(browser: Browser, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served.origin}/search?query=x")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    assert "not the token" in page.get_by_role("alert").inner_text()
    page.get_by_label("Token").fill(served.token)
    page.get_by_role("button", name="Sign in").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Overview"
    page.get_by_role("link", name="Search").click()
    page.get_by_label("What do you want to do?").fill("find me")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("heading", level=3).first.get_by_role("link").click()
    assert page.get_by_role("heading", level=1).inner_text() != "Search"
    page.locator("#json").fill('{"a": 1}')
    page.get_by_role("button", name="Call").click()
    assert page.get_by_role("alert").count() == 1  # the server can't be started
    page.get_by_role("link", name="Config").click()
    text = page.get_by_label("Its text")
    text.fill(text.input_value().replace('"evil"', '"evil2"') + "]")
    page.get_by_role("button", name="Check").click()
    assert "more text after the end of the object" in page.locator("#problems").inner_text()
    text.fill(text.input_value().removesuffix("]"))
    page.get_by_role("button", name="Show the difference").click()
    assert "evil2" in page.locator("tr.added").inner_text()
    page.get_by_role("button", name="Sign out").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Sign in"
    context.close()


def test_the_config_is_checked_while_it_is_typed(browser: Browser, served: Served) -> None:
    with opened(browser, served) as page:
        page.goto(f"{served.origin}{served.root}/config")
        text = page.get_by_label("Its text")
        before = text.input_value()
        text.fill('{"mcpServers": {}\n,}')
        page.locator("#problems").get_by_role("link", name="line 2, column 1").click()
        assert text.evaluate("one => one === document.activeElement && one.selectionStart") == 18
        text.fill(before)
        page.get_by_text("It can be used").wait_for()
        page.route("**/config/check", lambda route: route.fulfill(body="no list"))
        text.fill("{")
        page.get_by_text("This text could not be checked").wait_for()
        assert page.get_by_text("It can be used").count() == 0


def test_a_change_is_seen_without_a_reload_and_moves_nothing(
    browser: Browser, served: Served, place: Path
) -> None:
    with opened(browser, served, width=360) as page:
        page.goto(f"{served.origin}{served.root}/servers")
        page.evaluate("window.same = true")
        region = page.get_by_role("group", name="Servers")
        region.focus()
        scrolled = region.evaluate("one => { one.scrollLeft = 40; return one.scrollLeft }")
        assert scrolled == 40
        config = json.loads(place.read_text())
        config["mcpServers"]["another"] = {"command": "nothing"}
        with page.expect_response(lambda one: one.url.endswith("/servers")):
            place.write_text(json.dumps(config))
        page.get_by_role("link", name="another").wait_for()
        assert page.evaluate("window.same")
        assert region.evaluate("one => [one === document.activeElement, one.scrollLeft]") == [True, 40]


def test_a_change_that_nobody_saw_is_seen_when_the_tab_is(
    browser: Browser, served: Served, place: Path
) -> None:
    look = """hidden => {
        Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    told_again = """path => new Promise(first => { window.told = new Promise(second => {
        const events = new EventSource(path);
        let times = 0;
        events.onmessage = () => ++times === 1 ? first() : (events.close(), second());
    }) })"""
    with opened(browser, served) as page:
        page.goto(f"{served.origin}{served.root}/servers")
        page.evaluate(look, True)
        config = json.loads(place.read_text())
        config["mcpServers"]["meanwhile"] = {"command": "nothing"}
        place.write_text(json.dumps(config))
        page.evaluate(look, False)
        page.get_by_role("link", name="meanwhile").wait_for(timeout=PATIENCE)
        page.get_by_label("Name").focus()
        config["mcpServers"]["while-typing"] = {"command": "nothing"}
        page.evaluate(told_again, f"{served.root}/events")
        place.write_text(json.dumps(config))
        page.evaluate("window.told")
        page.get_by_label("Name").blur()
        page.get_by_role("link", name="while-typing").wait_for(timeout=PATIENCE)


def test_the_keyboard_reaches_everything(browser: Browser, served: Served) -> None:
    with opened(browser, served, width=360) as page:
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        assert skip.evaluate("one => one === document.activeElement")
        assert skip.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.goto(f"{served.origin}{served.root}/servers")
        page.get_by_label("Name").focus()
        page.keyboard.type("vil")
        page.keyboard.press("Enter")
        page.wait_for_url("**/servers?find=vil")
        assert page.get_by_role("link", name="evil").count() == 1


def test_a_page_elsewhere_can_neither_frame_nor_read_it(browser: Browser, served: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.url)
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    foreign = context.new_page()
    foreign.route(
        "http://evil.example/", lambda route: route.fulfill(body="<h1>evil</h1>", content_type="text/html")
    )
    foreign.goto("http://evil.example/")
    home = f"{served.origin}{served.root}/"
    read = "url => fetch(url, {credentials: 'include'}).then(one => one.text()).catch(error => `${error}`)"
    assert "Failed to fetch" in foreign.evaluate(read, home)
    framed = """url => new Promise(done => {
        const frame = document.body.appendChild(document.createElement("iframe"));
        frame.onload = done;
        frame.src = url;
    })"""
    foreign.evaluate(framed, home)
    assert len(foreign.frames) == 2
    assert not foreign.frames[1].url.startswith(served.origin)
    assert foreign.frames[1].get_by_role("heading", level=1, name="Overview").count() == 0
    with foreign.expect_navigation(url=f"{served.origin}/**"):
        foreign.evaluate(
            "url => { document.body.innerHTML = `<form method=post action='${url}'></form>`;"
            " document.forms[0].submit() }",
            f"{served.origin}{served.root}/servers/evil/stop",
        )
    assert "another page" in foreign.content()
    context.close()


def test_the_markup_is_in_the_pages_as_text(browser: Browser, served: Served) -> None:
    with opened(browser, served) as page:
        page.goto(f"{served.origin}{served.root}/servers/evil")
        said = page.locator("main").inner_text()
        assert MARKUP[:20] in said
        assert "\\u202e" in said
        assert "\u202e" not in page.content()
