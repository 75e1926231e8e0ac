"""The log that `mcpzip serve` keeps: what happened to each server, without secrets."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, run, serving, until
from mcpzip_fakes.launch import FakeServer

from mcpzip.config.paths import logs_folder
from mcpzip.system.log_files import LogEntry, LogReader

Fake = Callable[..., FakeServer]

SECRET = "s3cret-of-the-shop"
PAY: Json = {"name": "pay_invoice", "result": {"text": "paid"}}


def entries(folder: Path) -> list[LogEntry]:
    config = folder / "config.json"
    return LogReader(logs_folder(str(config)), config.name).read()


def noted(folder: Path, server: str) -> list[tuple[str, str, str]]:
    return [(one.level, one.event, one.text) for one in entries(folder) if one.server == server]


def test_what_happened_to_a_server_is_in_the_log(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(
        name="shop",
        tools=[PAY],
        faults=[
            {"kind": "stderr", "text": f"listening with {SECRET} \x1b[31m"},
            {"kind": "banner"},
            {"kind": "crash", "method": "tools/call", "nth": 2, "code": 70},
        ],
    )
    keyed = {**shop.config, "env": {**shop.config.get("env", {}), "SHOP_TOKEN": SECRET}}
    gone = {"command": "no-such-command-anywhere"}
    with serving(tmp_path, others={"shop": keyed, "gone": gone}) as client:
        assert client.execute("shop__pay_invoice").text == "paid"
        assert client.execute("shop__pay_invoice").failed
        assert client.execute("shop__pay_invoice").text == "paid"
        assert client.leave() == 0
    found = noted(tmp_path, "shop")
    events = [event for _, event, _ in found if event not in ("stderr", "stdout")]
    assert events[:2] == ["started", "connected"]
    assert {"listed", "ended", "closed"} <= set(events)
    assert events.count("started") == 2
    assert ("info", "listed", "listed 1 tools") in found
    assert ("info", "stderr", "listening with … \x1b[31m") in found
    assert [level for level, event, _ in found if event == "stdout"]
    (ended,) = [text for level, event, text in found if (level, event) == ("warning", "ended")]
    assert ended.startswith("it exited with code 70")
    (connected, *_) = [text for _, event, text in found if event == "connected"]
    assert connected.startswith("connected in ")
    assert connected.endswith(", protocol version 2025-11-25")
    (failed, *_) = noted(tmp_path, "gone")
    assert failed[:2] == ("error", "failed")
    assert failed[2].startswith("the command 'no-such-command-anywhere' was not found. Install it")
    about_mcpzip = [event for _, event, _ in noted(tmp_path, "")]
    assert (about_mcpzip[0], about_mcpzip[-1]) == ("serve", "end")


def test_a_config_that_can_not_be_used_is_in_the_log(tmp_path: Path) -> None:
    """A client often shows nothing of what a server that ends at once had to say."""
    (tmp_path / "config.json").write_text("{")
    assert run("serve", "--config", str(tmp_path / "config.json")).returncode == 2
    (sentence,) = [text for _, event, text in noted(tmp_path, "") if event == "config"]
    assert "config.json" in sentence
    assert run("serve", "--config", str(tmp_path / "none" / "config.json")).returncode == 2
    assert not (tmp_path / "none").exists()


def test_the_level_is_the_configs_or_the_environments(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    with serving(tmp_path, shop, log={"level": "off"}) as client:
        client.leave()
    assert not (tmp_path / "logs").exists()
    monkeypatch.setenv("MCPZIP_LOG", "error")
    with serving(tmp_path, shop, others={"gone": {"command": "no-such-command"}}) as client:
        assert "gone" in until(lambda: "gone: failing" in client.status() and client.status())
        client.leave()
    assert {one.level for one in entries(tmp_path)} == {"error"}
    monkeypatch.setenv("MCPZIP_LOG", "loud")
    with serving(tmp_path, shop) as client:
        client.leave()
    assert "MCPZIP_LOG has no known level" in "".join(text for _, _, text in noted(tmp_path, ""))


def test_two_clients_at_once_have_a_file_each(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    with serving(tmp_path, shop) as first, serving(tmp_path, shop) as second:
        assert first.execute("shop__pay_invoice").text == second.execute("shop__pay_invoice").text == "paid"
        first.leave()
        second.leave()
    by_process = {one.pid: [] for one in entries(tmp_path)}
    for one in entries(tmp_path):
        by_process[one.pid].append(one.event)
    assert len(by_process) == 2
    assert all((events[0], events[-1]) == ("serve", "end") for events in by_process.values())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_not_be_written_stops_nothing(fake_mcp: Fake, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir(mode=0o500)
    with serving(tmp_path, fake_mcp(name="shop", tools=[PAY])) as client:
        assert client.execute("shop__pay_invoice").text == "paid"


def test_a_file_in_the_folders_place_stops_nothing(fake_mcp: Fake, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")
    with serving(tmp_path, fake_mcp(name="shop", tools=[PAY])) as client:
        assert client.execute("shop__pay_invoice").text == "paid"


def test_a_flood_on_stderr_is_cut_and_delays_nothing(tmp_path: Path) -> None:
    loud = (
        "import sys, threading\n"
        "def flood():\n"
        "    while True: print('x' * 500, file=sys.stderr)\n"
        "threading.Thread(target=flood, daemon=True).start()\n"
        "import runpy; sys.argv = ['fake']; runpy.run_module('mcp_server_time', run_name='__main__')\n"
    )
    others = {"time": {"command": sys.executable, "args": ["-c", loud]}}
    with serving(tmp_path, others=others) as client:
        answer = client.execute("time__get_current_time", {"timezone": "UTC"})
        assert "UTC" in answer.text
        client.leave()
    flood = [one for one in entries(tmp_path) if one.event == "stderr"]
    assert any("left out" in one.text for one in flood)
    assert sum(len(json.dumps(one.text)) for one in flood) < 2 << 20
