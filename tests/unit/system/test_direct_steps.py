"""Steps that are taken at once: what comes of a task is the same as if asyncio took them."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from helpers.event_loop import outside_of_tasks
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.system.direct_steps import DirectFuture, begin_at_once

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")
STEPS = ("set", "yield", "future", "cancel itself", "fail", "timeout")


async def work(steps: list[str], log: list[object]) -> str:
    """Takes ``steps``, and logs what it sees."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    try:
        for number, step in enumerate(steps):
            log.append((step, VARIABLE.get(), asyncio.current_task() is task))
            if step == "set":
                VARIABLE.set(f"set by {number}")
            elif step == "yield":
                await asyncio.sleep(0)
            elif step == "future":
                future = DirectFuture[str](loop=loop)
                loop.call_soon(lambda it=future: it.done() or it.resolve_at_once("resolved"))
                log.append(await future)
            elif step == "cancel itself":
                task.cancel()
            elif step == "fail":
                raise ValueError(number)
            else:
                try:
                    async with asyncio.timeout(0):
                        await asyncio.Event().wait()
                except TimeoutError:
                    log.append("timeout")
    except asyncio.CancelledError:
        log.append("cancelled")
        raise
    return VARIABLE.get()


Begin = Callable[[Coroutine[Any, Any, str], contextvars.Context], "asyncio.Task[str]"]


def at_once(one: Coroutine[Any, Any, str], context: contextvars.Context) -> "asyncio.Task[str]":
    return begin_at_once(one, context)[0]


def next_turn(one: Coroutine[Any, Any, str], context: contextvars.Context) -> "asyncio.Task[str]":
    return asyncio.get_running_loop().create_task(one, context=context)


async def outcome_of(begin: Begin, steps: list[str], cancelled: bool) -> tuple[list[object], object, str]:
    """What is logged, what comes of it, and what the variable is outside of it. cancelled: whether it is
    cancelled after its first step.
    """
    log, tasks = list[object](), list[asyncio.Task[str]]()

    def run() -> None:
        tasks.append(begin(work(steps, log), contextvars.copy_context()))
        if cancelled and begin is at_once:
            tasks[0].cancel()
        elif cancelled:
            asyncio.get_running_loop().call_soon(tasks[0].cancel)

    await outside_of_tasks(run)
    (outcome,) = await asyncio.gather(tasks[0], return_exceptions=True)
    return log, outcome if isinstance(outcome, str) else type(outcome), VARIABLE.get()


@given(st.lists(st.sampled_from(STEPS), max_size=6), st.booleans())
def test_a_task_that_begins_at_once_ends_as_any_other(steps: list[str], cancelled: bool) -> None:
    async def compare() -> None:
        direct = await outcome_of(at_once, steps, cancelled)
        assert direct == await outcome_of(next_turn, steps, cancelled)
        assert direct[2] == "outside"

    asyncio.run(compare())


async def test_its_first_step_is_taken_before_anything_else() -> None:
    log: list[object] = []

    def run() -> None:
        asyncio.get_running_loop().call_soon(log.append, "later")
        task, has_begun = begin_at_once(work(["set", "yield"], log), contextvars.copy_context())
        log.append(has_begun)
        assert not task.done()
        task.add_done_callback(log.append)

    await outside_of_tasks(run)
    assert log[:4] == [("set", "outside", True), ("yield", "set by 0", True), True, "later"]


async def test_within_a_task_it_waits_for_its_turn() -> None:
    log: list[object] = []
    task, has_begun = begin_at_once(work(["set"], log), contextvars.copy_context())
    assert (has_begun, log) == (False, [])
    assert await task == "set by 0"


async def test_an_error_in_the_first_step_is_the_tasks() -> None:
    tasks: list[asyncio.Task[str]] = []
    await outside_of_tasks(
        lambda: tasks.append(begin_at_once(work(["fail"], []), contextvars.copy_context())[0])
    )
    with pytest.raises(ValueError, match="0"):
        await tasks[0]


ENDS = ("at once", "result", "exception", "cancel")


@given(st.sampled_from(ENDS), st.integers(1, 3), st.integers(0, 2))
def test_a_future_ends_as_any_other(end: str, waiters: int, removed: int) -> None:
    """All that wait hear of it, in their order."""

    async def compare(future: "asyncio.Future[str]") -> list[object]:
        log: list[object] = []
        callbacks = [lambda it, number=number: log.append((number, it.done())) for number in range(waiters)]
        for callback in callbacks:
            future.add_done_callback(callback)
        log.append(future.remove_done_callback(callbacks[removed]) if removed < waiters else "none")

        def ended() -> None:
            if end == "exception":
                future.set_exception(ValueError("it"))
            elif end == "cancel":
                assert future.cancel()
            elif end == "at once" and isinstance(future, DirectFuture):
                future.resolve_at_once("it")
            else:
                future.set_result("it")

        await outside_of_tasks(ended)
        assert not future.cancel()
        late = asyncio.Event()
        future.add_done_callback(lambda _: late.set())
        await late.wait()
        if not future.cancelled():
            log.append(repr(future.exception()))
        return log

    async def both() -> None:
        loop = asyncio.get_running_loop()
        assert await compare(DirectFuture[str](loop=loop)) == await compare(loop.create_future())

    asyncio.run(both())


async def test_who_waits_goes_on_before_anything_else() -> None:
    future, log = DirectFuture[str](loop=asyncio.get_running_loop()), list[str]()

    async def wait() -> None:
        log.append(await future)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)

    def resolve() -> None:
        future.resolve_at_once("result")
        log.append("resolved")
        assert task.done()

    await outside_of_tasks(resolve)
    assert log == ["result", "resolved"]


async def test_a_task_that_resolves_it_is_not_interrupted() -> None:
    future, log = DirectFuture[str](loop=asyncio.get_running_loop()), list[str]()

    async def wait() -> None:
        log.append(await future)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    future.resolve_at_once("result")
    log.append("resolved")
    await task
    assert log == ["resolved", "result"]


async def test_what_came_before_anybody_waits_is_there() -> None:
    future = DirectFuture[str](loop=asyncio.get_running_loop())
    await outside_of_tasks(lambda: future.resolve_at_once("result"))
    assert await asyncio.wait_for(future, 1) == "result"
