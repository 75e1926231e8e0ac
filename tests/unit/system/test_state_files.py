"""What stands in ``cache/`` beside the config is used only if it is ours, a file, and not too large.

A planted stored handshake once put its own instructions to the model; a FIFO in its place hung the start.
"""

import errno
import json
import os
import stat
import threading
from pathlib import Path

import pytest
from helpers.state_files import KINDS, WORDS, File

from mcpzip.config import paths
from mcpzip.model import limits
from mcpzip.proxy import tool_usage
from mcpzip.server import handshake_cache
from mcpzip.server.endpoint import HandshakeResults
from mcpzip.server.prepared import prepare
from mcpzip.server.stdio import cache_of
from mcpzip.system import state_files
from mcpzip.system.state_files import first_bytes, foreign_files, read_state, write_state

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has neither owners by number nor FIFOs there")

PATIENCE = 20.0


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "home" / "config.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"shop": {"command": "shop"}}}')
    return str(path)


@pytest.fixture
def strange(monkeypatch):
    """Makes it look as if another user owned what stands at a path."""
    theirs, real_stat, real_fstat = set(), os.stat, os.fstat

    def of(found):
        if (found.st_dev, found.st_ino) not in theirs:
            return found
        fields = list(found[:10])
        fields[4] = found.st_uid + 1
        return os.stat_result(fields)

    def given(path):
        found = real_stat(path)
        theirs.add((found.st_dev, found.st_ino))

    monkeypatch.setattr(os, "stat", lambda path, **more: of(real_stat(path, **more)))
    monkeypatch.setattr(os, "fstat", lambda handle: of(real_fstat(handle)))
    return given


@pytest.fixture(params=KINDS)
def kept(config, request):
    return File(config, request.param)


def test_what_we_write_we_read(kept):
    kept.write()
    assert kept.read()


@posix
def test_a_file_of_another_user_is_not_used_and_a_warning_says_so(kept, strange):
    kept.write()
    strange(kept.path)
    assert not kept.read()
    warnings = prepare(kept.config).warnings
    assert any(os.path.basename(kept.path) in each and "another user" in each for each in warnings)
    assert any("delete what you don't know, or make it yours" in each for each in warnings)


@posix
def test_nothing_in_a_folder_of_another_user_is_used_or_written(kept, strange):
    kept.write()
    before = Path(kept.path).read_bytes()
    Path(kept.path).write_bytes(before)
    strange(os.path.dirname(kept.path))
    assert not kept.read()
    with pytest.raises(PermissionError, match="another user"):
        write_state(kept.path, b"new")
    try:
        kept.write()
    except PermissionError:
        assert kept.kind == "usage"  # its caller tells of it
    assert Path(kept.path).read_bytes() == before
    (warning,) = foreign_files(os.path.dirname(kept.path))
    assert "belongs to another user and is not used" in warning


@posix
def test_who_owns_the_folder_of_the_config_may_own_what_is_kept(kept, strange):
    """A volume of user 1000 in a container that runs as root: who may replace the config decides anyway."""
    kept.write()
    for path in (kept.path, os.path.dirname(kept.path), os.path.dirname(kept.config)):
        strange(path)
    assert kept.read()
    assert foreign_files(os.path.dirname(kept.path)) == ()


@posix
def test_a_fifo_in_its_place_hangs_nothing(kept):
    kept.write()
    os.unlink(kept.path)
    os.mkfifo(kept.path)
    found = []

    def use():
        found.append(kept.read())
        try:
            kept.write()
        except (tool_usage.UnusableUsageFileError, OSError):
            pass
        found.append(kept.read())

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found == [False, True], "it hangs, or reads what is no file"


@posix
def test_a_link_is_replaced_and_never_written_through(kept, tmp_path):
    theirs = tmp_path / "precious"
    theirs.write_text("precious")
    os.makedirs(os.path.dirname(kept.path))
    os.symlink(theirs, kept.path)
    kept.write()
    assert theirs.read_text() == "precious"
    assert not os.path.islink(kept.path)
    assert kept.read()


def test_a_huge_file_is_refused_unread(kept, monkeypatch):
    kept.write()
    limit = {
        "snapshot": limits.SNAPSHOT,
        "handshake": limits.HANDSHAKE,
        "index": limits.INDEX,
        "usage": limits.USAGE,
        "answers": limits.ANSWERS,
        "vectors": limits.VECTORS,
    }[kept.kind]
    os.truncate(kept.path, limit + 1)  # sparse

    def refuse(*_):
        raise AssertionError("it was read")

    monkeypatch.setattr(state_files.os, "read", refuse)
    assert not kept.read()


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert read_state(str(path), 10) == b"x" * 10
    monkeypatch.setattr(state_files.os, "read", lambda *_: b"x" * 11)
    with pytest.raises(OSError, match="larger than 10 bytes"):
        read_state(str(path), 10)


def test_what_could_not_be_read_is_not_written(tmp_path):
    path = tmp_path / "file"
    write_state(str(path), b"x" * 10, 10)
    with pytest.raises(OSError, match="larger than 10 bytes") as caught:
        write_state(str(path), b"y" * 11, 10)
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == b"x" * 10


def test_the_first_bytes_of_what_is_not_there_are_none(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert first_bytes(str(tmp_path / "file"), 2) == b"ab"
    assert first_bytes(str(tmp_path / "none"), 2) == b""
    assert first_bytes(str(tmp_path), 2) == b""


def test_a_handshake_too_large_is_not_stored_and_an_older_one_goes(config):
    handshake_cache.write(config, cache_of(WORDS, handshake_cache.stamp(config)))
    long = HandshakeResults(json.dumps({"instructions": "x" * limits.HANDSHAKE}).encode(), b"{}", None, None)
    handshake_cache.write(config, cache_of(long, handshake_cache.stamp(config)))
    assert not os.path.exists(paths.handshake_path(config))
    assert handshake_cache.read(config) is None


def test_a_huge_config_has_no_stored_handshake(config):
    handshake_cache.write(config, cache_of(WORDS, handshake_cache.stamp(config)))
    os.truncate(config, limits.CONFIG + 1)
    assert handshake_cache.stamp(config) is None


# --- git ----------------------------------------------------------------------------------------------------


def test_nothing_that_is_kept_gets_into_a_commit(kept):
    kept.write()
    ignored = Path(kept.path).parent / ".gitignore"
    assert "*" in ignored.read_text().splitlines()
    if os.name != "nt":
        assert stat.S_IMODE(ignored.stat().st_mode) == 0o600


def test_an_ignore_file_of_the_user_stays(kept):
    folder = Path(kept.path).parent
    folder.mkdir()
    (folder / ".gitignore").write_text("!tools.json\n")
    kept.write()
    assert (folder / ".gitignore").read_text() == "!tools.json\n"
