"""Sockets of one user: their folder, what may lie in their place, and the lock that decides who listens."""

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mcpzip.system import local_socket

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this system has no such sockets")


@pytest.fixture
def place() -> Iterator[Path]:
    """A path for a socket, short enough, in a folder that does not exist yet."""
    with TemporaryDirectory(prefix="s-") as folder:
        yield Path(folder) / "run" / "it.sock"


def test_who_connects_is_heard(place: Path) -> None:
    with local_socket.listen(str(place)) as listening:
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        connection = local_socket.connect(str(place))
        assert connection is not None
        with closing(connection):
            other, _ = listening.accept()
            with other:
                local_socket.check_peer(other)
                connection.sendall(b"x")
                assert other.recv(1) == b"x"


def test_a_socket_is_told_from_a_later_one_with_the_same_inode(place: Path) -> None:
    """A file system gives a new file the number of the one that was removed, if no other file took it."""
    with local_socket.listen(str(place)):
        first = local_socket.identity(str(place))
        connection = local_socket.connect(str(place))
        assert connection is not None
        connection.close()
        assert local_socket.identity(str(place)) == first is not None
        os.utime(place, ns=(1, 1))  # what a later one is, as far as its file says
        assert local_socket.identity(str(place)) != first


def test_without_a_listener_there_is_no_connection(place: Path) -> None:
    assert local_socket.connect(str(place)) is None
    place.parent.mkdir(mode=0o700)
    assert local_socket.connect(str(place)) is None
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    assert local_socket.connect(str(place)) is None
    place.unlink()
    place.write_text("no socket")
    assert local_socket.connect(str(place)) is None
    place.unlink()
    with local_socket.listen(str(place.with_name("other.sock"))):
        place.symlink_to("other.sock")
        assert local_socket.connect(str(place)) is None


def test_what_lies_in_its_place_is_replaced(place: Path) -> None:
    place.parent.mkdir()
    place.parent.chmod(0o755)
    victim = place.parent.parent / "victim"
    victim.write_text("x")
    place.symlink_to(victim)
    with local_socket.listen(str(place)):
        assert stat.S_ISSOCK(place.lstat().st_mode)
        assert victim.read_text() == "x"
        first = local_socket.identity(str(place))
        with local_socket.listen(str(place)):
            assert local_socket.identity(str(place)) != first
    place.unlink()
    assert local_socket.identity(str(place)) is None


def test_a_folder_that_others_can_enter_is_not_trusted(place: Path) -> None:
    with local_socket.listen(str(place)):
        place.parent.chmod(0o777)
        assert local_socket.connect(str(place)) is None


@pytest.mark.parametrize("what", ["folder", "socket", "process"])
def test_what_belongs_to_another_user_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with local_socket.listen(str(place)) as listening:
        other = os.geteuid() + 1
        if what == "process":
            connection = local_socket.connect(str(place))
            assert connection is not None
            accepted, _ = listening.accept()
            monkeypatch.setattr(os, "geteuid", lambda: other)
            with closing(connection), accepted, pytest.raises(PermissionError, match="another user"):
                local_socket.check_peer(accepted)
            return
        if os.geteuid() != 0:
            pytest.skip("only root can give a file to another user")
        os.chown(place.parent if what == "folder" else place, other, -1)
        with pytest.raises(PermissionError, match="another user"):
            local_socket.connect(str(place))
        os.chown(place.parent, 0, -1)


def test_a_full_backlog_is_no_listener(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_socket, "BACKLOG", 0)
    with local_socket.listen(str(place)):
        waiting = []
        while (connection := local_socket.connect(str(place))) is not None:
            waiting.append(connection)
            assert len(waiting) < 10
        for each in waiting:
            each.close()


def test_one_holds_the_lock(place: Path) -> None:
    path = str(place.with_name("it.lock"))
    first = local_socket.take_lock(path)
    assert first is not None
    assert local_socket.take_lock(path) is None
    os.close(first)
    second = local_socket.take_lock(path)
    assert second is not None
    os.unlink(path)
    third = local_socket.take_lock(path)  # of the file that is there now
    assert third is not None
    os.close(second)
    os.close(third)


def test_a_lock_is_no_link(place: Path) -> None:
    place.parent.mkdir(mode=0o700)
    path = place.with_name("it.lock")
    path.symlink_to(place.parent.parent / "victim")
    with pytest.raises(OSError, match="symbolic"):
        local_socket.take_lock(str(path))
    assert not (place.parent.parent / "victim").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow fewer")
def test_many_can_wait_until_it_accepts(place: Path) -> None:
    with local_socket.listen(str(place)), ExitStack() as stack:
        for _ in range(300):
            connection = local_socket.connect(str(place))
            assert connection is not None
            stack.callback(connection.close)
