"""``mcpzip migrate --project``: the servers of one project, moved to its .mcpzip.json and back."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.client_home import TIME, Home, run_migrate

from mcpzip.clients.known import known_clients
from mcpzip.clients.migration import write
from mcpzip.clients.plan import plan
from mcpzip.clients.record import write_record


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


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


@pytest.mark.skipif(sys.platform != "linux", reason="the files are where Linux has them")
def test_the_command_moves_a_project_and_says_how_to_trust_it(home: Home) -> None:
    shop = project_of(home)
    stayed = run_migrate(home).stdout
    assert f"mine of Claude Code ({shop}) stays as it is: it belongs to one project." in stayed
    assert f"mcpzip migrate --project {shop} --config " in stayed
    done = run_migrate(home, "--project", str(shop))
    assert done.returncode == 0, done.stderr
    assert "mine in shop/.mcpzip.json" in done.stdout
    assert f"allow them: mcpzip trust {shop} --config " in done.stdout
    refused = run_migrate(home, "--project", str(home.folder))
    assert refused.returncode == 2
    assert "is no project" in refused.stderr
