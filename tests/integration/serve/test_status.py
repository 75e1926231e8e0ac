"""`mcpzip status` knows the processes that serve, and no other."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from helpers.driver import Json, run_here, serving, until, write_config
from helpers.serve_http import listening
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

PAY = {"name": "pay_invoice", "description": "Pay an invoice"}
FAIL = {"name": "fail", "result": {"text": "no", "isError": True}}


def status(folder: Path) -> list[Json]:
    return json.loads(run_here("status", "--json", "--config", str(folder / "config.json")).stdout)


def calls(found: Json) -> int:
    return sum(server["calls"] for server in found["servers"])


def test_a_process_is_known_while_it_serves(fake_mcp: Fake, tmp_path: Path) -> None:
    shop, idle = fake_mcp(name="shop", tools=[PAY, FAIL]), fake_mcp(name="idle", tools=[PAY])
    assert status(tmp_path) == []
    with serving(tmp_path, shop, idle) as client:
        client.search("pay")
        client.execute("shop__pay_invoice")
        client.execute("shop__fail")
        (found,) = until(lambda: [one for one in status(tmp_path) if calls(one) == 2])
        assert found["pid"] == client.process.pid
        assert found["searches"] == 1
        assert [one["name"] for one in found["clients"]] == ["test"]
        servers = {one["name"]: one for one in found["servers"]}
        assert (servers["shop"]["calls"], servers["shop"]["errors"]) == (2, 1)
        assert (servers["shop"]["state"], servers["shop"]["tools"]) == ("connected", 2)
        assert servers["idle"]["calls"] == 0
        if os.path.exists("/proc/self"):
            assert found["memory"]["whole"] > found["memory"]["own"] > 0
        said = run_here("status", "--config", str(tmp_path / "config.json")).stdout.decode()
        assert "1 search, 0 descriptions, 2 calls, 1 error" in said
    assert status(tmp_path) == []
    assert os.listdir(tmp_path / "run") == [".gitignore"]


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_process_that_was_killed_is_not_shown_and_its_file_removed(fake_mcp: Fake, tmp_path: Path) -> None:
    with serving(tmp_path, fake_mcp(name="shop", tools=[PAY])) as client:
        until(lambda: status(tmp_path))
        client.process.send_signal(signal.SIGKILL)
        client.process.wait()
        assert status(tmp_path) == []
        assert os.listdir(tmp_path / "run") == [".gitignore"]


def test_two_agents_are_two_processes(fake_mcp: Fake, tmp_path: Path) -> None:
    with serving(tmp_path, fake_mcp(name="shop", tools=[PAY])) as one, serving(tmp_path) as two:
        found = until(lambda: found if len(found := status(tmp_path)) == 2 else None)
        assert {each["pid"] for each in found} == {one.process.pid, two.process.pid}
        assert b"Together" in run_here("status", "--config", str(tmp_path / "config.json")).stdout


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"pid": "x"}', b"\xff"])
def test_a_file_that_is_not_ours_is_ignored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "1-a.json").write_bytes(content)
    assert status(tmp_path) == []
    assert (tmp_path / "run" / "1-a.json").read_bytes() == content


def test_a_folder_that_cannot_be_written_costs_nothing(fake_mcp: Fake, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("not a folder")
    with serving(tmp_path, fake_mcp(name="shop", tools=[PAY])) as client:
        assert client.execute("shop__pay_invoice").text == "{}"
        assert status(tmp_path) == []


def test_over_http_each_client_and_the_address_are_shown(fake_mcp: Fake, tmp_path: Path) -> None:
    config = write_config(tmp_path, fake_mcp(name="shop", tools=[PAY]))
    command = shutil.which("mcpzip")
    assert command is not None
    with listening(command, config) as url:
        for name in ("one", "two", "one"):
            info = {"name": name, "version": "1\x1b[2J"}
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            httpx.post(url, json=body, headers={"Accept": "application/json, text/event-stream"})
        (found,) = until(lambda: [one for one in status(tmp_path) if len(one["clients"]) == 2])
        assert found["address"] == url
        said = run_here("status", "--config", str(config)).stdout.decode()
        assert said.startswith("one 1")
        assert url in said
        assert "\x1b" not in said
    assert status(tmp_path) == []
