"""Whether a config means the same in two environments."""

import json
import os
from pathlib import Path

import pytest

from mcpzip.config import Config, load
from mcpzip.server.daemon.meaning import SELECTING, mean_the_same, selecting_variables
from mcpzip.system.environment import server_environment


def config_of(folder: Path, *servers: dict[str, object]) -> Config:
    path = folder / "config.json"
    path.write_text(json.dumps({"mcpServers": {f"s{at}": server for at, server in enumerate(servers)}}))
    return load(path, {})


def test_what_selects_is_what_servers_inherit() -> None:
    """A variable that no server gets must not keep two agents apart."""
    names = {name for names in SELECTING.values() for name in names}
    own = dict.fromkeys(names, "x")
    assert server_environment(own, {}).keys() == names


@pytest.mark.parametrize(
    ("command", "name", "counts"),
    [
        ("python", "VIRTUAL_ENV", True),
        ("/usr/bin/python3.12", "PYENV_VERSION", True),
        ("uv", "VIRTUAL_ENV", True),
        ("uvx", "VIRTUAL_ENV", False),
        ("uvx", "UV_INDEX_URL", True),
        ("npx", "VIRTUAL_ENV", False),
        ("npx", "JAVA_HOME", False),
        ("npx", "npm_config_registry", True),
        ("npx.cmd", "VIRTUAL_ENV", False),
        ("npx", "LD_LIBRARY_PATH", True),
        ("docker", "CONDA_PREFIX", False),
        ("some-server", "VIRTUAL_ENV", True),
        ("some-server", "JAVA_HOME", True),
        ("some-server", "NVM_DIR", False),
        ("some-server", "EDITOR", False),
    ],
)
def test_a_variable_counts_where_it_selects_what_runs(
    tmp_path: Path, command: str, name: str, counts: bool
) -> None:
    config = config_of(tmp_path, {"command": command})
    for one, other in (({name: "/a"}, {name: "/b"}), ({name: "/a"}, {})):
        assert mean_the_same(config, one, other) != counts
    assert mean_the_same(config, {name: "/a"}, {name: "/a"})


def test_one_that_the_config_sets_is_not_inherited(tmp_path: Path) -> None:
    servers = {"command": "python", "env": {"VIRTUAL_ENV": "/c"}}, {"command": "npx"}
    config = config_of(tmp_path, *servers)
    assert "VIRTUAL_ENV" not in selecting_variables(config)
    assert mean_the_same(config, {"VIRTUAL_ENV": "/a"}, {"VIRTUAL_ENV": "/b"})


def test_servers_that_do_not_run_select_nothing(tmp_path: Path) -> None:
    servers = {"command": "python", "disabled": True}, {"url": "https://x.example/mcp"}
    assert selecting_variables(config_of(tmp_path, *servers)) == frozenset()


@pytest.mark.skipif(os.name != "posix", reason="links need rights there")
def test_a_link_to_the_folder_of_a_program_is_the_same_program(tmp_path: Path) -> None:
    """fnm makes one for each terminal, so that no two agents shared anything."""
    for version in ("v1", "v2"):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "server").write_text("#!/bin/sh")
        (folder / "server").chmod(0o755)
        (tmp_path / "venv").mkdir(exist_ok=True)
    paths = {}
    for terminal, version in (("one", "v1"), ("two", "v1"), ("three", "v2")):
        (tmp_path / terminal).symlink_to(tmp_path / version)
        paths[terminal] = {"PATH": str(tmp_path / terminal)}
    (tmp_path / "venv" / "server").symlink_to(tmp_path / "v1" / "server")
    config = config_of(tmp_path, {"command": "server"})
    assert mean_the_same(config, paths["one"], paths["two"])
    assert not mean_the_same(config, paths["one"], paths["three"])
    assert not mean_the_same(config, paths["one"], {"PATH": str(tmp_path / "venv")})


def test_the_documentation_has_them_all() -> None:
    page = (Path(__file__).parents[4] / "docs" / "daemon.md").read_text()
    for program, names in SELECTING.items():
        assert f"`{program}`" in page or not program
        assert all(f"`{name}`" in page for name in names)
