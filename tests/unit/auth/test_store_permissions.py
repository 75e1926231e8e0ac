"""The store of sign-ins: what is in it is its owner's only, and whoever changes it holds its lock."""

import asyncio
import errno
import os
import stat
import threading
from pathlib import Path

import msgspec
import pytest
from helpers.grant_stores import GRANT, OTHER, URL, Place

from mcpzip.auth import codec
from mcpzip.auth import folder as folder_module
from mcpzip.auth.store import Store
from mcpzip.system import locks

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes, and links need a right there")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "auth")


@pytest.fixture(params=["files", "keyring"])
def store(place: Place, request: pytest.FixtureRequest) -> Store:
    found: Store = getattr(place, request.param)
    return found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- rights -------------------------------------------------------------------------------------------------


@posix
def test_the_folder_and_its_files_are_their_owners_whatever_the_umask(place: Place, store: Store) -> None:
    before = os.umask(0)
    try:
        store.save(GRANT)
        asyncio.run(hold(store))
    finally:
        os.umask(before)
    assert mode(place.path) == 0o700
    assert {mode(path) for path in place.path.iterdir()} == {0o600}


async def hold(store: Store) -> None:
    async with store.locked(URL):
        pass


@posix
def test_what_others_may_read_is_closed_and_told_once(place: Place, store: Store) -> None:
    store.save(GRANT)
    os.chmod(place.file(), 0o644)
    os.chmod(place.path, 0o755)
    assert store.load(URL) == GRANT
    assert (mode(place.path), mode(place.file())) == (0o700, 0o600)
    assert len(place.warnings) == 2
    assert all("was open to other users; now it is only yours" in warning for warning in place.warnings)
    os.chmod(place.path, 0o777)
    store.save(GRANT)
    assert mode(place.path) == 0o700
    assert len(place.warnings) == 2


@posix
def test_a_file_system_without_rights_is_told_of_and_used(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(GRANT)
    os.chmod(place.file(), 0o666)
    with monkeypatch.context() as patched:
        patched.setattr(os, "chmod", lambda *_: None)
        assert store.load(URL) == GRANT

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(os, "chmod", refuse)
        assert store.load(URL) == GRANT
    assert len(place.warnings) == 1
    assert "no rights to close it with" in place.warnings[0]


@posix
def test_what_belongs_to_another_user_is_refused(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(GRANT)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert store.load(URL) is None
    assert "it belongs to another user" in place.warnings[0]
    with pytest.raises(PermissionError):
        store.save(GRANT)
    with pytest.raises(PermissionError):
        asyncio.run(hold(store))


@posix
def test_a_link_to_a_file_of_ours_is_read_and_made_a_file_of_its_own(place: Place, store: Store) -> None:
    store.save(GRANT)
    elsewhere = place.path.parent / "elsewhere.json"
    place.file().rename(elsewhere)
    os.chmod(elsewhere, 0o644)
    place.file().symlink_to(elsewhere)
    data = elsewhere.read_bytes()
    assert store.load(URL) == GRANT
    assert not place.file().is_symlink()
    assert (place.file().read_bytes(), mode(place.file())) == (data, 0o600)
    assert (elsewhere.read_bytes(), mode(elsewhere)) == (data, 0o644)
    assert store.load(URL) == GRANT
    assert len(place.warnings) == 1
    assert str(elsewhere) in place.warnings[0]


@posix
async def test_what_is_saved_never_goes_where_a_link_leads(place: Place) -> None:
    target = place.path.parent / "theirs"
    target.write_bytes(codec.encode(GRANT))
    place.path.mkdir(mode=0o700)
    place.file().symlink_to(target)
    async with place.files.locked(URL):
        assert place.files.load(URL) == GRANT
        assert place.file().is_symlink()  # who holds the lock may be about to save: the link is left to him
        place.files.save(msgspec.structs.replace(GRANT, access_token="new"))
    assert not place.file().is_symlink()
    assert target.read_bytes() == codec.encode(GRANT)
    place.file().unlink()
    place.file().symlink_to(target)
    assert place.files.remove(URL)
    assert target.exists()


@posix
def test_a_link_to_nothing_or_to_something_else(place: Place, store: Store) -> None:
    place.path.mkdir(mode=0o700)
    place.file().symlink_to(place.path.parent / "none")
    assert store.load(URL) is None
    note = place.path.parent / "note"
    note.write_text("not a sign-in")
    os.chmod(note, 0o644)
    place.file(OTHER).symlink_to(note)
    assert store.load(OTHER) is None
    assert (note.read_text(), mode(note)) == ("not a sign-in", 0o644)


@posix
def test_the_folder_itself_may_be_a_link(place: Place, store: Store) -> None:
    elsewhere = place.path.parent / "vault"
    elsewhere.mkdir(mode=0o755)
    place.path.symlink_to(elsewhere)
    store.save(GRANT)
    assert store.load(URL) == GRANT
    assert mode(elsewhere) == 0o700
    assert place.path.is_symlink()


def test_a_link_that_cannot_be_replaced_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.name == "nt":
        pytest.skip("links need a right there")
    place.files.save(GRANT)
    place.file().rename(place.path / "other")
    place.file().symlink_to(place.path / "other")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(folder_module, "write_atomic", refuse)
    assert place.files.load(URL) == GRANT
    assert place.file().is_symlink()


# --- locks --------------------------------------------------------------------------------------------------


async def test_one_task_at_a_time_holds_a_lock(store: Store) -> None:
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        async with store.locked(URL):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(12)))
    assert (inside, most) == (0, 1)


async def test_who_waits_in_vain_is_told_and_holds_nothing(store: Store) -> None:
    async with store.locked(URL):
        with pytest.raises(TimeoutError, match=r"locked by another process or task for 0\.01 s"):
            async with store.locked(URL, 0.01):
                pass
        async with store.locked(OTHER, 0):
            pass
    async with store.locked(URL, 0):
        pass


async def test_who_is_cancelled_holds_nothing_waiting_or_inside(store: Store) -> None:
    entered = asyncio.Event()

    async def work() -> None:
        async with store.locked(URL):
            entered.set()
            await asyncio.Event().wait()

    async with store.locked(URL):
        waiting = asyncio.create_task(work())
        await asyncio.sleep(0)  # the event loop goes on meanwhile
        waiting.cancel()
        await asyncio.wait([waiting])
        assert not entered.is_set()
    inside = asyncio.create_task(work())
    await entered.wait()
    inside.cancel()
    await asyncio.wait([inside])
    async with store.locked(URL, 0):
        pass


async def test_a_lock_holds_between_event_loops_in_threads(store: Store) -> None:
    held, done = threading.Event(), threading.Event()

    async def work() -> None:
        async with store.locked(URL):
            held.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        await asyncio.to_thread(held.wait)
        with pytest.raises(TimeoutError):
            async with store.locked(URL, 0):
                pass
    finally:
        done.set()
    async with store.locked(URL):
        pass
    thread.join()


def test_a_thread_that_may_block_waits_as_long(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with locks.locked_blocking(path, 1), locks.locked_if_free(path) as free:
        assert not free
        with pytest.raises(TimeoutError, match="try again"), locks.locked_blocking(path, 0.01):
            pass
    with locks.locked_if_free(path) as free:
        assert free


# --- git ----------------------------------------------------------------------------------------------------


def test_no_sign_in_gets_into_a_commit(place: Place, store: Store) -> None:
    """`auth/` beside a project's config was one `git add .` away from being published."""
    store.save(GRANT)
    ignored = place.path / ".gitignore"
    assert "*" in ignored.read_text().splitlines()
    ignored.write_text("")
    store.save(GRANT)
    assert ignored.read_text() == ""
    assert store.load(URL) == GRANT
    assert [grant.url for grant in store.all()] == [URL]
