"""An agent that is started in a project has the project's servers too, once a person has trusted them."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command_answers import answered
from helpers.driver import Client, run_here, serving, until, write_config
from mcpzip_fakes.launch import FakeServer

from mcpzip.config.project import approve

Fake = Callable[..., FakeServer]

PAY = {"name": "pay_invoice", "description": "Pay an invoice"}
SHIP = {"name": "ship_parcel", "description": "Ship a parcel"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def user(fake_mcp: Fake, tmp_path: Path) -> Path:
    """The folder of a config with a server of the user."""
    folder = tmp_path / "user"
    folder.mkdir()
    write_config(folder, fake_mcp(name="bank", tools=[PAY]))
    return folder


def add_project(shop: Path, *fakes: FakeServer, trusted_by: Path | None = None) -> Path:
    file = shop / ".mcpzip.json"
    file.write_text(json.dumps({"mcpServers": {fake.name: fake.config for fake in fakes}}))
    if trusted_by is not None:
        approve(str(file), file.read_bytes(), str(trusted_by / "config.json"))
    return file


def servers(client: Client) -> list[str]:
    """The servers that `proxy_status` lists."""
    lines = client.status().splitlines()
    names = [line.partition(":")[0] for line in lines[1:] if not line.startswith(" ")]
    return [name for name in names if name != "config"]


def test_an_agent_in_a_trusted_project_has_both(
    fake_mcp: Fake, tmp_path: Path, user: Path, shop: Path
) -> None:
    add_project(shop, fake_mcp(name="post", tools=[SHIP]), trusted_by=user)
    (shop / "src").mkdir()
    for folder in (shop, shop / "src"):  # the second time from the caches of the first
        with serving(user, cwd=folder) as client:
            assert "post__ship_parcel" in client.search("ship a parcel")
            assert client.execute("post__ship_parcel").text == "{}"
            assert client.execute("bank__pay_invoice").text == "{}"
            assert servers(client) == ["bank", "post"]
    with serving(user, cwd=tmp_path) as client:
        assert "post__ship_parcel" not in client.search("ship a parcel")
        assert servers(client) == ["bank"]


def test_an_untrusted_project_starts_nothing(fake_mcp: Fake, user: Path, shop: Path) -> None:
    post = fake_mcp(name="post", tools=[SHIP])
    file = add_project(shop, post)
    with serving(user, cwd=shop) as client:
        assert servers(client) == ["bank"]
        assert f"config: {file} is not trusted yet" in client.status()
        assert client.execute("bank__pay_invoice").text == "{}"
    assert f"{file} is not trusted yet" in (user / "stderr.log").read_text()
    assert not post.record.events("start")


def test_trust_begins_and_ends_while_mcpzip_runs(fake_mcp: Fake, user: Path, shop: Path) -> None:
    post, other = fake_mcp(name="post", tools=[SHIP]), fake_mcp(name="other", tools=[SHIP])
    add_project(shop, post)
    with serving(user, cwd=shop) as client:
        assert servers(client) == ["bank"]
        add_project(shop, post, trusted_by=user)
        until(lambda: servers(client) == ["bank", "post"])
        assert client.execute("post__ship_parcel").text == "{}"
        file = add_project(shop, other)
        until(lambda: servers(client) == ["bank"])
        assert f"{file} has changed since you trusted it" in (user / "stderr.log").read_text()
        assert not other.record.events("start")
        add_project(shop, other, trusted_by=user)
        until(lambda: servers(client) == ["bank", "other"])
        assert client.execute("other__ship_parcel").text == "{}"
        (user / "config.json").unlink()
        until(lambda: "no such file" in client.status())
        assert client.execute("bank__pay_invoice").text == "{}"


def test_a_change_of_the_file_ends_the_trust(fake_mcp: Fake, user: Path, shop: Path) -> None:
    post, other = fake_mcp(name="post", tools=[SHIP]), fake_mcp(name="other", tools=[SHIP])
    add_project(shop, post, trusted_by=user)
    with serving(user, cwd=shop) as client:
        assert servers(client) == ["bank", "post"]
    add_project(shop, post, other)
    with serving(user, cwd=shop) as client:
        assert servers(client) == ["bank"]
    assert not other.record.events("start")
    assert "has changed since you trusted it" in (user / "stderr.log").read_text()


def test_what_is_known_of_the_users_servers_is_known_in_a_new_project(
    fake_mcp: Fake, tmp_path: Path, shop: Path
) -> None:
    bank = fake_mcp(name="bank", tools=[PAY])
    user = tmp_path / "user"
    user.mkdir()
    with serving(user, bank, cwd=tmp_path) as client:
        assert "bank__pay_invoice" in client.search("pay")
    add_project(shop, fake_mcp(name="post", tools=[SHIP]), trusted_by=user)
    with serving(user, cwd=shop) as client:
        assert "post__ship_parcel" in client.search("ship a parcel")
        assert "bank__pay_invoice" in client.search("pay an invoice")
    assert len(bank.record.events("start")) == 1


@pytest.mark.parametrize("words", [["tools"], ["search", "ship a parcel"], ["servers"]])
def test_commands_in_the_project_see_its_servers(
    fake_mcp: Fake, user: Path, shop: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    add_project(shop, fake_mcp(name="post", tools=[SHIP]), trusted_by=user)
    monkeypatch.chdir(shop)
    done = run_here(*words, "--config", str(user / "config.json"))
    assert b"post" in done.stdout
    monkeypatch.setenv("MCPZIP_PROJECT", "off")
    done = run_here(*words, "--config", str(user / "config.json"))
    assert b"post" not in done.stdout


# ---- mcpzip trust


def test_an_agent_cannot_trust(fake_mcp: Fake, user: Path, shop: Path) -> None:
    file = add_project(shop, fake_mcp(name="post", tools=[SHIP]))
    for stdin in (b"", b"y\n", b"yes\n"):
        done = run_here("trust", str(shop), "--config", str(user / "config.json"), stdin=stdin)
        assert done.returncode == 1
        assert b"Only a person at a terminal" in done.stderr
    assert (
        b"No project is trusted" in run_here("trust", "--list", "--config", str(user / "config.json")).stdout
    )
    assert str(file).encode() in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("answer", "trusted"), [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_a_person_sees_everything_and_decides(user: Path, shop: Path, answer: bytes, trusted: bool) -> None:
    servers = {
        "bank": {"command": "sh", "args": ["-c", "echo a  b"], "env": {"TOKEN": "${THEIR_TOKEN}"}},
        "web": {"url": "https://shop.example/mcp", "headers": {"X": "\u202e\x1b[2J${MORE}"}},
    }
    (shop / ".mcpzip.json").write_text(json.dumps({"mcpServers": servers}))
    words = ("trust", str(shop), "--config", str(user / "config.json"))
    shown = answered(words, b"trust them?", answer)
    for text in ("sh -c 'echo a  b'", "THEIR_TOKEN", "https://shop.example/mcp", "MORE"):
        assert text in shown
    assert "replaces your own server of this name" in shown
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    listed = run_here("trust", "--list", "--config", str(user / "config.json")).stdout.decode()
    assert (str(shop) in listed) == trusted
    again = run_here(*words).stdout.decode()
    assert ("is trusted already" in again) == trusted


def test_trust_says_what_is_wrong(user: Path, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = str(user / "config.json")
    monkeypatch.chdir(shop)
    assert (
        b"There is no .mcpzip.json in this folder or above it" in run_here("trust", "--config", config).stderr
    )
    assert b"can't be read" in run_here("trust", str(shop), "--config", config).stderr
    (shop / ".mcpzip.json").write_text("[]")
    assert b"found no object of servers" in run_here("trust", "--config", config).stderr
    (shop / ".mcpzip.json").write_text(json.dumps({"mcpServers": {"a": {"command": "a" * 3000}}}))
    assert b"3,000 characters, which nobody can judge" in run_here("trust", "--config", config).stderr
    assert b"was not trusted" in run_here("trust", "--revoke", "--config", config).stdout
