"""What a server's page changes: a server is added, switched, shared, removed; somebody signs in and out."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from urllib.error import HTTPError

import pytest
from helpers.acting_markup import acting
from helpers.daemons import daemon_home
from helpers.driver import until
from helpers.grants import kept_at
from helpers.ui_client import Answer, Page, page_of, terminal_page_of
from helpers.ui_places import MARKUP, hostile_place
from mcpzip_fakes.launch import FakeServer

from mcpzip.config.project import approve
from mcpzip.ui.limits import LOGINS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
COMMENTED = """{
  "_comment": "mine",
  "mcpServers": {
    "time":  {"command": "uvx", "args": ["mcp-server-time"]},
    "web": {
      "url": "https://web.example/mcp"
    }
  }
}
"""


def save(page: Page, answer: Answer, **fields: str) -> Answer:
    """Presses *Save* on the page with a difference."""
    found = re.search(r'name="draft" value="([^"]+)"', answer.text)
    assert found, answer.words
    return page.submit("/config/save", draft=found[1], **fields)


def link_in(answer: Answer) -> str:
    """Where the link to sign in leads."""
    found = re.search(r'href="(http[^"]+)" target="_blank" rel="noopener noreferrer external"', answer.text)
    assert found, answer.words
    return unescape(found[1])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    config = tmp_path / "config.json"
    config.write_text(COMMENTED)
    return config


@pytest.fixture
def page(config: Path) -> Iterator[Page]:
    with terminal_page_of(config) as page:
        yield page.sign_in()


def test_an_edit_keeps_what_it_is_not_about(page: Page, config: Path) -> None:
    answer = page.submit("/servers/time/edit", action="disable")
    assert config.read_text() == COMMENTED
    assert "Servers switched off: their processes end time" in answer.words
    done = save(page, answer)
    assert done.headers["location"] == f"{page.root}/servers/time?done=saved"
    assert '"mcp-server-time"], "disabled": true}' in config.read_text()
    assert ">Enable</button>" in page.get("/servers/time?done=saved").text
    save(page, page.submit("/servers/time/edit", action="enable"))
    assert config.read_text() == COMMENTED
    answer = page.submit("/servers/web/edit", action="share", share="per-cwd")
    assert "Servers with other settings web" in answer.words
    save(page, answer)
    assert json.loads(config.read_text())["mcpServers"]["web"]["share"] == "per-cwd"
    save(page, page.submit("/servers/web/edit", action="share", share="auto"))
    assert config.read_text() == COMMENTED
    assert page.submit("/servers/web/edit", action="share", share="auto").status == 303
    save(page, page.submit("/servers/web/edit", action="remove"))
    assert list(json.loads(config.read_text())["mcpServers"]) == ["time"]
    assert "It was removed" in page.get("/servers?done=removed").words


def test_an_edit_that_makes_no_sense_is_refused(page: Page, config: Path) -> None:
    for fields in ({"action": "explode"}, {}, {"action": "share", "share": "x"}, {"action": "share"}):
        assert page.submit("/servers/time/edit", **fields).status in (400, 409)
    assert page.submit("/servers/nobody/edit", action="remove").status == 409
    assert config.read_text() == COMMENTED


def test_an_edit_of_a_file_that_changed_is_not_saved(page: Page, config: Path) -> None:
    answer = page.submit("/servers/time/edit", action="disable")
    config.write_text(COMMENTED.replace("mine", "theirs"))
    late = save(page, answer)
    assert late.status == 409
    assert "do it again" in late.words
    assert "disabled" not in config.read_text()


def test_a_server_is_tried_before_it_is_added(
    page: Page, config: Path, fake_mcp: Callable[..., FakeServer]
) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    words = " ".join([shop.config["command"], *shop.config["args"]])
    answer = page.submit("/add", name="shop", words=words, env="A=1\nB=2")
    assert "Servers added shop" in answer.words
    assert shop.record.calls() == []
    assert "shop" not in config.read_text()
    done = save(page, answer)
    assert done.headers["location"] == f"{page.root}/servers/shop?done=added", done.words
    assert json.loads(config.read_text())["mcpServers"]["shop"]["env"] == {"A": "1", "B": "2"}
    assert "pay" in page.get("/servers/shop?done=added").words
    broken = page.submit("/add", name="broken", words=f"{sys.executable} -c exit(3)")
    late = save(page, broken)
    assert late.status == 409
    assert "broken does not answer, so nothing was saved" in late.words
    assert "broken" not in config.read_text()
    assert save(page, late, untried="yes").status == 303
    assert "broken" in config.read_text()


def test_a_form_that_cannot_be_used_says_why(page: Page) -> None:
    for fields, why in (
        ({"name": "x", "words": ""}, "Write the command"),
        ({"name": "", "words": "uvx x"}, "this name is empty"),
        ({"name": "a__b", "words": "uvx x"}, "this name contains"),
        ({"name": "time", "words": "uvx x"}, "there is such a server already"),
        ({"name": "x", "words": "uvx x", "env": "A"}, "has no '='"),
        ({"name": "x", "words": "https://x.example/mcp more"}, "Nothing may follow a URL"),
        ({"name": "x", "words": "uvx 'x"}, "quotation"),
        ({"name": "x", "words": "x" * 20_000}, "at most"),
    ):
        answer = page.submit("/add", **fields)
        assert answer.status == 400
        assert why in answer.words
    assert 'value="&#34;&gt;' in page.submit("/add", name="x", words='">', env="A").text


def test_without_a_terminal_nothing_is_saved_or_started(config: Path) -> None:
    with page_of(config) as page:
        page.sign_in()
        answer = page.submit("/add", name="x", words=f"{sys.executable} -c open('started','w')")
        assert ">Try it and save</button>" not in answer.text
        assert save_refused(page, answer)
        for action in ("disable", "remove"):
            assert save_refused(page, page.submit("/servers/time/edit", action=action))
        assert not (config.parent / "started").exists()
        assert config.read_text() == COMMENTED


def save_refused(page: Page, answer: Answer) -> bool:
    """Whether even a form that names the draft saves nothing. The page doesn't hide its id."""
    return save(page, answer).status == 403


def test_somebody_signs_in_and_out(config: Path, fake_mcp: Callable[..., FakeServer]) -> None:
    shop = fake_mcp(name="shop", tools=["pay"], transport="http", oauth={"approve": "page"})
    assert shop.auth is not None
    with terminal_page_of(config) as page:
        page.sign_in()
        answer = page.submit("/add", name="shop", words=shop.url)
        assert save(page, answer).status == 303
        words = page.get("/servers/shop?done=added").words
        assert "needs login" in words
        assert f'href="{page.root}/servers/shop#sign-in"' in page.get("/").text
        assert page.submit("/servers/shop/sign-in").headers["location"].endswith("/servers/shop#sign-in")
        waiting = page.get("/servers/shop")
        assert "mcpzip waits until you have signed in" in waiting.words
        assert page.submit("/servers/shop/sign-in").status == 409
        with pytest.raises(HTTPError, match="403"):
            shop.auth.browse(link_in(waiting), "deny")
        until(lambda: "The login failed" in page.get("/servers/shop").words)
        assert "said no (access_denied)" in page.get("/servers/shop").words
        page.submit("/servers/shop/sign-in")
        assert "Signed in to shop" in shop.auth.browse(link_in(page.get("/servers/shop")))
        until(lambda: "You are signed in." in page.get("/servers/shop").words)
        until(lambda: "pay" in page.get("/servers/shop").words)
        assert kept_at(config.parent).load(shop.url) is not None
        done = page.submit("/servers/shop/sign-out")
        assert done.headers["location"].endswith("?done=signed-out")
        assert kept_at(config.parent).load(shop.url) is None
        page.submit("/servers/shop/sign-in")
        page.submit("/servers/shop/cancel-sign-in")
        assert "The login was cancelled" in page.get("/servers/shop").words
        page.submit("/servers/shop/sign-in")  # and the command ends it


def test_logins_are_bounded(config: Path, fake_mcp: Callable[..., FakeServer]) -> None:
    shop = fake_mcp(name="shop", tools=["pay"], transport="http", oauth={"approve": "page"})
    servers = {f"shop{number}": {"url": f"{shop.url}?{number}"} for number in range(LOGINS + 1)}
    config.write_text(json.dumps({"mcpServers": servers}))
    with terminal_page_of(config) as page:
        page.sign_in()
        answers = [page.submit(f"/servers/{name}/sign-in").status for name in servers]
        assert answers == [303] * LOGINS + [409]


def test_what_has_no_sign_in_says_so(page: Page) -> None:
    assert page.submit("/servers/time/sign-in").status == 409
    assert page.submit("/servers/time/sign-out").status == 409
    assert page.submit("/servers/nobody/sign-in").status in (404, 409, 503)
    assert 'id="sign-in"' not in page.get("/servers/time").text


def test_a_server_of_the_project_is_not_changed(config: Path) -> None:
    file = config.parent / ".mcpzip.json"
    file.write_text('{"mcpServers": {"ours": {"command": "x"}}}')
    with terminal_page_of(config) as page:
        page.sign_in()
        words = page.get("/config").words
        assert "not trusted, so not used" in words
        assert '{"mcpServers": {"ours": {"command": "x"}}}' in words
        approve(str(file), file.read_bytes(), str(config))
        assert "trusted, so used" in page.get("/config").words
        answer = page.get("/servers/ours")
        assert "It is in the file of this project, which is not changed here" in answer.words
        assert ">Remove</button>" not in answer.text
        assert page.submit("/servers/ours/edit", action="remove").status == 409


def test_hostile_texts_are_only_text(tmp_path: Path) -> None:
    with page_of(hostile_place(tmp_path)) as page:
        page.sign_in()
        answers = [
            page.submit("/add", **dict.fromkeys(("name", "words", "env", "header", "cwd"), MARKUP)),
            page.submit("/servers/evil/edit", action=MARKUP),
            page.submit("/servers/evil/edit", action="share", share=MARKUP),
            page.submit("/servers/evil/edit", action="disable"),
            page.submit("/servers/%3Cscript%3E/edit", action="disable"),
            page.submit("/servers/%3Cscript%3E/sign-in"),
            page.submit("/servers/evil/sign-in"),
            page.get("/servers?done=%3Cscript%3E"),
        ]
        for answer in answers:
            assert acting(answer.text) == []
        for answer in answers[1:]:
            assert not set(answer.text) & set("\u202e\u200b\x1b\x07")


def test_the_page_says_what_the_daemon_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with daemon_home(tmp_path, monkeypatch) as home, home.serving(), terminal_page_of(home.config) as page:
        page.sign_in()
        assert "The daemon uses the file as it is now" in page.get("/config").words
        save(page, page.submit("/servers/up/edit", action="share", share="never"))
        assert "The daemon uses the file as it is now" in page.get("/config?done=saved").words
        home.config.write_text("{")
        until(lambda: "stays in use" in page.get("/config").words)
        assert "The daemon does not use the file as it is now" in page.get("/config").words
