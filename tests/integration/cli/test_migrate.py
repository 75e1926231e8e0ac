"""``mcpzip migrate``: servers of clients moved into mcpzip's config, and back."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.client_home import FILES, TIME, Home, run_migrate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpzip.clients import record as records
from mcpzip.clients.known import known_clients
from mcpzip.clients.migration import MigrationError, write
from mcpzip.clients.record import migrate, write_record


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_every_client_at_once_and_back(home: Home) -> None:
    for client in FILES:
        home.file(client)
    found = home.migrate()
    assert home.servers() == {
        "time": TIME,
        "docs": {"url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},
        "files": {"command": "npx", "args": ["-y", "fs", "/tmp"]},
        "git": {"command": "uvx", "args": ["mcp-server-git"]},
        "wind": {"url": "https://wind.example/mcp", "tools": {"deny": ["rm"]}},
        "time-codex": {"command": "uvx", "args": ["mcp-server-time", "--utc"], "env": {"TZ": "UTC"}},
        "gem": {"url": "https://gem.example/mcp"},
        "oc": {"disabled": True, "command": "bunx", "args": ["srv"]},
        "zs": {"command": "zs"},
        "fetch": {"command": "uvx", "args": ["mcp-server-fetch"], "timeout": 300},
        "cl": {"disabled": True, "command": "cl"},
    }
    assert [(stay.client, stay.name) for stay in found.stays] == [
        ("VS Code", "keyed"),
        ("Goose", "tracker"),
        ("Claude Code", "local"),
    ]
    assert {(move.name, move.left_out) for move in found.moves if move.left_out} == {
        ("gem", ("trust",)),
        ("cl", ("autoApprove",)),
    }
    assert home.plan().changes == ()  # a second run changes nothing
    assert set(home.undo().values()) == {"restored", "removed"}
    assert home.is_as_it_was()
    with pytest.raises(MigrationError, match="no migration to undo"):
        home.undo()


AFTER: dict[str, Callable[[bytes], bytes]] = {
    "claude-code": lambda was: (
        was[: was.index(b'"time"')]
        + (
            b'"mcpzip": {\n      "type": "stdio",\n      "command": '
            b'"/opt/mcpzip",\n      "args": [\n        "serve"\n'
        )
        + b"      ]\n    }\n  },"
        + was[was.index(b'\n  "projects"') :]
    ),
    "claude-desktop": lambda was: (
        was[: was.index(b'"files"')]
        + (
            b'"mcpzip": {\r\n\t\t\t"command": "/opt/mcpzip",\r\n\t\t\t"args": '
            b'[\r\n\t\t\t\t"serve"\r\n\t\t\t]\r\n\t\t}\r\n\t},'
        )
        + was[was.index(b'\r\n\t"globalShortcut"') :]
    ),
    "vscode": lambda was: (
        was[: was.index(b'"git"')]
        + (
            b'"mcpzip": {\n            "type": "stdio",\n         '
            b'   "command": "/opt/mcpzip",\n            "args": [\n'
        )
        + b'                "serve"\n            ]\n        },'
        + was[was.index(b'\n        "keyed"') :]
    ),
    "codex": lambda was: (
        was[: was.index(b"[mcp_servers")]
        + b'[mcp_servers.mcpzip]\ncommand = "/opt/mcpzip"\nargs = ["serve"]\n\n'
        + was[was.index(b"[tools]") :]
    ),
    "goose": lambda was: (
        was[: was.index(b"  fetch:")]
        + b"  mcpzip:\n    enabled: true\n    type: stdio\n    name: mcpzip\n"
        + b"    description: All servers, by search\n"
        + b"    cmd: /opt/mcpzip\n    args:\n    - serve\n    envs: {}\n    env_keys: []\n    timeout: 300\n"
        + was[was.index(b"\n  # kept") :]
    ),
    "opencode": lambda was: (
        was[: was.index(b'"oc"')]
        + (
            b'"mcpzip": {\n   "type": "local",\n   "command": [\n    '
            b'"/opt/mcpzip",\n    "serve"\n   ],\n   "enabled": true\n'
        )
        + b"  }\n }\n}\n"
    ),
}


@pytest.mark.parametrize("client", AFTER)
def test_all_else_in_a_file_keeps_its_bytes(home: Home, client: str) -> None:
    path = home.file(client)
    home.migrate(client)
    assert path.read_bytes() == AFTER[client](home.was[path])


def test_what_is_there_stays_there(home: Home) -> None:
    home.config.parent.mkdir()
    text = (
        b'{\n  "search": {"provider": "none"},\n  "mcpServers": {\n    '
        b'"clock": {"command": "uvx", "args": ["mcp-server-time"]}\n  }\n}\n'
    )
    home.config.write_bytes(text)
    home.file("cursor")
    found = home.migrate("cursor")
    assert [(move.as_name, move.new) for move in found.moves] == [("clock", False)]
    assert home.config.read_bytes() == text
    home.file("gemini")
    home.migrate("gemini")
    assert home.config.read_bytes().startswith(text[: text.index(b"\n  }\n}")])
    assert list(home.servers()) == ["clock", "gem"]
    home.undo()
    assert home.config.read_bytes() == text


def test_secrets_are_their_owners_alone(home: Home) -> None:
    home.file("claude-code").chmod(0o640)
    home.migrate("claude-code")
    assert home.config.stat().st_mode & 0o777 == 0o600
    assert (home.folder / ".claude.json").stat().st_mode & 0o777 == 0o640
    kept = list((home.config.parent / "migrations").rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in kept if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in kept if path.is_dir()} == {0o700}


def test_a_link_stays_a_link(home: Home) -> None:
    path = home.file("cursor")
    real = home.folder / "dotfiles.json"
    path.rename(real)
    path.symlink_to(real)
    home.migrate("cursor")
    assert path.is_symlink()
    assert "mcpzip" in json.loads(real.read_bytes())["mcpServers"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everything")
def test_what_is_read_only_stays(home: Home) -> None:
    home.file("cursor").chmod(0o444)
    found = home.plan("cursor")
    assert found.changes == ()
    assert [stay.reason for stay in found.stays] == ["it is read-only"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "it is not JSON: line 1, column 2"),
        (b"\xff\xfe{\0", "it is not UTF-8"),
        (b'{"mcpServers": []}', "mcpServers is not an object"),
    ],
)
def test_a_file_that_cant_be_read_costs_only_itself(home: Home, data: bytes, reason: str) -> None:
    home.file("cursor", data)
    home.file("gemini")
    found = home.plan()
    assert [stay.client for stay in found.stays] == ["Cursor"]
    assert reason in found.stays[0].reason
    assert [move.name for move in found.moves] == ["gem"]


def test_an_entry_that_mcpzip_cant_use_stays(home: Home) -> None:
    path = home.file(
        "cursor",
        b'{"mcpServers": {"bad": {"command": "x", "args": "y '
        b'z", "env": {"A": ["b"]}}, "ok": {"command": "o"}}}',
    )
    found = home.migrate()
    assert [stay.name for stay in found.stays] == ["bad"]
    assert list(json.loads(path.read_bytes())["mcpServers"]) == ["bad", "mcpzip"]


def test_a_name_that_mcpzip_cant_use_is_changed(home: Home) -> None:
    home.file(
        "cursor",
        b'{"mcpServers": {"my server": {"command": "a"}, '
        b'"my/server": {"command": "b"}, "\\u00e9": {"command": "c"}}}',
    )
    home.migrate()
    assert list(home.servers()) == ["my-server", "my-server-cursor", "server"]


def test_a_hundred_servers(home: Home) -> None:
    entries = {f"s{number}": {"command": "x", "args": [str(number)]} for number in range(100)}
    path = home.file("cursor", json.dumps({"mcpServers": entries}, indent=1).encode())
    home.migrate()
    assert home.servers() == entries
    assert list(json.loads(path.read_bytes())["mcpServers"]) == ["mcpzip"]
    home.undo()
    assert home.is_as_it_was()


@pytest.mark.parametrize("client", FILES)
def test_a_file_that_changed_since_gets_its_entries_back(home: Home, client: str) -> None:
    path = home.file(client)
    home.migrate(client)
    now = path.read_bytes()
    added = {"codex": b"\n[new]\nx = 1\n", "goose": b"new: 1\n"}.get(client)
    changed = now + added if added else now.replace(b"{", b'{"new": 1, ', 1)
    path.write_bytes(changed)
    assert home.undo()[path.name] == "merged"
    kind = {each.name: each.format for each in known_clients(home.env)}[client]
    after, was = (records.read(data, kind).servers(()) for data in (path.read_bytes(), home.was[path]))
    assert after.pop("new")
    assert after == was
    assert not home.config.exists()


def test_what_was_added_to_the_config_since_is_kept(home: Home) -> None:
    home.file("cursor")
    home.migrate()
    config = json.loads(home.config.read_bytes())
    config["mcpServers"]["own"] = {"command": "own"}
    home.config.write_text(json.dumps(config))
    assert home.undo()["config.json"] == "merged"
    assert home.servers() == {"own": {"command": "own"}}


def test_a_file_that_changes_meanwhile_is_not_written(home: Home) -> None:
    path = home.file("cursor")
    found = home.plan()
    path.write_bytes(b"{}")
    with pytest.raises(MigrationError, match="was changed meanwhile"):
        migrate(found.changes, str(home.config))
    assert path.read_bytes() == b"{}"


def test_whatever_interrupts_it_nothing_is_lost(home: Home) -> None:
    for client in FILES:
        home.file(client)
    found = home.plan()
    for writes in range(len(found.changes) + 1):
        write_record(found.changes, str(home.config))
        for change in found.changes[:writes]:
            write(change)
        ours = home.servers() if home.config.exists() else {}
        for path in home.was:
            now = path.read_bytes()
            assert now == home.was[path] or b"mcpzip" in now
            assert now == home.was[path] or len(ours) == 11  # who gave its servers up has given them to us
        home.undo()
        assert home.is_as_it_was()
    home.migrate()
    home.undo()
    assert home.is_as_it_was()


NAMES = st.text("abc -é.", min_size=1, max_size=5)
ENTRIES = st.fixed_dictionaries(
    {"command": st.text("xyz/ ", min_size=1, max_size=4)},
    optional={"args": st.lists(st.text(max_size=3), max_size=2), "disabled": st.booleans()},
)


@given(
    st.dictionaries(NAMES, ENTRIES, max_size=4),
    st.sampled_from(["cursor", "vscode", "codex", "zed", "goose"]),
    st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_there_and_back_is_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, servers: dict[str, Any], client: str, windows: bool
) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    key = {"cursor": "mcpServers", "vscode": "servers", "zed": "context_servers"}.get(client)
    if client == "goose":
        entries = {name: {"cmd": each["command"], **each} for name, each in servers.items()}
        text = (
            "# mine\na: 1\n" + yaml.safe_dump({"extensions": entries}, allow_unicode=True) + "# b\nb: [2]\n"
        )
    elif key is None:
        lines = ["# mine"]
        for name, entry in servers.items():
            lines += [
                f"[mcp_servers.{json.dumps(name)}]",
                *(f"{k} = {json.dumps(v)}" for k, v in entry.items()),
            ]
        text = "\n".join([*lines, ""])
    else:
        text = "// mine\n" + json.dumps({"a": 1, key: servers, "b": [2]}, indent="\t") + "\n"
    home.file(client, (text.replace("\n", "\r\n") if windows else text).encode())
    found = home.plan()
    if not found.changes:
        return
    migrate(found.changes, str(home.config))
    assert home.plan().changes == ()
    home.undo()
    assert home.is_as_it_was()


@pytest.mark.skipif(sys.platform != "linux", reason="the files are where Linux has them")
def test_the_command_shows_changes_and_takes_back(home: Home) -> None:
    path = home.file("claude-code")
    path.write_bytes(path.read_bytes().replace(b"${DOCS_TOKEN}", b"sk-7d1e0c55aa"))
    home.was[path] = path.read_bytes()
    home.file("vscode")
    shown = run_migrate(home, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "sk-7d1e0c55aa" not in shown.stdout + shown.stderr
    assert "only the client can replace ${input:key}" in shown.stdout
    assert f"+++ {path}" in shown.stdout
    assert home.is_as_it_was()
    done = run_migrate(home)
    assert done.returncode == 0, done.stderr
    assert "Restart Claude Code, VS Code." in done.stdout
    assert home.servers()["docs"]["headers"] == {"Authorization": "Bearer sk-7d1e0c55aa"}
    again = json.loads(run_migrate(home, "--json").stdout)
    assert (again["moved"], again["changed"]) == ([], False)
    moved = path.read_bytes()
    back = run_migrate(home, "--undo", "--dry-run")  # it took the migration back for real
    assert back.stdout.endswith("Nothing was changed. Without --dry-run it will be.\n")
    assert f"{path} would be as it was." in back.stdout
    assert path.read_bytes() == moved
    partly = run_migrate(home, "--undo", "--from", "vscode")
    assert (partly.returncode, path.read_bytes()) == (2, moved)
    assert "takes the last migration back as a whole" in partly.stderr
    assert f"{path} is as it was." in run_migrate(home, "--undo").stdout
    assert home.is_as_it_was()
    assert run_migrate(home, "--undo").stderr == "mcpzip: There is no migration to undo.\n"


def test_the_command_knows_its_clients(home: Home) -> None:
    wrong = run_migrate(home, "--from", "cursr")
    assert wrong.returncode == 2
    assert "There is no client 'cursr'. Did you mean cursor?" in wrong.stderr
