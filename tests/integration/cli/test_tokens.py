"""`mcpzip tokens`: its page in a file, and what a running process replied."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import run_here, serving, until
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

PAY = {"name": "pay_invoice", "description": "Pay an <b>open</b> invoice"}


def test_what_a_process_replied_is_measured(fake_mcp: Fake, tmp_path: Path) -> None:
    config = str(tmp_path / "config.json")
    log = {"name": "log", "result": {"text": "many words\n" * 9_000}}
    with serving(tmp_path, fake_mcp(name="shop", tools=[PAY, log])) as client:
        client.search("pay")
        client.search("invoice")
        client.ask("tools/call", {"name": "describe_tool", "arguments": {"name": "shop__pay_invoice"}})
        client.execute("shop__pay_invoice")
        handle = client.execute("shop__log").result["content"][-1]["name"]
        client.execute(handle, {"head": 100})

        def told() -> dict[str, int] | None:
            so_far: dict[str, int] | None = json.loads(
                run_here("tokens", "--json", "--config", config).stdout
            )["so_far"]
            return so_far if so_far and so_far["descriptions"] else None

        def kept() -> dict[str, int] | None:
            found: dict[str, dict[str, int]] = json.loads(
                run_here("tokens", "--json", "--config", config).stdout
            )["kept"]
            return found.get("shop__log")

        found = until(told)
        assert (found["processes"], found["searches"], found["descriptions"]) == (1, 2, 1)
        assert found["bytes"] > found["tokens"] > 30
        assert found["saved"] < 0, "one tool costs less than mcpzip"
        counted = until(kept)
        assert counted["results"] == 1
        assert 10_000 < counted["tokens"] < 36_000
        assert (
            "answered 2 searches and 1 description" in run_here("tokens", "--config", config).stdout.decode()
        )
    assert json.loads(run_here("tokens", "--json", "--config", config).stdout)["so_far"] is None


def test_the_page_is_written_whole_or_not_at_all(fake_mcp: Fake, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    server = fake_mcp(name="shop", tools=[PAY])
    config.write_text(json.dumps({"mcpServers": {"shop": server.config}}))
    page = tmp_path / "page.html"
    done = run_here("tokens", "--html", str(page), "--config", str(config))
    assert f"Wrote {page}." in done.stderr.decode()
    text = page.read_text("utf-8")
    assert "pay_invoice" in text
    assert "&lt;b&gt;open&lt;/b&gt;" in text
    if os.name != "nt":
        assert page.stat().st_mode & 0o077 == 0
    done = run_here("tokens", "--html", str(tmp_path / "config.json" / "x"), "--config", str(config))
    assert done.returncode == 2
    assert "can't be written" in done.stderr.decode()
    done = run_here("tokens", "--html", "shop", "--config", str(config))
    assert done.returncode == 2
    assert "Write: mcpzip tokens shop --html" in done.stderr.decode()


def test_without_a_name_the_page_has_one(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"shop": fake_mcp(name="shop", tools=[PAY]).config}}))
    monkeypatch.chdir(tmp_path)
    run_here("tokens", "--config", str(config), "--html")
    assert (tmp_path / "mcpzip-tokens.html").exists()
