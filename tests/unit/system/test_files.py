"""A file is whole or the old one, its owner's only, and nothing is left beside it."""

import errno
import os
import stat

import pytest

from mcpzip.system import files
from mcpzip.system.files import read_bytes_limited, write_atomic


def modes_hold() -> bool:
    return os.name != "nt"


def test_missing_folders_are_made_for_their_owner_only(tmp_path):
    path = tmp_path / "a" / "b" / "file.json"
    write_atomic(str(path), b"one")
    assert path.read_bytes() == b"one"
    if modes_hold():
        assert [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)] == [
            0o600,
            0o700,
            0o700,
        ]


def test_a_file_is_replaced_and_gets_its_mode_whatever_the_umask(tmp_path):
    path = tmp_path / "file.json"
    path.write_bytes(b"old")
    before = os.umask(0o777)
    try:
        write_atomic(str(path), b"new", mode=0o640)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file.json"]
    if modes_hold():
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("fails", ["fsync", "replace", "chmod"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, fails):
    path = tmp_path / "file.json"
    path.write_bytes(b"old")

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, fails, refuse)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(str(path), b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.json"]


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path, monkeypatch):
    real = os.fsync

    def only_files(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(handle)

    monkeypatch.setattr(os, "fsync", only_files)
    write_atomic(str(tmp_path / "file"), b"kept")
    assert (tmp_path / "file").read_bytes() == b"kept"


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(OSError, match="a"):
        write_atomic(str(tmp_path / "a" / "b"), b"new")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="needs a right that Windows users seldom have")
def test_a_link_is_followed_not_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "file.json", tmp_path / "link.json"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_atomic(str(link), b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_a_file_that_another_process_has_open_is_tried_again(tmp_path, monkeypatch):
    # Windows answers a replace with "permission denied" while anyone has the old file open.
    monkeypatch.setattr(files, "_REPLACE_MAY_BE_REFUSED", True)
    monkeypatch.setattr(files, "_PAUSE", 0.0)
    real, refusals = os.replace, iter(range(3))

    def refuse_at_first(source, target):
        if next(refusals, None) is not None:
            raise PermissionError(errno.EACCES, "Access is denied")
        real(source, target)

    monkeypatch.setattr(os, "replace", refuse_at_first)
    write_atomic(str(tmp_path / "file"), b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_refusal_that_lasts_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_PAUSE", 0.0)

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Access is denied")

    monkeypatch.setattr(os, "replace", refuse)
    for may_be_refused in (True, False):
        monkeypatch.setattr(files, "_REPLACE_MAY_BE_REFUSED", may_be_refused)
        with pytest.raises(PermissionError):
            write_atomic(str(tmp_path / "file"), b"new")
    assert os.listdir(tmp_path) == []


def test_reading_stops_at_the_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert read_bytes_limited(str(path), 10) == b"x" * 10
    with pytest.raises(OSError, match="larger than 9 bytes") as raised:
        read_bytes_limited(str(path), 9)
    assert raised.value.errno == errno.EFBIG


def test_reading_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_bytes_limited(str(tmp_path / "none"), 9)
