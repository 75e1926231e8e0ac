"""File locks between tasks, threads and descriptors of one process."""

import asyncio
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from mcpzip.system.file_lock import lock_file
from mcpzip.system.locks import hold, locked, locked_blocking, locked_if_free


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "it.lock")


async def test_tasks_have_it_one_after_another(path: str) -> None:
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        async with locked(path, 10):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(5)))
    assert most == 1


async def test_whoever_waits_too_long_is_told_which_file_it_was(path: str) -> None:
    async with locked(path, 0):
        with pytest.raises(TimeoutError, match=r"it\.lock was locked by another process or task for 0 s"):
            async with locked(path, 0):
                pytest.fail("two have it")
        with pytest.raises(TimeoutError, match=r"for 0\.01 s"), locked_blocking(path, 0.01):
            pytest.fail("two have it")
    async with locked(path, 0):
        pass


async def test_a_cancelled_wait_leaves_no_lock(path: str) -> None:
    async with locked(path, 0):
        waiting = asyncio.create_task(locked(path, 60).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
    async with locked(path, 0):
        pass


def test_a_thread_waits_until_it_is_released(path: str) -> None:
    release = hold(path)
    done = threading.Event()

    def work() -> None:
        with locked_blocking(path, 30):
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert not done.is_set()
    release()
    thread.join()
    assert done.is_set()


def test_who_wants_it_only_if_it_is_free_does_not_wait(path: str) -> None:
    release = hold(path)
    with locked_if_free(path) as free:
        assert not free
    with pytest.raises(TimeoutError):
        hold(path)
    release()
    with locked_if_free(path) as free:
        assert free
        assert lock_file(path) is None
    hold(path)()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes, and links need a right there")
def test_the_file_is_its_owners_and_no_link(path: str, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        hold(path)()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    os.unlink(path)
    os.symlink(tmp_path / "victim", path)
    with pytest.raises(OSError, match="symbolic"):
        hold(path)
    assert not (tmp_path / "victim").exists()


def test_a_file_that_was_replaced_is_locked_anew(path: str) -> None:
    first = hold(path)
    os.unlink(path)
    second = hold(path)  # of the file that is there now
    with locked_if_free(path) as free:
        assert not free
    first()
    second()


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hold(str(tmp_path / "none" / "it.lock"))
