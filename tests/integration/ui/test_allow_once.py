"""Calls that were refused because nobody could be asked: a person at a terminal allows one of them, once."""

import json
import re
import sys
from pathlib import Path

import pytest
from helpers.driver import run
from helpers.ui_client import Page, page_of, terminal_page_of

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
CALL = "/tools/shop__pay"


def config_in(folder: Path, **policy: str) -> Path:
    """A config about whose tool ``shop__pay`` the policy asks."""
    scenario = folder / "shop.toml"
    scenario.write_text('name = "shop"\n[[tools]]\nname = "pay"\nresult = { text = "it was paid" }\n')
    config = folder / "config.json"
    server = {"command": sys.executable, "args": ["-m", "mcpzip_fakes", str(scenario)]}
    policy = policy or {"shop__pay": "ask"}
    config.write_text(json.dumps({"mcpServers": {"shop": server}, "policy": {"tools": policy}}))
    run("servers", "--config", str(config))
    return config


def form_of(page: Page) -> tuple[str, dict[str, str]]:
    """The address and the field of the first form that allows a call."""
    form = r'action="[^"]*?(/allow/[0-9a-f]+)">.*?name="call" value="([0-9a-f]+)"'
    found = re.search(form, page.get("/review").text, re.DOTALL)
    assert found
    return found[1], {"call": found[2]}


@posix_only
def test_exactly_the_call_that_was_shown_runs_once(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    with terminal_page_of(config) as page:
        page.sign_in()
        assert "Nothing ran" in page.submit(CALL, json='{"sum": 5}').words
        link, form = form_of(page)
        assert page.submit(link, call="0" * 64).status == 409
        assert page.post(link, form).status == 403, "without the page's token"
        done = page.submit(link, **form)
        assert done.headers["location"] == f"{page.root}/review?done=allowed"
        assert "It is allowed once" in page.get("/review?done=allowed").words
        assert "Nothing ran" in page.submit(CALL, json='{"sum": 6}').words
        assert "it was paid" in page.submit(CALL, json='{"sum": 5}').words
        assert "Nothing ran" in page.submit(CALL, json='{"sum": 5}').words


@posix_only
def test_what_the_policy_denies_by_now_or_is_not_shown_whole_is_not_allowed(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    with terminal_page_of(config) as page:
        page.sign_in()
        page.submit(CALL, json='{"sum": 5}')
        link, form = form_of(page)
        page.submit(CALL, json=json.dumps({"note": "x" * 2_000}))
        review = page.get("/review")
        assert review.text.count("Allow once</button>") == 1
        assert review.words.count("To allow it once:") == 1
        config_in(tmp_path, shop__pay="deny")
        answer = page.submit(link, **form)
        assert answer.status == 409
        assert "is denied by policy" in answer.words


def test_without_a_terminal_nothing_is_allowed(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    with page_of(config) as page:
        page.sign_in()
        assert "Nothing ran" in page.submit(CALL, json='{"sum": 5}').words
        review = page.get("/review")
        found = re.search(r"--call ([0-9a-f]{12})", review.words)
        assert found
        assert "Allow once" not in review.text
        answer = page.submit(f"/allow/{found[1]}", call="0" * 64)
        assert answer.status == 403
        assert f"allow --call {found[1]}" in answer.words
