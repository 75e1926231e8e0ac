"""Bad input: one sentence that says what to do, and whatever can still be served is served."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import LEGACY, Json, command, config_of, run, serving, snapshot_of, until, write_config
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

PAY: Json = {"name": "pay_invoice", "description": "Pay an invoice"}

BROKEN = {
    "empty": "",
    "not JSON": "hello",
    "trailing comma": '{"mcpServers": {},}',
    "torn": '{"mcpServers": {"a": {"command": "x"',
    "no object": "[]",
    "wrong types": '{"mcpServers": []}',
    "bad timeout": '{"mcpServers": {}, "call_timeout_seconds": "soon"}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_config_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.json"
    config.write_text(text)
    refused(config, str(config))


def refused(config: Path, said: str) -> None:
    asked = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": LEGACY}}
    )
    done = run("serve", "--config", str(config), stdin=asked.encode() + b"\n")
    assert done.returncode == 2
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("mcpzip: ")
    assert line.endswith(".")
    assert said in line


def test_a_missing_config_is_refused_in_one_sentence(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere" / "config.json", "there is no such file")
    refused(tmp_path, "this is a folder")


def test_a_config_that_was_good_once_is_refused_all_the_same(tmp_path: Path) -> None:
    """The stored handshake is not used then."""
    config = write_config(tmp_path)
    with serving(tmp_path):
        pass
    config.write_text('{"mcpServers": []}')
    refused(config, "mcpServers")
    config.unlink()
    refused(config, "there is no such file")


def test_the_config_may_be_named_in_every_way(tmp_path: Path) -> None:
    config = write_config(tmp_path, gemini_api_kee="x")
    home = tmp_path / ".config" / "compressed-mcp-proxy"
    home.mkdir(parents=True)
    (home / "config.json").write_text(config.read_text())
    for words, env in (
        (["serve", "--config", str(config)], {}),
        (["serve", "-c", str(config)], {}),
        (["serve", f"--config={config}"], {}),
        (["serve"], {"MCPZIP_CONFIG": str(config)}),
        (["serve"], {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}),
    ):
        done = run(*words, **env)
        assert done.returncode == 0, words
        assert b"gemini_api_kee" in done.stderr  # it was this config
        assert b"gemini_api_key" in done.stderr
    assert command("x")[-1] == "x"


SPOILT: list[tuple[Callable[[str], str], str]] = [
    (lambda text: "", "damaged"),
    (lambda text: text[: len(text) // 2], "damaged"),
    (lambda text: "\0" * 100, "damaged"),
    (lambda text: '{"some": "other file"}', "isn't a snapshot"),
    (lambda text: text.replace('"mcpzip-snapshot"', '"something-else"'), "isn't a snapshot of mcpzip"),
    (lambda text: text.replace('"version":1', '"version":99'), "by a newer version"),
    (lambda text: text.replace('"config":"', '"config":"/elsewhere'), "belongs to another config"),
]
"""What may befall a snapshot, and what is said of it."""


def test_a_spoilt_snapshot_is_told_and_made_anew(fake_mcp: Fake, tmp_path: Path) -> None:
    with serving(tmp_path, fake_mcp(name="shop", tools=[PAY])) as client:
        client.finds("pay an invoice", "shop__pay_invoice")
    kept, log = tmp_path / "cache" / "tools.json", tmp_path / "stderr.log"
    for spoil, said in SPOILT:
        kept.write_text(spoil(kept.read_text()))
        log.unlink()
        with serving(tmp_path) as client:
            client.finds("pay an invoice", "shop__pay_invoice")
        assert [line for line in log.read_text().splitlines() if said in line and str(kept) in line], said
        shop = snapshot_of(tmp_path / "config.json")["shop"]
        assert [tool["name"] for tool in shop["tools"]] == ["pay_invoice"]
    assert kept.with_name("tools.json.bak").exists()  # the one that a newer version wrote


def test_a_snapshot_that_cannot_be_kept_is_told_once(fake_mcp: Fake, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    with serving(tmp_path, fake_mcp(name="shop", tools=[PAY])) as client:
        client.finds("pay an invoice", "shop__pay_invoice")
    assert (tmp_path / "stderr.log").read_text().count("can't be written") == 1


def test_a_mistake_in_an_entry_costs_that_server_only(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    others = {
        "unset": {"command": "bank", "env": {"TOKEN": "${MCPZIP_TEST_SURELY_UNSET}"}},
        "both": {"command": "x", "url": "http://127.0.0.1/"},
        "neither": {},
        "pigeon": {"type": "carrier-pigeon", "url": "http://127.0.0.1/"},
        "a name": {"command": "x"},
    }
    with serving(tmp_path, shop, others=others) as client:
        client.finds("pay an invoice", "shop__pay_invoice")
        status = client.status().splitlines()
        for server, why in (
            ("unset", "MCPZIP_TEST_SURELY_UNSET"),
            ("both", "both a command and a url"),
            ("neither", "neither a command nor a url"),
            ("pigeon", "found 'carrier-pigeon'"),
        ):
            [line] = [line for line in status if line.startswith(f"{server}: failing")]
            assert why in line
    assert "this name has a character other than" in (tmp_path / "stderr.log").read_text()


def test_an_idle_server_is_ended_and_started_again(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    with serving(tmp_path, shop, idle_timeout_minutes=0.3 / 60) as client:
        client.finds("pay an invoice", "shop__pay_invoice")
        until(lambda: "shop: idle" in client.status())
        until(lambda: shop.record.events("exit"))
        idle = {event.pid for event in shop.record.events("exit")}
        assert client.execute("shop__pay_invoice", {"id": 1}).text == '{"id":1}'
    # On a slow machine it may have been idle between two lists too.
    assert {event.pid for event in shop.record.events("start")} > idle


def test_a_changed_config_is_told_from_the_first_word_on(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    with serving(tmp_path, shop):
        pass
    config = config_of(tmp_path, shop, others={"bank": {"command": "no-such-command-anywhere"}})
    assert os.path.exists(config.path)
    with serving(tmp_path, begin=False) as client:
        hello = client.ask(
            "initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}
        ).result
        assert "bank, shop" in hello["instructions"]
