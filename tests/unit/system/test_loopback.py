"""Connections on loopback: who can read the file is served, and nobody else says or hears anything."""

import errno
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from helpers.driver import until

from mcpzip.system import local_socket, loopback
from mcpzip.system import loopback_listener as listening_end
from mcpzip.system.loopback_listener import Listener


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder / "it.sock"


@contextmanager
def listening(place: Path) -> Iterator[Listener]:
    with closing(Listener(str(place), 8)) as listener:
        yield listener


def accepted(listener: Listener) -> socket.socket:
    def one() -> socket.socket | None:
        try:
            return listener.accept()[0]
        except BlockingIOError:
            return None

    found = until(one)
    assert isinstance(found, socket.socket)
    return found


def knock(place: Path) -> socket.socket:
    """A connection to the port, of somebody who has proved nothing."""
    port, _ = loopback.parse(place.read_bytes()) or (0, b"")
    connection = socket.create_connection(("127.0.0.1", port))
    connection.settimeout(20)
    return connection


def test_who_can_read_the_file_is_connected(place: Path) -> None:
    with listening(place) as listener:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        connection = local_socket.connect(str(place))
        assert connection is not None
        with closing(connection), accepted(listener) as other:
            local_socket.check_peer(other)
            connection.sendall(b"x")
            other.settimeout(20)
            assert other.recv(1) == b"x"
            assert connection.gettimeout() == 0
    assert local_socket.connect(str(place)) is None  # it is left over


def test_each_listener_has_a_token_of_its_own(place: Path) -> None:
    with listening(place):
        first = loopback.parse(place.read_bytes())
    with listening(place):
        second = loopback.parse(place.read_bytes())
    assert first is not None
    assert second is not None
    assert first[1] != second[1]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b'{"kind": "stop"}\n' + bytes(200),
        bytes(31),
        bytes(2 * loopback.SIZE),
        b"x" * 100_000,
    ],
)
def test_who_does_not_know_the_token_is_not_heard(place: Path, said: bytes) -> None:
    with listening(place) as listener:
        with knock(place) as stranger:
            heard = b""
            try:
                stranger.sendall(said)
                stranger.shutdown(socket.SHUT_WR)
                while data := stranger.recv(1000):
                    heard += data
            except OSError:  # the listener may have gone at each of these steps
                pass
            assert len(heard) in (0, 2 * loopback.SIZE)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_the_listeners_own_proof_proves_nothing_of_the_caller(place: Path) -> None:
    with listening(place) as listener, knock(place) as stranger:
        stranger.sendall(bytes(loopback.SIZE))
        said = b""
        while len(said) < 2 * loopback.SIZE:
            said += stranger.recv(1000)
        stranger.sendall(said[loopback.SIZE :])
        assert stranger.recv(1) == b""
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_process_that_has_got_the_port_since_is_told_nothing(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        place.write_bytes(loopback.written(other.getsockname()[1], bytes(loopback.SIZE)))
        heard: list[bytes] = []

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                heard.append(connection.recv(1000))
                connection.sendall(os.urandom(2 * loopback.SIZE))
                heard.append(connection.recv(1000))

        thread = threading.Thread(target=answer)
        thread.start()
        assert local_socket.connect(str(place)) is None
        thread.join()
        assert [len(each) for each in heard] == [loopback.SIZE, 0]  # random bytes, and the end


def test_one_that_is_silent_is_left_over_only_if_nobody_has_the_lock(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loopback, "TIMEOUT", 0.05)
    lock_path = str(place.with_suffix(".lock"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        place.write_bytes(loopback.written(other.getsockname()[1], bytes(loopback.SIZE)))
        with pytest.raises(TimeoutError):
            local_socket.connect(str(place))
        lock = local_socket.take_lock(lock_path)
        assert lock is not None
        assert not local_socket.remove_left_over(str(place), lock_path)
        assert place.exists()
        os.close(lock)
        assert local_socket.remove_left_over(str(place), lock_path)
        assert not place.exists()
        assert local_socket.remove_left_over(str(place), lock_path)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no socket",
        b"mcpzip-loopback-1 80",
        b"mcpzip-loopback-1 0 " + b"00" * 32,
        b"mcpzip-loopback-1 70000 " + b"00" * 32,
        b"mcpzip-loopback-1 80 " + b"00" * 31,
        b"mcpzip-loopback-1 80 " + "ü".encode() * 32,
        b"mcpzip-loopback-2 80 " + b"00" * 32,
    ],
)
def test_another_file_in_its_place_is_none_of_ours(place: Path, text: bytes) -> None:
    place.write_bytes(text)
    assert loopback.parse(text) is None
    assert local_socket.connect(str(place)) is None


def test_a_file_of_another_user_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(place):
        monkeypatch.setattr(local_socket, "_is_private", lambda folder: True)
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
        with pytest.raises(PermissionError):
            local_socket.connect(str(place))


def test_unproven_connections_are_limited(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_end, "WELCOMING", 1)
    with listening(place) as listener:
        with knock(place) as first:
            first.sendall(b"x")
            until(lambda: listener._welcoming._value == 0)
            with knock(place) as second:
                assert second.recv(1) == b""
        until(lambda: listener._welcoming._value == 1)
        connection = local_socket.connect(str(place))
        assert connection is not None
        connection.close()
        accepted(listener).close()


def test_a_listener_without_descriptors_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_end, "_PAUSE", 0.001)
    with listening(place) as listener:
        take, failures = listener._socket.accept, [OSError(errno.EMFILE, "too many")] * 2

        class Refusing:
            def accept(self) -> tuple[socket.socket, object]:
                if failures:
                    raise failures.pop()
                return take()

            def __getattr__(self, name: str) -> object:
                return getattr(take.__self__, name)

        monkeypatch.setattr(listener, "_socket", Refusing())
        for _ in range(4):  # the first may be taken by the call that is under way
            connection = local_socket.connect(str(place))
            assert connection is not None
            connection.close()
            accepted(listener).close()
        assert not failures
