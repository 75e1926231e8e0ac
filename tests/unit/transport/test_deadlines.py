"""What a request's clock does when it runs out, and when it doesn't."""

import asyncio

import pytest

from mcpzip.transport.deadlines import Deadlines

SOON, LATE = 0.005, 60.0


async def waits(clocks: Deadlines, seconds: float, until: asyncio.Event) -> str:
    with clocks.running(seconds):
        await until.wait()
    return "in time"


async def test_a_request_that_is_answered_in_time_hears_nothing_of_its_clock() -> None:
    answered = asyncio.Event()
    answered.set()
    assert await waits(Deadlines(), SOON, answered) == "in time"


async def test_time_that_is_up_is_a_timeout_and_no_cancellation() -> None:
    task = asyncio.create_task(waits(Deadlines(), SOON, asyncio.Event()))
    with pytest.raises(TimeoutError):
        await task
    assert not task.cancelling()


@pytest.mark.parametrize("first", [SOON, LATE])
async def test_each_request_has_its_own_time(first: float) -> None:
    """There is one timer: it must ring for the earliest, whether that began first or last."""
    clocks, answered = Deadlines(), asyncio.Event()
    second = LATE if first == SOON else SOON
    tasks = [asyncio.create_task(waits(clocks, seconds, answered)) for seconds in (first, second)]
    late = tasks[(first, second).index(LATE)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert late not in done
    answered.set()
    assert await late == "in time"
    with pytest.raises(TimeoutError):
        await done.pop()


async def test_the_timer_rings_again_for_the_next_one() -> None:
    clocks, never = Deadlines(), asyncio.Event()
    tasks = [asyncio.create_task(waits(clocks, seconds, never)) for seconds in (SOON, 2 * SOON, 3 * SOON)]
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in told] == [TimeoutError] * 3


async def test_a_cancelled_request_is_cancelled() -> None:
    task = asyncio.create_task(waits(Deadlines(), LATE, asyncio.Event()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_stopped_clocks_do_not_run_out_and_go_on_afterwards() -> None:
    """A client may think for as long as it likes."""
    clocks, never = Deadlines(), asyncio.Event()
    task = asyncio.create_task(waits(clocks, SOON, never))
    await asyncio.sleep(0)
    with clocks.stopped():
        with clocks.stopped():
            done, _ = await asyncio.wait({task}, timeout=4 * SOON)
        assert not done
        done, _ = await asyncio.wait({task}, timeout=4 * SOON)
        assert not done
    with pytest.raises(TimeoutError):
        await task


async def test_a_request_may_end_while_its_clock_stands_still() -> None:
    clocks, answered = Deadlines(), asyncio.Event()
    task = asyncio.create_task(waits(clocks, SOON, answered))
    await asyncio.sleep(0)
    with clocks.stopped():
        answered.set()
        assert await task == "in time"
