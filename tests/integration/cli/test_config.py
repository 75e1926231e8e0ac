"""`mcpzip config`: the path, the contents without secrets, the schema."""

import json
from pathlib import Path

import pytest
from helpers.driver import Json

from mcpzip.cli.commands import run
from mcpzip.config.project import approve

TOKEN = "tk-7f3b9a1c5d2e8f60"


@pytest.fixture
def config(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPZIP_PROJECT", "off")
    path = isolated / ".config" / "compressed-mcp-proxy" / "config.json"
    path.parent.mkdir(parents=True)
    return path


def write(path: Path, servers: Json, **more: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers, **more}))


def test_the_path_and_why(config: Path, isolated: Path, capsys, monkeypatch) -> None:
    assert run(["config", "path"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{config}\n"
    assert "the default; there is no such file yet" in said.err
    other = isolated / ".config" / "mcpzip" / "config.json"
    write(other, {})
    run(["config", "path"])
    assert capsys.readouterr().out == f"{other}\n"
    write(config, {})  # the folder of the original comes first
    run(["config", "path"])
    assert capsys.readouterr().out == f"{config}\n"
    run(["config", "path", "-c", str(other)])
    said = capsys.readouterr()
    assert (said.out, "from --config" in said.err) == (f"{other}\n", True)
    monkeypatch.setenv("MCPZIP_CONFIG", str(other))
    run(["config", "path"])
    said = capsys.readouterr()
    assert (said.out, "$MCPZIP_CONFIG" in said.err) == (f"{other}\n", True)


def test_it_shows_what_is_written_without_secrets(config: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN + "x")
    servers = {
        "a": {"url": "https://a.example/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}},
        "b": {"command": "b", "env": {"API_TOKEN": "${MY_TOKEN}"}},
    }
    write(config, servers, expose="direct", _note="mine")
    assert run(["config", "show"]) == 0
    said = capsys.readouterr().out
    assert TOKEN not in said
    shown = json.loads(said)
    assert shown["mcpServers"]["b"] == servers["b"]
    assert shown["mcpServers"]["a"]["url"] == "https://a.example/mcp"
    assert (shown["expose"], shown["_note"]) == ("direct", "mine")
    assert "call_timeout_seconds" not in shown


def test_with_defaults_every_key_that_has_one_is_there(config: Path, capsys) -> None:
    write(config, {"b": {"command": "b", "boost": 2}}, search={"default_limit": 7})
    assert run(["config", "show", "--defaults"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["mcpServers"]["b"] == {"command": "b", "boost": 2, "disabled": False, "share": "auto"}
    assert shown["call_timeout_seconds"] == 120
    assert (shown["search"]["default_limit"], shown["search"]["max_tokens"]) == (7, 1500)


def test_a_projects_servers_are_shown_once_they_are_trusted(
    config: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    write(config, {"b": {"command": "b"}})
    project = tmp_path / "shop" / ".mcpzip.json"
    write(project, {"b": {"command": "theirs"}, "c": {"command": "c"}})
    monkeypatch.setenv("MCPZIP_PROJECT", str(project.parent))
    run(["config", "show"])
    said = capsys.readouterr()
    assert list(json.loads(said.out)["mcpServers"]) == ["b"]
    assert "is not trusted yet" in said.err
    approve(str(project), project.read_bytes(), str(config))
    run(["config", "show"])
    assert json.loads(capsys.readouterr().out)["mcpServers"] == {
        "b": {"command": "theirs"},
        "c": {"command": "c"},
    }
    run(["config", "path"])
    assert capsys.readouterr().out == f"{config}\n{project}\n"


def test_a_config_that_cannot_be_used_is_told_as_elsewhere(config: Path, capsys) -> None:
    config.write_text("{")
    assert run(["config", "show"]) == 2
    assert "not JSON" in capsys.readouterr().err
    config.unlink()
    assert run(["config", "show"]) == 2
    assert "No config yet" in capsys.readouterr().err


def test_the_schema_is_json(capsys) -> None:
    assert run(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Config of mcpzip"


def test_without_a_config_the_first_step_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("MCPZIP_CONFIG", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert run(["search", "pay"]) == 2
    assert capsys.readouterr().err.startswith("mcpzip: No config yet. mcpzip init asks")
    servers = {
        "a": {"command": "a"},
        "b": {"command": "b"},
        "mcpzip": {"command": "mcpzip", "args": ["serve"]},
    }
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"c": {"command": "c"}}}))
    assert run(["servers"]) == 2
    said = "mcpzip: No config yet. Claude Code has 2 servers, Cursor 1. To move them here: mcpzip migrate\n"
    assert capsys.readouterr().err == said
    assert run(["servers", "--config", str(tmp_path / "other.json")]) == 2
    assert "other.json: there is no such file" in capsys.readouterr().err
