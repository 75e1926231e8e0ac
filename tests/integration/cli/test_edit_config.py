"""``mcpzip add`` and the other commands that edit the config, as a person types them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, run_here
from mcpzip_fakes.launch import FakeServer

from mcpzip.config import history

Fake = Callable[..., FakeServer]
PAY: Json = {"name": "pay_invoice", "description": "Pay an invoice"}


class Shell:
    """Runs mcpzip with a home and a config of its own."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "config.json"
        self._env = {"HOME": str(folder), "MCPZIP_CONFIG": str(self.config)}

    def __call__(self, *words: str, code: int = 0, stdin: str = "", **env: str) -> str:
        done = run_here(*words, stdin=stdin.encode(), **self._env, **env)
        said = done.stdout.decode() + done.stderr.decode()
        assert done.returncode == code, said
        return said

    @property
    def servers(self) -> Json:
        found: Json = json.loads(self.config.read_bytes())["mcpServers"]
        return found


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_server_from_nothing_to_its_first_call_and_away_again(fake_mcp: Fake, shell: Shell) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    entry = shop.config
    said = shell("add", "shop", "--", str(entry["command"]), *map(str, entry["args"]))
    assert f"Added shop with 1 tool to {shell.config}." in said
    assert "shop__pay_invoice" in shell("search", "pay an invoice")
    shell("call", "shop__pay_invoice", "{}")
    assert "Renamed shop to till" in shell("rename", "shop", "till")
    assert "till__pay_invoice" in shell("search", "pay an invoice")
    shell("disable", "till")
    assert shell.servers["till"]["disabled"] is True
    assert "till__pay_invoice" not in shell("search", "pay an invoice", code=1)
    shell("enable", "till")
    assert "till" in shell("list")
    shell("remove", "till")
    assert shell.servers == {}


def test_a_server_that_does_not_answer_is_not_added_unless_one_insists(shell: Shell) -> None:
    said = shell("add", "gone", "--", "no-such-command-anywhere", code=1)
    assert "gone was not added, because it does not answer: the command 'no-such-command-anywhere'" in said
    assert "--no-check" in said
    assert not shell.config.exists()
    shell("add", "gone", "--no-check", "-e", "A=1", "--", "no-such-command-anywhere", "-y")
    assert shell.servers == {
        "gone": {"command": "no-such-command-anywhere", "args": ["-y"], "env": {"A": "1"}}
    }
    assert "there is such a server already" in shell("add", "gone", "--no-check", "x", code=2)
    shell("add", "gone", "--force", "--no-check", "x")
    assert shell.servers == {"gone": {"command": "x"}}


@pytest.mark.skipif(sys.platform == "win32", reason="file modes are of POSIX")
def test_a_new_config_is_its_owners_alone(shell: Shell) -> None:
    shell("add-json", "web", "-", "--no-check", stdin='{"url": "https://web.example/mcp"}')
    assert shell.servers == {"web": {"url": "https://web.example/mcp"}}
    assert shell.config.stat().st_mode & 0o777 == 0o600


def test_an_option_of_the_servers_command_needs_two_dashes_before_it(shell: Shell) -> None:
    said = shell("add", "x", "npx", "-y", "foo", code=2)
    assert "write -- before the command" in said


def test_an_edited_config_is_checked(shell: Shell, tmp_path: Path) -> None:
    mistyped = '{"mcpServers": {"a": {"comand": "x"}, "b": {"command": "x"}}}'
    for text, code, said in (
        ('{"mcpServers": {}}', 0, "is valid: 0 servers"),
        (mistyped, 0, "is valid: 2 servers, 1 of them unusable"),  # it said nothing of that
        (mistyped, 0, "a can't be used: neither a command nor a url"),
        ("{", 2, str(shell.config)),
    ):
        editor = tmp_path / "editor.py"
        editor.write_text(f"import sys; open(sys.argv[1], 'w').write({text!r})", "utf-8")
        assert said in shell("edit", VISUAL=f'"{sys.executable}" "{editor}"', code=code)


def test_a_misspelt_command_is_named_with_the_nearest(shell: Shell) -> None:
    assert "There is no command 'serach'. Did you mean search?" in shell("serach", "pay", code=2)
    assert "There is no command 'xyz'. mcpzip --help lists all." in shell("xyz", code=2)


def test_the_config_may_be_named_before_the_command(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    shell("--config", str(other), "add", "x", "--no-check", "y")
    assert json.loads(other.read_bytes()) == {"mcpServers": {"x": {"command": "y"}}}
    assert not shell.config.exists()


def test_all_tools_are_listed_without_padding(fake_mcp: Fake, shell: Shell) -> None:
    shop = fake_mcp(name="shop", tools=[PAY, {"name": "refund", "description": "Pay back"}])
    bank = fake_mcp(name="bank", tools=[{"name": "balance", "description": "What is left"}])
    shell.config.write_text(json.dumps({"mcpServers": {"shop": shop.config, "bank": bank.config}}), "utf-8")
    said = shell("tools").splitlines()
    assert said[0] == "tool               description"
    assert [line.split()[0] for line in said[1:4]] == ["bank__balance", "shop__pay_invoice", "shop__refund"]
    assert all(line == line.rstrip() for line in said)
    assert "3 tools of 2 servers." in said
    found = json.loads(shell("tools", "bank", "--json"))
    assert found == [{"name": "bank__balance", "description": "What is left"}]
    assert "There is no server 'bnk'" in shell("tools", "bnk", code=2)


def test_the_version_before_each_edit_is_kept(shell: Shell, tmp_path: Path) -> None:
    shell("add", "one", "--no-check", "--", "x")
    texts = [shell.config.read_bytes()]
    for words in (("rename", "one", "two"), ("disable", "two"), ("enable", "two"), ("remove", "two")):
        shell(*words)
        texts.append(shell.config.read_bytes())
    editor = tmp_path / "editor.py"
    editor.write_text("import sys; open(sys.argv[1], 'w').write('{\"mcpServers\": {}}')")
    shell("edit", EDITOR=f"{sys.executable} {editor}")
    kept = history.versions(str(shell.config))
    assert [history.read(str(shell.config), one.id) for one in kept] == texts[::-1]
