"""The page of `mcpzip tokens --html` in a real browser: from a file, in light and dark, with no network."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.chromium import Browser


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokens")
    servers = {
        name: {"command": sys.executable, "args": ["-m", "mcpzip_fakes", name]}
        for name in ("slack", "todoist")
    }
    (folder / "config.json").write_text(json.dumps({"mcpServers": servers}))
    page = folder / "tokens.html"
    command = [sys.executable, "-m", "mcpzip", "tokens", "--config", str(folder / "config.json")]
    done = subprocess.run([*command, "--html", str(page)], capture_output=True, text=True, check=True)
    assert "30 tools of 2 servers" in done.stdout
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_every_tool_and_asks_nobody(written: Path, browser: Browser, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, offline=True)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(written.as_uri())
    assert page.title() == "What the tools cost"
    assert page.locator("details").count() == 2
    page.locator("summary").first.click()
    assert page.locator("details[open] td").first.is_visible()
    assert "send_message" in page.content()
    widths = page.locator(".bar div").evaluate_all("bars => bars.map(bar => bar.offsetWidth)")
    assert max(widths) > 0
    background = page.evaluate("getComputedStyle(document.querySelector('.bar div')).backgroundColor")
    assert background == {"light": "rgb(11, 122, 117)", "dark": "rgb(79, 209, 197)"}[scheme]
    assert (said, asked) == ([], [written.as_uri()])
    context.close()
