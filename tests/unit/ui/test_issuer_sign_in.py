"""Who may come to the issuer, and in which order."""

import asyncio

import pytest

from mcpzip.ui.team.issuer_sign_in import SignInError, Turns


async def test_who_came_first_has_the_first_turn() -> None:
    turns, done, go_on = Turns(1, 8), list[int](), asyncio.Event()

    async def visit(number: int) -> None:
        async with turns.turn():
            await go_on.wait()
            done.append(number)

    visits = [asyncio.create_task(visit(number)) for number in range(5)]
    await asyncio.sleep(0)
    visits[2].cancel()
    go_on.set()
    await asyncio.gather(*visits, return_exceptions=True)
    assert done == [0, 1, 3, 4]


async def test_beyond_those_who_wait_nobody_does() -> None:
    turns, go_on = Turns(1, 1), asyncio.Event()

    async def visit() -> None:
        async with turns.turn():
            await go_on.wait()

    visits = [asyncio.create_task(visit()) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(SignInError, match="Too many"):
        await visit()
    go_on.set()
    await asyncio.gather(*visits)
    async with turns.turn():  # there is room again
        pass
