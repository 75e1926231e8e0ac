"""Where our files are, found without touching the disk or importing anything."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.paths import config_path, expand_home, handshake_path, snapshot_path

HOME = "USERPROFILE" if os.sep == "\\" else "HOME"


def test_the_option_comes_before_the_variable_and_that_before_the_home_folder(tmp_path):
    home = str(tmp_path)
    env = {HOME: home, "MCPZIP_CONFIG": str(tmp_path / "other.json")}
    assert config_path(str(tmp_path / "mine.json"), env) == str(tmp_path / "mine.json")
    assert config_path(None, env) == str(tmp_path / "other.json")
    default = os.path.join(home, ".config", "compressed-mcp-proxy", "config.json")
    assert config_path(None, {HOME: home}) == default
    assert config_path(None, {HOME: home, "MCPZIP_CONFIG": ""}) == default


def test_a_path_is_made_absolute_and_a_tilde_is_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_path("mine.json", {}) == os.path.join(os.getcwd(), "mine.json")
    assert config_path("~/mine.json", {HOME: str(tmp_path)}) == str(tmp_path / "mine.json")
    assert config_path(None, {HOME: str(tmp_path), "MCPZIP_CONFIG": "~/x.json"}) == str(tmp_path / "x.json")
    # An option that is there but empty, as from an unset shell variable, doesn't silently mean another file.
    assert config_path("", {}) == os.getcwd()


def test_without_a_home_in_the_environment_the_system_knows_it(isolated: Path):
    assert config_path(None, {}).startswith(str(isolated))


@pytest.mark.parametrize("path", ["~user/x", "a~", "/~/x", "", "~x"])
def test_only_a_leading_tilde_is_home(path):
    assert expand_home(path, {HOME: "/home/me"}) == path


def test_the_cache_stands_beside_the_config_and_has_its_name():
    folder = os.path.join("some", "where")
    config = os.path.join(folder, "config.json")
    assert snapshot_path(config) == os.path.join(folder, "cache", "tools.json")
    assert handshake_path(config) == os.path.join(folder, "cache", "config.json.handshake.json")
    work = os.path.join(folder, "work.json")
    assert snapshot_path(work) == os.path.join(folder, "cache", "work.json.tools.json")
    assert handshake_path(work) == os.path.join(folder, "cache", "work.json.handshake.json")


file_names = st.text("abcjson.", min_size=1, max_size=12)


@given(one=file_names, other=file_names)
def test_two_configs_never_share_a_file(one, other):
    kept = [{snapshot_path(name), handshake_path(name)} for name in (one, other)]
    assert all(len(files) == 2 for files in kept)
    assert kept[0].isdisjoint(kept[1]) == (one != other)


def test_the_public_names_are_there_and_no_others():
    import mcpzip.config as package

    assert all(callable(getattr(package, name)) for name in package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = package.missing
