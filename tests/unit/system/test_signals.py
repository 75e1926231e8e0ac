"""An interrupt cancels the running task between two steps of its loop."""

import asyncio
import signal
import sys

import pytest

from mcpzip.system.signals import cancel_on_interrupt

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="asyncio's own handler stays there")


def test_nothing_is_cancelled_in_the_middle_of_a_step() -> None:
    seen: list[bool] = []

    async def main() -> None:
        cancel_on_interrupt()
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()

        def step() -> None:
            signal.raise_signal(signal.SIGINT)
            seen.append(waiting.cancelled())
            if not waiting.cancelled():
                waiting.set_result(None)

        loop.call_soon(step)
        await waiting
        await asyncio.sleep(60)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert seen == [False]


def test_a_second_interrupt_ends_what_does_not_end() -> None:
    async def main() -> None:
        cancel_on_interrupt()
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
