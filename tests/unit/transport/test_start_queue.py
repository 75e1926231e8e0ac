"""Whose turn it is to start: few at a time, asked-for first, nobody for ever."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mcpzip.model import limits
from mcpzip.system.process_activity import ProcessActivity
from mcpzip.transport import start_queue as starting
from mcpzip.transport.start_queue import StartPriority, StartQueue, never


class Yard:
    """Servers that start when it is their turn and are there when the test says so."""

    def __init__(self, starts: StartQueue) -> None:
        self.starts = starts
        self.begun: list[str] = []
        self.most = self.now = 0
        self._ready: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def add(
        self, name: str, rank: StartPriority = StartPriority.NEW, resting: Callable[[], bool] = never
    ) -> None:
        self._ready[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._start(name, rank, resting))
        await self.settle()

    async def _start(self, name: str, rank: StartPriority, resting: Callable[[], bool]) -> None:
        async with self.starts.turn(name, rank, resting):
            self.begun.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await self._ready[name].wait()
            finally:
                self.now -= 1

    async def ready(self, name: str) -> None:
        self._ready[name].set()
        await self.tasks[name]
        await self.settle()

    @staticmethod
    async def settle() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def close(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def test_never_more_servers_start_at_once_than_may() -> None:
    yard = Yard(StartQueue(2))
    for n in range(9):
        await yard.add(f"up{n}")
    for n in range(9):
        assert yard.begun == [f"up{m}" for m in range(min(n + 2, 9))]
        await yard.ready(f"up{n}")
    assert yard.most == 2
    assert not yard.starts.crowded


async def test_who_is_asked_for_goes_first_then_who_was_never_listed() -> None:
    yard = Yard(StartQueue(1))
    await yard.add("first")
    await yard.add("known", StartPriority.KNOWN)
    await yard.add("new", StartPriority.NEW)
    await yard.add("asked", StartPriority.ASKED)  # there is a place more for those
    assert yard.begun == ["first", "asked"]
    await yard.ready("first")
    assert yard.begun == ["first", "asked"]  # two places were taken, of which one only is everybody's
    await yard.ready("asked")
    await yard.ready("new")
    await yard.ready("known")
    assert yard.begun == ["first", "asked", "new", "known"]


async def test_a_server_that_is_named_while_it_waits_jumps_the_queue() -> None:
    yard = Yard(StartQueue(1))
    for name in ("first", "second", "third", "last"):
        await yard.add(name)
    assert yard.starts.waits("last")
    yard.starts.prioritize("last")
    yard.starts.prioritize("nobody")
    await yard.settle()
    assert yard.begun == ["first", "last"]
    assert not yard.starts.waits("last")
    await yard.close()


async def test_the_place_of_a_server_that_only_waits_is_given_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs held up all others."""
    monkeypatch.setattr(starting, "POLL_INTERVAL", 0.0)
    yard = Yard(StartQueue(1))
    looks = iter([False, False, True])
    await yard.add("hangs", resting=lambda: next(looks))
    await yard.add("second")
    await asyncio.wait_for(yard.ready("second"), 10)
    await yard.ready("hangs")


async def test_a_start_holds_its_place_for_some_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "POLL_INTERVAL", 0.0)
    monkeypatch.setattr(limits, "START_HELD", 0.0)
    yard = Yard(StartQueue(1))
    for n in range(4):
        await yard.add(f"works{n}")
    await asyncio.wait_for(yard.ready("works3"), 10)
    await yard.close()


async def test_who_gives_up_waiting_is_no_more_in_the_way() -> None:
    yard = Yard(StartQueue(1))
    for name in ("first", "second", "third"):
        await yard.add(name)
    yard.tasks["second"].cancel()
    await yard.settle()
    await yard.ready("first")
    assert yard.begun == ["first", "third"]
    await yard.close()
    assert not yard.starts.crowded
    async with AsyncExitStack() as stack:  # all places are free again
        await stack.enter_async_context(yard.starts.turn("again", StartPriority.NEW))


# --- whether a process works --------------------------------------------------------------------------------


def told(proc: Path, pid: int, state: str, ticks: int, children: str = "") -> None:
    """What the system says of a process with one thread (proc(5))."""
    thread = proc / str(pid) / "task" / str(pid)
    thread.mkdir(parents=True, exist_ok=True)
    stat = f"{pid} (a (b) c) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0"
    (proc / str(pid) / "stat").write_text(stat)
    (thread / "stat").write_text(stat)
    (thread / "children").write_text(children)


def test_a_process_rests_when_nothing_of_its_family_works(tmp_path: Path) -> None:
    effort = ProcessActivity(tmp_path)
    assert not effort.resting()
    effort.follow(7)
    assert not effort.resting()  # there is no such process, or no such system
    told(tmp_path, 7, "S", 10, "8 ")
    told(tmp_path, 8, "S", 100)
    assert not effort.resting()  # the first look
    assert effort.resting()
    told(tmp_path, 8, "R", 100)
    assert not effort.resting()  # the server itself, below its launcher
    told(tmp_path, 8, "S", 150)
    assert not effort.resting()  # it has worked meanwhile
    assert effort.resting()
