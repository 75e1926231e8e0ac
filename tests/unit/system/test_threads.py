"""Work in a thread that nobody waits for any more loses nothing that must be undone."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from mcpzip.system.threads import in_thread


async def test_what_an_abandoned_thread_makes_is_given_back() -> None:
    """A process that was just being spawned would be nobody's."""
    go, made = threading.Event(), asyncio.Queue[str]()
    loop = asyncio.get_running_loop()

    def work() -> str:
        assert go.wait(20)
        return "a process"

    def unwanted(result: str) -> None:
        loop.call_soon_threadsafe(made.put_nowait, result)

    task = asyncio.create_task(in_thread(work, "test", unwanted))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    assert await asyncio.wait_for(made.get(), 20) == "a process"


async def test_so_is_what_is_made_in_the_very_moment_it_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    loop = asyncio.get_running_loop()
    soon = loop.call_soon_threadsafe

    def done_and_cancelled(callback: Callable[..., object], *args: object) -> None:
        soon(lambda: (callback(*args), task.cancel()))

    monkeypatch.setattr(loop, "call_soon_threadsafe", done_and_cancelled)
    task = asyncio.create_task(in_thread(lambda: "a process", "test", made.append))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert made == ["a process"]


async def test_the_event_loop_does_not_wait_for_a_thread_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with 84 servers starting, that alone took a tenth of a second."""
    starters: list[int] = []
    start = threading.Thread.start

    def started(thread: threading.Thread) -> None:
        starters.append(threading.get_ident())
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", started)
    assert await in_thread(lambda: 7, "test") == 7
    assert starters
    assert threading.get_ident() not in starters
