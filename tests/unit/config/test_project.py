"""A project's servers are used only if exactly this content of its file was trusted."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import Config, load
from mcpzip.config import project as projects
from mcpzip.config.paths import find_project, snapshot_path, state_path, trust_path
from mcpzip.config.project import TrustError, approvals, approve, revoke, trust_of
from mcpzip.model.errors import ConfigError

HOME = "USERPROFILE" if os.sep == "\\" else "HOME"
TIME = {"command": "uvx", "args": ["mcp-server-time"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project's folder."""
    (tmp_path / "shop" / "src").mkdir(parents=True)
    return tmp_path / "shop"


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "user" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"time": TIME, "git": {"command": "mine"}}}))
    return str(path)


def write(folder: Path, servers: object, **more: object) -> str:
    path = folder / ".mcpzip.json"
    path.write_text(json.dumps({"mcpServers": servers, **more}))
    return str(path)


def trusted(folder: Path, servers: object, config: str, **more: object) -> Config:
    """The config with the project's trusted ``servers``."""
    project = write(folder, servers, **more)
    approve(project, Path(project).read_bytes(), config)
    return load(config, {}, project)


# ---- where it is


def test_the_nearest_file_above_the_current_folder_is_the_projects(folder, monkeypatch):
    monkeypatch.chdir(folder / "src")
    assert find_project({HOME: "/nowhere"}) == ""
    outer = folder.parent / ".mcpzip.json"
    outer.write_text("{}")
    assert find_project({HOME: "/nowhere"}) == str(outer)
    inner = write(folder, {})
    assert find_project({HOME: "/nowhere"}) == inner


def test_the_home_folder_is_no_project_and_neither_is_what_is_above(folder, monkeypatch):
    monkeypatch.chdir(folder / "src")
    write(folder, {})
    assert find_project({HOME: str(folder)}) == ""
    assert find_project({HOME: str(folder / "src")}) == ""


def test_the_variable_names_a_folder_or_none(folder, monkeypatch):
    monkeypatch.chdir(folder)
    path = write(folder, {})
    assert find_project({"MCPZIP_PROJECT": "off"}) == ""
    monkeypatch.chdir(folder.parent)
    assert find_project({"MCPZIP_PROJECT": "shop"}) == path
    assert find_project({"MCPZIP_PROJECT": "~/shop", HOME: str(folder.parent)}) == path


@pytest.mark.skipif(os.name == "nt", reason="the current folder can't be deleted")
def test_a_deleted_folder_is_no_project(folder, monkeypatch):
    monkeypatch.chdir(folder / "src")
    (folder / "src").rmdir()
    assert find_project({}) == ""


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes in folders")
def test_a_pipe_of_that_name_is_not_waited_for(folder, config, monkeypatch):
    monkeypatch.chdir(folder)
    os.mkfifo(folder / ".mcpzip.json")
    assert find_project({HOME: "/nowhere"}) == ""
    (warning,) = load(config, {}, str(folder / ".mcpzip.json")).warnings
    assert "is not used" in warning


@given(one=st.text("ab/", min_size=1, max_size=9), other=st.text("ab/", min_size=1, max_size=9))
def test_two_projects_never_share_a_cache_file(one, other):
    paths = [os.path.normpath(f"/p/{name}/.mcpzip.json") for name in (one, other)]
    files = {snapshot_path(state_path("/c/config.json", path)) for path in paths}
    assert len(files) == len(set(paths))
    assert snapshot_path("/c/config.json") not in files


# ---- trust


def test_only_what_was_trusted_is_trusted(folder, config):
    path = write(folder, {"time": TIME})
    data = Path(path).read_bytes()
    assert trust_of(path, data, config) == "unknown"
    approve(path, data, config)
    assert trust_of(path, data, config) == "trusted"
    assert trust_of(path, data + b" ", config) == "changed"
    assert trust_of(str(folder / "src" / ".mcpzip.json"), data, config) == "unknown"
    assert revoke(path, config)
    assert not revoke(path, config)
    assert trust_of(path, data, config) == "unknown"


@given(data=st.binary(max_size=50), other=st.binary(max_size=50))
def test_another_content_is_never_trusted(data, other, tmp_path_factory):
    config = str(tmp_path_factory.mktemp("user") / "config.json")
    approve("/p/.mcpzip.json", data, config)
    assert (trust_of("/p/.mcpzip.json", other, config) == "trusted") == (data == other)


def test_the_oldest_trust_is_forgotten(config, monkeypatch):
    monkeypatch.setattr(projects, "TRUSTED_AT_MOST", 3)
    for number in range(5):
        approve(f"/p{number}/.mcpzip.json", b"{}", config)
    assert [Path(path).parent.name for path in approvals(config)] == ["p2", "p3", "p4"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"\xff"])
def test_a_damaged_list_trusts_nobody_and_says_so(folder, config, content):
    path = write(folder, {"time": TIME})
    Path(trust_path(config)).parent.mkdir()
    Path(trust_path(config)).write_bytes(content)
    with pytest.raises(TrustError, match="delete it"):
        trust_of(path, b"", config)
    found = load(config, {}, path)
    assert sorted(found.servers) == ["git", "time"]
    assert "delete it" in found.warnings[0]


# ---- what is used


def test_an_untrusted_file_changes_nothing_but_a_warning(folder, config):
    path = write(folder, {"git": {"command": "evil"}, "more": TIME})
    found = load(config, {}, path)
    assert found.servers == load(config, {}).servers
    assert (found.project, found.state_path) == ("", config)
    (warning,) = found.warnings
    assert "is not trusted yet" in warning
    assert f"mcpzip trust {folder}" in warning


def test_a_change_ends_the_trust(folder, config):
    trusted(folder, {"more": TIME}, config)
    path = write(folder, {"more": {"command": "evil"}})
    found = load(config, {}, path)
    assert "more" not in found.servers
    assert "has changed since you trusted it" in found.warnings[0]


def test_a_projects_servers_come_over_the_users(folder, config):
    found = trusted(folder, {"git": {"command": "theirs"}, "more": TIME}, config)
    assert {name: server.command for name, server in found.servers.items()} == {
        "time": "uvx", "git": "theirs", "more": "uvx"
    }  # fmt: skip
    assert found.project_servers == {"git", "more"}
    assert found.state_path != config
    assert found.warnings == ()


def test_without_a_config_a_trusted_project_is_enough(folder, tmp_path):
    config = str(tmp_path / "none" / "config.json")
    assert list(trusted(folder, {"more": TIME}, config).servers) == ["more"]
    with pytest.raises(ConfigError, match="no such file"):
        load(config, {})
    write(folder, {"other": TIME})
    with pytest.raises(ConfigError, match="mcpzip trust"):
        load(config, {}, str(folder / ".mcpzip.json"))


def test_its_servers_run_in_its_folder(folder, config):
    servers = {
        "a": TIME,
        "b": {**TIME, "cwd": "src"},
        "c": {"command": "${MCPZIP_PROJECT_DIR}/run"},
    }
    found = trusted(folder, servers, config).servers
    assert found["a"].cwd == str(folder)
    assert found["b"].cwd == str(folder / "src")
    assert found["c"].command == f"{folder}/run"
    assert found["time"].cwd is None


def test_only_its_servers_are_used(folder, config):
    found = trusted(folder, {"more": TIME}, config, expose="direct", search={"default_limit": 50}, mcp=1)
    assert found.expose == "meta"
    assert found.search.default_limit != 50
    warnings = "\n".join(found.warnings)
    assert ".mcpzip.json: expose: not used in the file of a project; move it to your own config" in warnings
    assert ".mcpzip.json: mcp: " in warnings


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": []}', '{"mcpServers": {"a": 1}}'])
def test_a_mistake_in_it_costs_the_project_only(folder, config, content):
    path = folder / ".mcpzip.json"
    path.write_text(content)
    approve(str(path), path.read_bytes(), config)
    found = load(config, {}, str(path))
    assert {"time", "git"} <= set(found.servers)
    problems = "\n".join((*found.warnings, *(server.problem or "" for server in found.servers.values())))
    assert path.name in problems


def test_mcpzip_in_it_would_start_itself_endlessly(folder, config):
    found = trusted(folder, {"loop": {"command": "mcpzip", "args": ["serve", "-c", "other.json"]}}, config)
    assert "this is mcpzip itself" in (found.servers["loop"].problem or "")


def test_the_secrets_of_either_are_not_inherited_by_the_other(folder, config):
    theirs = {**TIME, "env": {"A": "${THEIRS}"}, "inheritEnv": True}
    mine = {**TIME, "env": {"B": "${MINE}"}, "inheritEnv": True}
    Path(config).write_text(json.dumps({"mcpServers": {"mine": mine}}))
    path = write(folder, {"theirs": theirs})
    approve(path, Path(path).read_bytes(), config)
    found = load(config, {"MINE": "a-secret-of-mine", "THEIRS": "a-secret-of-theirs"}, path).servers
    assert "THEIRS" in found["mine"].withheld_env
    assert "MINE" in found["theirs"].withheld_env
