"""What becomes of an agent's session when its daemon is lost, or when there can be none."""

import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from helpers.daemons import Home, daemon_home, listen_as_nobody, said
from helpers.driver import INITIALIZE, LEGACY, alive, until

IMPATIENT = {"ACCEPT_TIMEOUT": 1.0, "SILENCE": 0.3, "PROBE_TIMEOUT": 1.0}
"""Constants of the shim with which it gives up a suspended daemon sooner."""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with so short a path that the socket lies beside the config."""
    with TemporaryDirectory(prefix="d-") as folder:
        yield Path(folder)


@pytest.fixture(params=["unix", "loopback"])
def home(short: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Home]:
    with daemon_home(short, monkeypatch, loopback=request.param == "loopback") as home:
        yield home


def test_a_killed_daemon_loses_no_session_and_repeats_no_call(home: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with home.serving() as one, home.serving() as other:
        server, first = said(one)["pid"], home.pid
        lost = one.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        home.kill()
        answer = one.answer(lost)
        assert answer.failed
        assert "may have run" in answer.text
        assert said(one)["pid"] == said(other)["pid"] != server
        assert "up__say" in other.search("say")
        assert home.pid not in (first, None)
        until(lambda: not alive(server))
        assert len(home.calls("wait")) == 1
        gate.touch()
        assert [each for each in one.heard if b'"id":%d,' % lost in each] == [answer.line]


def test_requests_that_do_no_harm_are_answered_by_the_next_daemon(home: Home) -> None:
    with home.serving() as client:
        said(client)
        pid = home.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)  # it reads nothing more
        search = client.send("tools/call", {"name": "search_tools", "arguments": {"query": "say"}})
        listing = client.send("tools/list")
        os.kill(pid, signal.SIGKILL)
        assert "up__say" in client.answer(search).text
        assert client.answer(listing).result["tools"]


def test_what_the_client_agreed_and_set_goes_on(home: Home) -> None:
    with home.serving() as client:
        said(client)
        client.ask("logging/setLevel", {"level": "error"})
        home.kill()
        assert client.ask("ping").result == {}
        assert said(client)
        refused = client.ask("initialize", {"protocolVersion": LEGACY, "capabilities": {}})
        assert "already" in refused.message.get("error", {}).get("message", "already")
        assert len([line for line in client.heard if b'"protocolVersion"' in line]) <= 2


def test_a_call_that_a_dead_daemon_did_not_take_is_made_by_the_next(home: Home) -> None:
    """It was told to have perhaps run, because what could not be sent counted as sent."""
    with home.serving() as client:
        for _ in range(2):
            said(client)
            client.process.send_signal(signal.SIGSTOP)
            home.kill()
            call = client.send_call("up__say", {"late": True})
            client.process.send_signal(signal.SIGCONT)
            assert not client.answer(call).failed
        assert len([call for call in home.calls("say") if call.get("late")]) == 2


def test_after_too_many_losses_it_serves_alone(home: Home) -> None:
    with home.serving(constants={"LOSSES": 2}) as client:
        said(client)
        home.kill()
        said(client)
        home.kill()
        assert said(client)
        assert home.pid is None


def test_a_suspended_daemon_holds_up_nobody(home: Home) -> None:
    with ExitStack() as stack:
        before = stack.enter_context(home.serving(constants=dict(IMPATIENT)))
        said(before)
        pid = home.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            after = stack.enter_context(home.serving(constants=dict(IMPATIENT)))
            assert said(after)
            search = before.send("tools/call", {"name": "search_tools", "arguments": {"query": "say"}})
            call = before.send_call("up__say", {})
            assert "may have run" in before.answer(call).text
            assert "up__say" in before.answer(search).text
            assert said(before)
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_daemon_that_is_stopped_starts_again_with_the_next_request(home: Home) -> None:
    with home.serving() as client:
        server = said(client)["pid"]
        pid = home.pid
        home.stop()
        until(lambda: not alive(server))
        assert home.pid is None
        assert said(client)["pid"] != server
        assert home.pid not in (pid, None)


def test_a_newer_version_takes_over_when_no_call_is_under_way(home: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with home.serving() as old:
        said(old)
        first = home.pid
        call = old.send_call("up__wait", {"until": str(gate)})
        until(lambda: home.calls("wait"))
        with home.serving(version="99.0") as new:
            assert "up__say" in new.search("say")
            assert home.pid == first
            gate.touch()
            assert not old.answer(call).failed
            until(lambda: home.pid not in (first, None))
            assert said(new)["pid"] == said(old)["pid"]
            assert len(home.calls("wait")) == 1


def test_an_older_version_uses_the_newer_daemon(home: Home) -> None:
    with home.serving() as new:
        said(new)
        pid = home.pid
        with home.serving(version="0.0.1") as old:
            assert said(old)["pid"] == said(new)["pid"]
            assert home.pid == pid


# --- what may lie in its place


def stale_socket(home: Home) -> None:
    os.makedirs(os.path.dirname(home.socket), mode=0o700)
    listen_as_nobody(home.socket)


def stale_lock(home: Home) -> None:
    os.makedirs(os.path.dirname(home.lock), mode=0o700)
    Path(home.lock).write_text("123456")


def link_in_its_place(home: Home) -> None:
    os.makedirs(os.path.dirname(home.socket), mode=0o700)
    os.symlink(home.folder / "elsewhere", home.socket)


def open_folder(home: Home) -> None:
    os.makedirs(os.path.dirname(home.socket))
    os.chmod(os.path.dirname(home.socket), 0o777)


@pytest.mark.parametrize("left", [stale_socket, stale_lock, link_in_its_place, open_folder])
def test_what_is_left_over_is_in_nobodys_way(home: Home, left: Callable[[Home], None]) -> None:
    left(home)
    with home.serving() as one, home.serving() as other:
        assert said(one)["pid"] == said(other)["pid"]
        assert home.pid is not None
    assert stat.S_IMODE(os.stat(os.path.dirname(home.socket)).st_mode) == 0o700
    assert not (home.folder / "elsewhere").exists()


def no_room(home: Home) -> None:
    """A disk on which no file and no socket can be made."""
    os.makedirs(os.path.dirname(home.socket), mode=0o700)
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o nr_inodes=1 none {os.path.dirname(home.socket)}"):
        pytest.skip("only root can mount a full disk")


def file_for_folder(home: Home) -> None:
    Path(os.path.dirname(home.socket)).write_text("")


def link_for_lock(home: Home) -> None:
    os.makedirs(os.path.dirname(home.lock), mode=0o700)
    os.symlink(home.folder / "elsewhere", home.lock)


def folder_for_socket(home: Home) -> None:
    os.makedirs(home.socket, mode=0o700)
    os.chmod(os.path.dirname(home.socket), 0o700)


def another_users_folder(home: Home) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    os.makedirs(os.path.dirname(home.socket), mode=0o700)
    os.chown(os.path.dirname(home.socket), 12345, 12345)


def another_users_socket(home: Home) -> None:
    stale_socket(home)
    if os.geteuid() != 0:
        pytest.skip("only root can give a socket to another user")
    os.chown(home.socket, 12345, 12345)


@pytest.mark.parametrize(
    "spoilt",
    [no_room, file_for_folder, link_for_lock, folder_for_socket, another_users_folder, another_users_socket],
)
def test_without_a_place_for_a_daemon_each_serves_its_agent(
    home: Home, spoilt: Callable[[Home], None]
) -> None:
    spoilt(home)
    with home.serving() as client:
        assert said(client)
        assert "up__say" in client.search("say")
        assert home.pid is None
    assert not (home.folder / "elsewhere").exists()
    if spoilt is no_room:
        os.system(f"umount {os.path.dirname(home.socket)}")
    shutil.rmtree(os.path.dirname(home.socket), ignore_errors=True)


def test_a_removed_folder_gives_newcomers_a_daemon_of_their_own(home: Home) -> None:
    with home.serving() as one:
        server, pid = said(one)["pid"], home.pid
        assert pid is not None
        for path in Path(os.path.dirname(home.socket)).iterdir():
            path.unlink()
        os.rmdir(os.path.dirname(home.socket))
        with home.serving() as other:
            assert said(other)["pid"] != server
            assert home.pid not in (pid, None)
            assert said(one)["pid"] == server
            one.leave()
            until(lambda: not alive(pid))
            assert said(other)["pid"] != server


def test_a_path_too_long_for_a_socket_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path.joinpath(*["long-enough"] * 12)
    deep.mkdir(parents=True)
    with daemon_home(deep, monkeypatch, daemon={"idle_minutes": 0}) as home:
        assert home.socket.startswith(f"/tmp/mcpzip-{os.geteuid()}/")
        with home.serving() as one, home.serving() as other:
            assert said(one)["pid"] == said(other)["pid"]
            assert home.pid is not None
        home.wait_for_end()
        assert not os.path.exists(home.socket)


def test_two_at_once_make_one_daemon_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with daemon_home(tmp_path, monkeypatch, daemon={"idle_minutes": 0}) as home:
        for _ in range(5):
            with home.serving(begin=False) as one, home.serving(begin=False) as other:
                numbers = [client.send("initialize", INITIALIZE) for client in (one, other)]
                for client, number in zip((one, other), numbers, strict=True):
                    assert client.answer(number).result
                assert said(one)["pid"] == said(other)["pid"]
            home.wait_for_end()
