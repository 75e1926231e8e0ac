"""What clients have us compute: few threads, turns, and an end to what waits."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable

import pytest
from helpers.driver import comes_true

from mcpzip.model.errors import OverloadedError
from mcpzip.proxy.workers import REQUESTER, Requester, Workers

Task = asyncio.Task[str]


class Gate:
    """Work that goes on when it is let, and what was done."""

    def __init__(self) -> None:
        self.open, self.begun = threading.Event(), threading.Semaphore(0)
        self.done: list[str] = []
        self.at_once = self.most = 0

    def work(self, name: str) -> Callable[[], str]:
        def work() -> str:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            self.begun.release()
            assert self.open.wait(20)
            self.done.append(name)
            self.at_once -= 1
            return name

        return work


async def busy(workers: Workers, gate: Gate, threads: int) -> list[Task]:
    """As much as ``workers`` have threads, under way."""
    first = [asyncio.create_task(workers.compute(gate.work("first"), "test")) for _ in range(threads)]
    for _ in first:
        assert await asyncio.to_thread(gate.begun.acquire, timeout=20)
    return first


async def asked(workers: Workers, work: Callable[[], str], requester: Requester) -> str:
    REQUESTER.set(requester)
    return await workers.compute(work, "test")


async def waiting(workers: Workers, gate: Gate, *askers: str) -> list[Task]:
    """What waits, in order, for these."""
    tasks = [
        asyncio.create_task(asked(workers, gate.work(f"{each}{number}"), Requester(each)))
        for number, each in enumerate(askers)
    ]
    await asyncio.sleep(0)
    return tasks


async def test_there_are_no_more_threads_than_may_be() -> None:
    gate, workers = Gate(), Workers(threads=2)
    tasks = await busy(workers, gate, 2) + await waiting(workers, gate, *"abcdefgh")
    gate.open.set()
    await asyncio.gather(*tasks)
    assert (gate.most, len(gate.done)) == (2, 10)


async def test_every_client_has_its_turn() -> None:
    gate, workers = Gate(), Workers(threads=1)
    tasks = await busy(workers, gate, 1) + await waiting(workers, gate, "a", "a", "a", "b", "c", "b")
    gate.open.set()
    await asyncio.gather(*tasks)
    assert gate.done == ["first", "a0", "b3", "c4", "a1", "b5", "a2"]


async def test_past_the_limit_the_client_that_has_most_waiting_is_told_so() -> None:
    gate, workers = Gate(), Workers(threads=1, capacity=3)
    tasks = await busy(workers, gate, 1) + await waiting(workers, gate, "a", "a", "a", "a", "b")
    lost = [tasks[4], tasks[3]]  # its newest, then the last before it
    assert all(
        isinstance(each, OverloadedError) for each in await asyncio.gather(*lost, return_exceptions=True)
    )
    gate.open.set()
    assert await asyncio.gather(*(each for each in tasks if each not in lost)) == ["first", "a0", "a1", "b4"]


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    gate, workers, left = Gate(), Workers(threads=1), False
    tasks = await busy(workers, gate, 1) + await waiting(workers, gate, "a", "b")
    gone = asyncio.create_task(asked(workers, gate.work("gone"), Requester("c", lambda: left)))
    await asyncio.sleep(0)
    left = True
    tasks[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    gate.open.set()
    with pytest.raises(OverloadedError):
        await gone
    assert await tasks[2] == "b1"
    assert gate.done == ["first", "b1"]


async def test_what_fails_fails_for_whoever_asked() -> None:
    workers = Workers(threads=1)
    with pytest.raises(ZeroDivisionError):
        await workers.compute(lambda: 1 // 0, "test")
    assert await workers.compute(lambda: 7, "test") == 7


async def test_what_failed_work_used_is_freed_at_once() -> None:
    """Each failed reading of a large result kept it until the garbage collector came."""

    class Large:
        pass

    def failing(used: Large) -> Callable[[], None]:
        def work() -> None:
            assert used
            raise ValueError

        return work

    large = Large()
    still_there = weakref.ref(large)
    gc.disable()
    try:
        work = failing(large)
        try:
            await Workers(1).compute(work, "test")
        except ValueError:
            pass
        del large, work
        await comes_true(lambda: still_there() is None)  # the thread has let go a moment later
    finally:
        gc.enable()
