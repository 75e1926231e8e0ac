"""When a `Timer` calls what it was set to call, and when it doesn't."""

import asyncio
import weakref

import pytest

from mcpzip.system.timer import Timer

SOON, LATE = 0.005, 60.0


class Calls:
    """What timers called, in order. any: set as soon as there is one."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.any = asyncio.Event()

    def __call__(self, name: str) -> None:
        self.names.append(name)
        self.any.set()


@pytest.fixture
def calls() -> Calls:
    return Calls()


async def passed(seconds: float) -> None:
    """Waits until the event loop's timers of up to ``seconds`` have fired."""
    fired = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, fired.set)
    await fired.wait()


async def test_it_calls_once(calls: Calls) -> None:
    timer = Timer()
    timer.set(SOON, lambda: calls("first"))
    assert timer.callback is not None
    await calls.any.wait()
    await passed(2 * SOON)
    assert (calls.names, timer.callback) == (["first"], None)


async def test_it_is_not_set_any_more_when_it_calls(calls: Calls) -> None:
    timer = Timer()
    timer.set(0, lambda: calls(repr(timer.callback)))
    await calls.any.wait()
    assert calls.names == ["None"]


async def test_cleared_it_calls_nothing(calls: Calls) -> None:
    timer = Timer()
    timer.set(SOON, lambda: calls("cleared"))
    timer.clear()
    await passed(2 * SOON)
    assert not calls.names


@pytest.mark.parametrize("first", [SOON, LATE])
async def test_the_last_time_set_counts_whether_it_is_sooner_or_later(first: float, calls: Calls) -> None:
    timer = Timer()
    timer.set(first, lambda: calls("first"))
    timer.set(2 * SOON, lambda: calls("second"))
    await calls.any.wait()
    assert calls.names == ["second"]


async def test_set_again_after_it_was_cleared_it_calls_at_the_new_time(calls: Calls) -> None:
    loop, timer = asyncio.get_running_loop(), Timer()
    timer.set(SOON, lambda: calls("first"))
    timer.clear()
    due = loop.time() + 2 * SOON
    timer.set(2 * SOON, lambda: calls("second"))
    await calls.any.wait()
    assert calls.names == ["second"]
    assert loop.time() >= due


async def test_what_it_calls_may_set_it_again(calls: Calls) -> None:
    timer = Timer()
    timer.set(0, lambda: timer.set(SOON, lambda: calls("second")))
    await calls.any.wait()
    assert calls.names == ["second"]


async def test_closed_it_leaves_no_timer_in_the_event_loop(calls: Calls) -> None:
    timer = Timer()
    timer.set(LATE, lambda: calls("closed"))
    timer.close()
    alive = weakref.ref(timer)
    del timer
    assert alive() is None
