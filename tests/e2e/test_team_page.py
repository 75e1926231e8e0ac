"""The page for a team in a real browser: a person signs in at their issuer, and looks at everything."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.chromium import Browser, Page
from helpers.contrast import CONTRAST
from helpers.driver import until
from helpers.real_servers import NODE_MODULES, NPM_CI
from helpers.team_page import running
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.server import FakeAuth

from mcpzip.identity.api_keys import new_key

AXE = NODE_MODULES / "axe-core" / "axe.min.js"
URL = "https://mcp.example.org/mcp"
CLIENT = {"id": "page", "redirect_uris": ["http://127.0.0.1:1/sign-in/callback"]}
ANN = {"sub": "1", "preferred_username": "<b>ann</b>", "groups": ["clerks"]}
TOOL = "/tools/desk__file_memo"
PATHS = ("/", "/servers", "/servers/desk", "/search?query=memo", TOOL, "/nothing", "/calls", "/calls/1")


@pytest.fixture
def auth(fake_auth: Callable[..., FakeAuth]) -> FakeAuth:
    return fake_auth(
        access_tokens="jwt", resources=[URL], scopes=["mcp"], clients=[CLIENT], claims=ANN, approve="page"
    )


@pytest.fixture
def origin(auth: FakeAuth, fake_mcp: Callable[..., FakeServer], tmp_path: Path) -> Iterator[str]:
    tool = {"name": "file_memo", "description": "File a memo <img src=x>.", "result": {"text": "filed"}}
    desk = fake_mcp(name="desk", tools=[tool])
    http = {
        "public_url": URL,
        "issuers": [{"issuer": auth.issuer, "scopes": ["mcp"]}],
        "api_keys": "keys.json",
        "page": {"listen": "127.0.0.1:0", "client_id": "page"},
    }
    with running(tmp_path, http, {"desk": desk.config}) as (origin, _):
        yield origin


def find_axe() -> None:
    if not AXE.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"axe-core is not installed: {NPM_CI}")


def can_be_used(page: Page, path: str, *, script: bool) -> None:
    """Whether what is shown can be read, and used with a screen reader. The page has its style by then: what
    was clicked only begins to load the next one.
    """
    page.wait_for_load_state("load")
    assert page.locator("h1").count() == 1, path
    if not script:
        return
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, path
    contrasts = page.evaluate(CONTRAST)
    assert {name: ratio for name, ratio in contrasts.items() if ratio < 4.5} == {}, path
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    assert {one["id"]: [node["html"] for node in one["nodes"]] for one in found["violations"]} == {}, path


@pytest.mark.npm
@pytest.mark.parametrize("script", [True, False])
def test_a_person_signs_in_at_the_issuer_and_looks_at_everything(
    browser: Browser, auth: FakeAuth, origin: str, script: bool
) -> None:
    find_axe()
    scheme, width = ("light", 360) if script else ("dark", 1600)
    context = browser.new_context(
        java_script_enabled=script, color_scheme=scheme, viewport={"width": width, "height": 800}
    )
    page = context.new_page()
    wrong: list[str] = []
    known = (f"{origin}/", f"{auth.issuer}/")
    page.on("request", lambda one: one.url.startswith(known) or wrong.append(one.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def check(path: str) -> None:
        can_be_used(page, path, script=script)

    page.goto(f"{origin}/calls")
    check("the form to sign in")
    page.get_by_role("link", name="Sign in at").click()
    page.get_by_role("button", name="Deny").click()
    assert "did not sign you in" in page.get_by_role("alert").inner_text()
    check("a sign-in that failed")
    page.get_by_role("link", name="Sign in at").click()
    page.get_by_role("button", name="Allow").click()
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    assert "You are signed in as <b>ann</b>, in clerks." in page.locator("main").inner_text()
    assert "code=" not in page.url
    session, *others = context.cookies(page.url)
    assert (session["httpOnly"], session["sameSite"], others) == (True, "Strict", [])
    root = page.url.removesuffix("/")
    until(lambda: page.goto(f"{root}{TOOL}").status == 200)  # type: ignore[union-attr]
    page.get_by_role("button", name="Call").click()
    page.get_by_text("filed").first.wait_for()
    for path in PATHS:
        page.goto(root + path)
        check(path)
    if script:
        page.goto(f"{root}/calls")
        other = context.new_page()
        other.goto(f"{root}{TOOL}")
        other.get_by_role("button", name="Call").click()
        other.get_by_text("filed").first.wait_for()
        page.get_by_text("2 calls").wait_for()  # without a reload
        other.close()
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{root}/calls")
    assert page.get_by_role("heading", level=1).inner_text() == "Sign in"
    assert wrong == []
    context.close()


@pytest.mark.npm
def test_a_person_signs_in_to_a_server_and_out_of_it(
    browser: Browser, fake_mcp: Callable[..., FakeServer], tmp_path: Path
) -> None:
    find_axe()
    tool = {"name": "list_issues", "description": "List issues.", "result": {"text": "three issues"}}
    desk = fake_mcp(name="desk", tools=[tool], transport="http", oauth={"approve": "page"})
    server = {**desk.config, "auth": {"per_user": True}}
    http: dict[str, object] = {"api_keys": "keys.json", "page": "127.0.0.1:0"}
    key = new_key(str(tmp_path / "keys.json"), "ann", ["clerks"], (), 0.0, None)
    with running(tmp_path, http, {"desk": server}) as (origin, _):
        context = browser.new_context(viewport={"width": 360, "height": 800})
        page = context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.goto(f"{origin}/sign-ins")
        wrong.clear()  # the status of the page to sign in on, 401
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Your sign-ins").first.click()
        page.get_by_role("button", name="Sign in to desk").wait_for()
        can_be_used(page, "not signed in", script=True)
        page.get_by_role("button", name="Sign in to desk").click()
        page.get_by_role("button", name="Deny").click()
        assert "refused: you, or it, said no" in page.get_by_role("alert").inner_text()
        can_be_used(page, "refused", script=True)
        wrong.clear()  # 403
        page.get_by_role("link", name="Back to your sign-ins").click()
        page.get_by_role("button", name="Sign in to desk").click()
        page.get_by_role("button", name="Allow").click()
        page.get_by_text("signed in, since").wait_for()
        assert "code=" not in page.url
        can_be_used(page, "signed in", script=True)
        root = page.url.removesuffix("/sign-ins")
        page.goto(f"{root}/tools/desk__list_issues")
        page.get_by_role("button", name="Call").click()
        page.get_by_text("three issues").first.wait_for()
        page.goto(f"{root}/sign-ins")
        page.get_by_role("button", name="Sign out of desk").click()
        assert "You are signed out of desk." in page.get_by_role("status").inner_text()
        can_be_used(page, "signed out", script=True)
        page.goto(f"{root}/servers/desk")
        assert "you have not signed in" in page.locator("main").inner_text()
        can_be_used(page, "the server", script=True)
        page.goto(f"{root}/")
        can_be_used(page, "the overview", script=True)
        assert wrong == []
        context.close()
