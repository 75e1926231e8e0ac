"""The page of `mcpzip tokens --html` in a real browser: Chromium, from a file, with no network."""

from pathlib import Path

import pytest
from helpers.chromium import Browser
from helpers.contrast import CONTRAST
from helpers.search_tools import tool

from mcpzip.cli.tokens_page import render
from mcpzip.server.token_costs import Costs, ReplyCost, SoFar

HOSTILE = "<img src=x onerror=\"document.title='caught'\"></td><script>document.title='caught'</script>"
COSTS = Costs(
    "tokens",
    {
        tool("shop", "pay", "Pay an invoice"): 700,
        tool("shop", HOSTILE, HOSTILE): 300,
        tool("mail", "send_" * 60, "Send a mail"): 900,
    },
    200,
    100,
    ReplyCost(200.0, 0.25),
    ReplyCost(300.0, 0.3),
    SoFar(1, 2, 1, 3_000, 800, 0),
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_read_without_a_network(browser: Browser, tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "tokens.html"
    file.write_text(render(COSTS), encoding="utf-8")
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 800})
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda one: one.url == file.as_uri() or wrong.append(one.url))
    page.goto(file.as_uri())
    assert page.title() == "What tools cost in context"
    assert page.get_by_role("heading", level=1).inner_text() == "What 3 tools of 2 servers cost in context"
    assert "2 searches and 1 description: 800 tokens" in page.locator("main").inner_text()
    assert page.get_by_role("rowheader").all_inner_texts() == ["shop", "mail"]
    for summary in page.locator("summary").all():
        summary.click()
    assert HOSTILE in page.get_by_role("rowheader").all_inner_texts()
    assert page.locator("img, script").count() == 0
    assert page.get_by_role("columnheader", name="Tokens").count() == 3
    assert page.get_by_role("img").get_attribute("aria-labelledby") == "chart"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(22, 24, 27)" if scheme == "dark" else "rgb(246, 246, 244)")
    contrasts = page.evaluate(CONTRAST)
    assert len(contrasts) > 10
    assert {name: ratio for name, ratio in contrasts.items() if ratio < 4.5} == {}
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    context.close()
    assert wrong == []
