"""Saving the config: only over the text that it was made from, and with the version before kept."""

import os
import stat
from pathlib import Path

import pytest

from mcpzip.config import history
from mcpzip.config.saving import ConfigChangedError, ConfigSaveError, save
from mcpzip.system.locks import hold


@pytest.fixture
def config(tmp_path: Path) -> Path:
    config = tmp_path / "config.json"
    config.write_bytes(b"old")
    return config


def test_the_version_before_is_kept(config: Path) -> None:
    assert save(str(config), b"old", b"new") == []
    assert config.read_bytes() == b"new"
    (version,) = history.versions(str(config))
    assert history.read(str(config), version.id) == b"old"


def test_another_text_is_not_replaced(config: Path) -> None:
    for before in (b"older", None):
        with pytest.raises(ConfigChangedError, match="changed meanwhile"):
            save(str(config), before, b"new")
    with pytest.raises(ConfigChangedError):
        save(str(config.with_name("none.json")), b"old", b"new")
    assert config.read_bytes() == b"old"
    assert history.versions(str(config)) == []


def test_a_new_file_is_private(tmp_path: Path) -> None:
    config = tmp_path / "deep" / "config.json"
    assert save(str(config), None, b"new") == []
    assert stat.S_IMODE(config.stat().st_mode) == 0o600 or os.name == "nt"
    assert history.versions(str(config)) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_file_keeps_its_mode_unless_told_otherwise(config: Path) -> None:
    config.chmod(0o644)
    save(str(config), b"old", b"new")
    assert stat.S_IMODE(config.stat().st_mode) == 0o644
    save(str(config), b"new", b"old", mode=0o600)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_two_that_save_wait_for_each_other(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpzip.config.saving._PATIENCE", 0.0)
    (config.parent / "history").mkdir()
    release = hold(str(config.parent / "history" / "config.json.lock"))
    with pytest.raises(ConfigSaveError, match="another mcpzip is saving it"):
        save(str(config), b"old", b"new")
    release()
    assert save(str(config), b"old", b"new") == []


def test_a_version_that_cannot_be_kept_is_told_and_the_text_is_saved(config: Path) -> None:
    (config.parent / "history").write_text("in the way")
    (problem,) = save(str(config), b"old", b"new")
    assert "was not kept" in problem
    assert config.read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="a folder can't be opened there")
def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigSaveError, match="can't be read"):
        save(str(tmp_path / "folder"), b"", b"new")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigSaveError, match=r"can't be (read|written)"):
        save(str(tmp_path / "file" / "config.json"), None, b"new")
