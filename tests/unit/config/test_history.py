"""The earlier versions of a config: bounded, private, and only what was kept."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import history
from mcpzip.model import limits


def test_the_newest_comes_first(tmp_path: Path) -> None:
    config = str(tmp_path / "config.json")
    assert history.versions(config) == []
    for number in range(3):
        history.keep(config, b"%d" % number, 1_700_000_000.0 + number)
    found = history.versions(config)
    assert [history.read(config, one.id) for one in found] == [b"2", b"1", b"0"]
    assert found[0].at == 1_700_000_002.0
    assert found[0].size == 1


def test_the_same_is_kept_once_and_a_clock_that_goes_back_changes_no_order(tmp_path: Path) -> None:
    config = str(tmp_path / "config.json")
    for data, now in ((b"a", 2e9), (b"a", 2e9 + 5), (b"b", 1e9), (b"c", -5.0), (b"d", 1e15)):
        history.keep(config, data, now)
    assert [history.read(config, one.id) for one in history.versions(config)] == [b"d", b"c", b"b", b"a"]


def test_only_the_owner_reads_them(tmp_path: Path) -> None:
    config = str(tmp_path / "config.json")
    history.keep(config, b"secret", 1.0)
    folder = tmp_path / "history"
    assert (folder / ".gitignore").exists()
    (file,) = folder.glob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_they_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = str(tmp_path / "config.json")
    for number in range(limits.CONFIG_VERSIONS + 5):
        history.keep(config, b"%d" % number, float(number))
    assert len(history.versions(config)) == limits.CONFIG_VERSIONS
    monkeypatch.setattr(limits, "CONFIG_VERSIONS_BYTES", 250)
    for number in range(4):
        history.keep(config, b"%d" % number * 100, 1e6 + number)
    assert [one.size for one in history.versions(config)] == [100, 100]
    history.keep(config, b"x" * 1_000, 2e6)
    assert [one.size for one in history.versions(config)] == [1_000]


def test_a_file_that_was_changed_is_not_used(tmp_path: Path) -> None:
    config = str(tmp_path / "config.json")
    history.keep(config, b"{}", 1.0)
    (version,) = history.versions(config)
    (tmp_path / "history" / f"config.json.{version.id}.json").write_bytes(b"{ }")
    with pytest.raises(OSError, match="changed since it was kept"):
        history.read(config, version.id)


@given(st.text(max_size=40))
def test_no_id_leads_elsewhere(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    config = str(tmp_path_factory.getbasetemp() / "config.json")
    for one in (name, f"../{name}", f"{name}/../../config"):
        with pytest.raises(FileNotFoundError):
            history.read(config, one)


def test_configs_in_one_folder_have_their_own(tmp_path: Path) -> None:
    one, other = str(tmp_path / "config.json"), str(tmp_path / "config")
    history.keep(one, b"1", 1.0)
    history.keep(other, b"2", 1.0)
    assert [history.read(one, each.id) for each in history.versions(one)] == [b"1"]
    assert [history.read(other, each.id) for each in history.versions(other)] == [b"2"]
    assert history.forget(one) == 1
    assert history.versions(one) == []
    assert len(history.versions(other)) == 1
