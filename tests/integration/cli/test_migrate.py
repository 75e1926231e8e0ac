"""``mcpzip migrate``: servers of clients moved into mcpzip's config, and back."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpzip.clients import record as records
from mcpzip.clients.known import known_clients
from mcpzip.clients.migration import MigrationError, Plan, write
from mcpzip.clients.plan import plan
from mcpzip.clients.record import migrate, undo, write_record

TIME = {"command": "uvx", "args": ["mcp-server-time"]}
GOOSE = """\
# mine
GOOSE_MODEL: x
extensions:
  developer:
    enabled: true
    type: builtin
  fetch: # pages
    enabled: true
    type: stdio
    name: fetch
    cmd: uvx
    args:
    - mcp-server-fetch
    envs: {}
    env_keys: []
    timeout: 300
    bundled: null

  # kept in the keyring
  tracker:
    type: stdio
    cmd: tracker
    env_keys: [TRACKER_TOKEN]
GOOSE_MODE: auto
"""
FILES: dict[str, tuple[str, bytes]] = {
    "claude-code": (
        ".claude.json",
        b'{\n  "numStartups": 4,\n  "mcpServers": {\n    "time": {"type": "stdio", "command": "uvx", '
        b'"args": ["mcp-server-time"], "env": {}},\n    "docs": '
        b'{"type": "http", "url": "https://docs.example/mcp",\n'
        b'      "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}}\n '
        b' },\n  "projects": {"/home/x": {"mcpServers": '
        b'{"local": {"command": "./serve"}}, "history": [{"display": "hi"}]}}\n}\n',
    ),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"files": '
        b'{"command": "npx", "args": ["-y", "fs", "/tmp"]}\r\n\t},\r\n'
        b'\t"globalShortcut": ""\r\n}',
    ),
    "cursor": (".cursor/mcp.json", b'{"mcpServers":{"time":{"command":"uvx","args":["mcp-server-time"]}}}'),
    "vscode": (
        ".config/Code/User/mcp.json",
        b'{\n    // servers of mine\n    "servers": {\n        "git": {"type": "stdio", "command": "uvx", '
        b'"args": ["mcp-server-git"]}, // git\n        "keyed": '
        b'{"command": "x", "env": {"K": "${input:key}"}},\n'
        b'    },\n    "inputs": [{"id": "key", "type": "promptString"},],\n}\n',
    ),
    "windsurf": (
        ".codeium/windsurf/mcp_config.json",
        b'{"mcpServers": {"wind": {"serverUrl": "https://wind.example/mcp", "disabledTools": ["rm"]}}}',
    ),
    "codex": (
        ".codex/config.toml",
        b'model = "o3" # best\n\n[mcp_servers.time]\ncommand = "uvx"\nargs = ["mcp-server-time", "--utc"]\n\n'
        b'[mcp_servers.time.env]\nTZ = "UTC"\n\n[tools]\nweb = true\n',
    ),
    "gemini": (
        ".gemini/settings.json",
        b'{"theme": "x", "mcpServers": {"gem": {"httpUrl": "https://gem.example/mcp", "trust": true}}}\n',
    ),
    "opencode": (
        ".config/opencode/opencode.json",
        b'{\n "$schema": "https://opencode.ai/config.json",\n "mcp": {\n  "oc": {"type": "local", '
        b'"command": ["bunx", "srv"], "enabled": false}\n }\n}\n',
    ),
    "zed": (
        ".config/zed/settings.json",
        b'// Zed\n{\n  "vim_mode": true,\n  "context_servers": '
        b'{\n    "zs": {"source": "custom", "command": "zs", '
        b'"args": []},\n  },\n}\n',
    ),
    "goose": (
        ".config/goose/config.yaml",
        GOOSE.encode(),
    ),
    "cline": (
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        b'{"mcpServers": {"cl": {"command": "cl", "autoApprove": ["a"], "disabled": true}}}',
    ),
}
"""By client: its file, below the home folder of Linux, and what is in it."""


class Home:
    """A home folder with the files of some clients. was: their bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"HOME": str(folder), "DOCS_TOKEN": "t-9341aab7"}
        self.config = folder / "mcpzip" / "config.json"
        self.was: dict[Path, bytes] = {}

    def file(self, client: str, data: bytes | None = None) -> Path:
        name, usual = FILES[client]
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(usual if data is None else data)
        self.was[path] = path.read_bytes()
        return path

    def plan(self, *clients: str, projects: Sequence[Path] = ()) -> Plan:
        known = [each for each in known_clients(self.env, "linux") if not clients or each.name in clients]
        return plan(
            known,
            str(self.config),
            self.env,
            command="/opt/mcpzip",
            arguments=["serve"],
            projects=[str(project) for project in projects],
        )

    def migrate(self, *clients: str, projects: Sequence[Path] = ()) -> Plan:
        found = self.plan(*clients, projects=projects)
        migrate(found.changes, str(self.config))
        return found

    def servers(self) -> dict[str, Any]:
        servers: dict[str, Any] = json.loads(self.config.read_bytes())["mcpServers"]
        return servers

    def undo(self) -> dict[str, str]:
        return {Path(path).name: outcome for path, outcome in undo(str(self.config))}

    def is_as_it_was(self) -> bool:
        return all(path.read_bytes() == data for path, data in self.was.items()) and not self.config.exists()


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


def project_of(home: Home) -> Path:
    """A project whose servers are in its own files, and in Claude Code's."""
    shop = home.folder / "src" / "shop"
    (shop / ".cursor").mkdir(parents=True)
    files = {
        home.folder / ".claude.json": {
            "mcpServers": {"time": TIME},
            "projects": {
                str(shop): {"mcpServers": {"mine": {"command": "x", "env": {"KEY": "k-1"}}, "time": TIME}},
                "/gone": {"mcpServers": {"old": {"command": "y"}}},
            },
        },
        shop / ".mcp.json": {"mcpServers": {"db": {"command": "./db", "args": ["--all"]}}},
        shop / ".cursor" / "mcp.json": {
            "mcpServers": {"db": {"command": "dbx", "cwd": "${workspaceFolder}/db"}, "time": TIME}
        },
    }
    for path, content in files.items():
        path.write_bytes(json.dumps(content, indent=2).encode())
        home.was[path] = path.read_bytes()
    return shop


def read_servers(path: Path) -> dict[str, Any]:
    servers: dict[str, Any] = json.loads(path.read_bytes())["mcpServers"]
    return servers


def test_a_project_keeps_its_servers(home: Home) -> None:
    shop = project_of(home)
    found = home.migrate("claude-code", "cursor", projects=[shop])
    assert list(home.servers()) == ["time"]
    ours = read_servers(shop / ".mcpzip.json")
    assert ours == {
        "db": {"command": "./db", "args": ["--all"]},
        "mine": {"command": "x", "env": {"KEY": "k-1"}},
        "db-cursor": {"command": "dbx", "cwd": "${MCPZIP_PROJECT_DIR}/db"},
        "time": TIME,  # for those who share the project and haven't it in their own config
    }
    assert (shop / ".mcpzip.json").stat().st_mode & 0o777 == 0o600
    shared = {"mcpzip": {"type": "stdio", "command": "mcpzip", "args": ["serve"]}}
    assert read_servers(shop / ".mcp.json") == shared  # no path of this machine
    assert list(read_servers(shop / ".cursor" / "mcp.json")) == ["mcpzip"]
    claude = json.loads((home.folder / ".claude.json").read_bytes())
    assert claude["mcpServers"]["mcpzip"]["command"] == "/opt/mcpzip"
    assert claude["projects"] == {
        str(shop): {"mcpServers": {}},
        "/gone": {"mcpServers": {"old": {"command": "y"}}},
    }
    assert [(stay.name, stay.project) for stay in found.stays] == [("old", "/gone")]
    assert home.plan("claude-code", "cursor", projects=[shop]).changes == ()
    home.undo()
    assert home.is_as_it_was()
    assert not (shop / ".mcpzip.json").exists()


def test_a_projects_servers_stay_unless_asked_for(home: Home) -> None:
    shop = project_of(home)
    found = home.migrate("claude-code", "cursor")
    assert not (shop / ".mcpzip.json").exists()
    assert {(stay.name, stay.project) for stay in found.stays} == {
        ("mine", str(shop)),
        ("time", str(shop)),
        ("old", "/gone"),
    }
    home.undo()
    assert home.is_as_it_was()


def test_the_home_folder_is_no_project(home: Home) -> None:
    home.file("cursor")
    known = [each for each in known_clients(home.env, "linux") if each.name == "cursor"]
    found = plan(known, str(home.config), home.env, command="m", arguments=[], folder=str(home.folder))
    assert (len(found.moves), found.stays) == (1, ())


def test_a_project_alone_registers_mcpzip_for_its_client(home: Home) -> None:
    shop = project_of(home)
    path = home.folder / ".claude.json"
    only = {"projects": {str(shop): {"mcpServers": {"mine": {"command": "x"}}, "allowedTools": []}}}
    path.write_text(json.dumps(only))
    home.was[path] = path.read_bytes()
    (shop / ".mcp.json").unlink()
    del home.was[shop / ".mcp.json"]
    home.migrate("claude-code", projects=[shop])
    claude = json.loads(path.read_bytes())
    assert list(claude["mcpServers"]) == ["mcpzip"]
    assert claude["projects"][str(shop)] == {"mcpServers": {}, "allowedTools": []}
    assert not home.config.exists()
    path.write_bytes(path.read_bytes().replace(b'"allowedTools": []', b'"allowedTools": ["x"]'))
    home.undo()
    assert json.loads(path.read_bytes()) == {
        "projects": {str(shop): {"mcpServers": {"mine": {"command": "x"}}, "allowedTools": ["x"]}},
        "mcpServers": {},
    }


def test_whatever_interrupts_the_move_of_a_project_nothing_is_lost(home: Home) -> None:
    shop = project_of(home)
    found = home.plan("claude-code", "cursor", projects=[shop])
    for writes in range(len(found.changes) + 1):
        write_record(found.changes, str(home.config))
        for change in found.changes[:writes]:
            write(change)
        texts = [
            path.read_text() for path in (*home.was, home.config, shop / ".mcpzip.json") if path.exists()
        ]
        for needle in ("./db", "dbx", "k-1", "mcp-server-time"):
            assert any(needle in text for text in texts)
        home.undo()
        assert home.is_as_it_was()
        assert not (shop / ".mcpzip.json").exists()


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


def run(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        **home.env,
        "MCPZIP_CONFIG": str(home.config),
        "XDG_CONFIG_HOME": "",
        "NO_COLOR": "1",
    }
    command = [sys.executable, "-m", "mcpzip", "migrate", *words]
    return subprocess.run(
        command, env=env, cwd=home.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the files are where Linux has them")
def test_the_command_shows_changes_and_takes_back(home: Home) -> None:
    path = home.file("claude-code")
    path.write_bytes(path.read_bytes().replace(b"${DOCS_TOKEN}", b"sk-7d1e0c55aa"))
    home.was[path] = path.read_bytes()
    home.file("vscode")
    shown = run(home, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "sk-7d1e0c55aa" not in shown.stdout + shown.stderr
    assert "only the client can replace ${input:key}" in shown.stdout
    assert f"+++ {path}" in shown.stdout
    assert home.is_as_it_was()
    done = run(home)
    assert done.returncode == 0, done.stderr
    assert "Restart Claude Code, VS Code." in done.stdout
    assert home.servers()["docs"]["headers"] == {"Authorization": "Bearer sk-7d1e0c55aa"}
    again = json.loads(run(home, "--json").stdout)
    assert (again["moved"], again["changed"]) == ([], False)
    assert f"{path} is as it was." in run(home, "--undo").stdout
    assert home.is_as_it_was()
    assert run(home, "--undo").stderr == "mcpzip: There is no migration to undo.\n"


def test_the_command_knows_its_clients(home: Home) -> None:
    wrong = run(home, "--from", "cursr")
    assert wrong.returncode == 2
    assert "There is no client 'cursr'. Did you mean cursor?" in wrong.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the files are where Linux has them")
def test_the_command_moves_a_project_and_says_how_to_trust_it(home: Home) -> None:
    shop = project_of(home)
    stayed = run(home).stdout
    assert f"mine of Claude Code ({shop}) stays as it is: it belongs to one project." in stayed
    assert f"mcpzip migrate --project {shop}\n" in stayed
    done = run(home, "--project", str(shop))
    assert done.returncode == 0, done.stderr
    assert "mine in shop/.mcpzip.json" in done.stdout
    assert f"allow them: mcpzip trust {shop}\n" in done.stdout
    refused = run(home, "--project", str(home.folder))
    assert refused.returncode == 2
    assert "is no project" in refused.stderr
