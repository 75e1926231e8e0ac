"""A request through the SDK whose caller leaves in the very moment in which it fails."""

import asyncio
import gc
from typing import Any, cast
from unittest.mock import Mock

import pytest
from mcp.shared.exceptions import MCPError

from mcpzip.transport.sdk import SdkChannel
from mcpzip.transport.witness import Witness


class Failing:
    """A dispatcher whose request fails when it is cancelled, or just before."""

    def __init__(self, first: bool) -> None:
        self.first = first
        self.asked = asyncio.Event()

    async def send_raw_request(self, *_: object) -> dict[str, Any]:
        self.asked.set()
        try:
            await (asyncio.sleep(0) if self.first else asyncio.Event().wait())
        except asyncio.CancelledError:
            pass
        raise MCPError(-32000, "Connection closed")


async def leave(first: bool) -> None:
    witness = Witness("http://127.0.0.1:1/", soften=True)
    failing = Failing(first)
    channel = SdkChannel(cast(Any, failing), Mock(waiting=0), witness, Mock(), Mock())
    asking = asyncio.create_task(channel.request("tools/call", b"{}"))
    await failing.asked.wait()
    if first:
        await asyncio.sleep(0)  # now it fails, and nobody has heard of it yet
    asking.cancel()
    await asyncio.wait({asking})
    assert asking.cancelled()
    await witness.aclose()


@pytest.mark.parametrize("first", [True, False])
async def test_a_failure_that_nobody_waits_for_is_no_news(first: bool) -> None:
    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
    await leave(first)
    gc.collect()
    assert heard == []
