"""Files that are read where they are, and mapped."""

import errno
import mmap
import os
import sys
from zlib import crc32

import pytest

from mcpzip.system import mapped_files
from mcpzip.system.files import write_atomic
from mcpzip.system.mapped_files import StateFile, map_state, release

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows can't replace what is open or mapped")

DATA = bytes(range(256)) * 9


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "cache" / "tools.json"
    path.parent.mkdir()
    path.write_bytes(DATA)
    return str(path)


@pytest.fixture(params=["read", "mapped"])
def maps(request, monkeypatch):
    monkeypatch.setattr(mapped_files, "_MAPPED_FROM", 0 if request.param == "mapped" else len(DATA) + 1)
    return request.param == "mapped" and sys.platform != "win32"


def test_parts_and_the_whole_are_what_the_file_has(path, monkeypatch):
    monkeypatch.setattr(mapped_files, "_CHUNK", 100)
    file = StateFile(path, len(DATA))
    assert file.size == len(DATA)
    assert file.whole() == DATA
    assert file.checksum() == crc32(DATA)
    assert file.read(3, 9) == DATA[3:9]
    assert file.read(9, 3) == b""
    assert file.read(len(DATA) - 1, len(DATA) + 10) == DATA[-1:]


def test_a_large_file_is_mapped_and_a_small_one_read(path, maps):
    data = map_state(path, len(DATA))
    assert bytes(data) == DATA
    assert isinstance(data.obj, mmap.mmap) == maps
    release(data)
    assert bytes(data) == DATA


@posix
def test_a_file_that_is_replaced_keeps_its_content_for_who_has_it_open(path, maps):
    file, data = StateFile(path, len(DATA)), map_state(path, len(DATA))
    write_atomic(path, b"other")
    assert file.whole() == bytes(data) == DATA
    assert StateFile(path, 5).whole() == bytes(map_state(path, 5)) == b"other"


@pytest.mark.parametrize("opened", [StateFile, map_state])
def test_a_file_over_its_limit_is_refused(path, opened):
    with pytest.raises(OSError, match="larger") as caught:
        opened(path, len(DATA) - 1)
    assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize("opened", [StateFile, map_state])
def test_so_is_what_is_no_file(tmp_path, opened):
    with pytest.raises(OSError, match=r"."):
        opened(str(tmp_path), 10)
    with pytest.raises(FileNotFoundError):
        opened(str(tmp_path / "missing"), 10)


@posix
def test_a_file_system_that_cannot_map_is_read(path, maps, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert bytes(map_state(path, len(DATA))) == DATA


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files as Linux shows them")
def test_a_file_that_nobody_reads_any_more_is_closed(path):
    before = len(os.listdir("/proc/self/fd"))
    file = StateFile(path, len(DATA))
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del file
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_empty_file_is_empty(tmp_path, maps):
    path = tmp_path / "cache" / "empty.bin"
    path.parent.mkdir()
    path.write_bytes(b"")
    assert bytes(map_state(str(path), 10)) == StateFile(str(path), 10).whole() == b""
