"""A modern upstream is asked to tell of changes, and asked again when it stops."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.driver import Json, pool_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.transport import subscription as listenings
from mcpzip.transport.base import ChannelClosedError, Dialect
from mcpzip.transport.handshake import ServerInfo
from mcpzip.transport.subscription import SubscriptionStream
from mcpzip.wire import (
    REQUEST_CANCELLED,
    Era,
    JsonRpcError,
    RpcError,
)

Fake = Callable[..., FakeServer]
PAY: Json = {"name": "pay"}


class Subscription:
    """A channel whose subscriptions end as the test says; the last answer is that there are none."""

    def __init__(self, ends: list[Exception | None]) -> None:
        self._ends: Iterator[Exception | None] = iter([*ends, JsonRpcError(RpcError(-32601, "no"))])
        self.asked: list[bytes | None] = []

    async def request(self, method: str, params: bytes | None) -> bytes:
        assert method == "subscriptions/listen"
        self.asked.append(params)
        end = next(self._ends)
        if end is not None:
            raise end
        return b"{}"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses it makes, which take no time."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(listenings.asyncio, "sleep", sleep)
    return made


async def listen(subscription: Subscription, capabilities: bytes, era: Era) -> int:
    """Listens until it stops by itself, or has nothing to wait for; how often lists may have changed."""
    version = "2026-07-28" if era is Era.MODERN else "2025-11-25"
    greeting = ServerInfo(Dialect(era, version), capabilities, "")
    changes: list[None] = []
    listening = SubscriptionStream(subscription, greeting, lambda: changes.append(None))  # type: ignore[arg-type]
    task = asyncio.ensure_future(listening.run())
    for _ in range(500):  # turns of the loop, which is all that it waits for
        await asyncio.wait({task}, timeout=0)
    task.cancel()
    await asyncio.wait({task})
    return len(changes)


TELLS = b'{"tools":{"listChanged":true}}'


@pytest.mark.parametrize(
    ("capabilities", "era", "asked"),
    [
        (TELLS, Era.MODERN, 1),
        (TELLS, Era.LEGACY, 0),
        (b'{"tools":{}}', Era.MODERN, 0),
        (b'{"tools":{"listChanged":false}}', Era.MODERN, 0),
        (b"{}", Era.MODERN, 0),
        (b'{"prompts":{"listChanged":true}}', Era.MODERN, 1),
        (b'{"resources":{"listChanged":true}}', Era.MODERN, 1),
        (b'{"tools":5}', Era.MODERN, 0),
        (b"[]", Era.MODERN, 0),
    ],
)
async def test_only_who_promises_to_tell_is_asked(
    pauses: list[float], capabilities: bytes, era: Era, asked: int
) -> None:
    subscription = Subscription([])
    await listen(subscription, capabilities, era)
    assert len(subscription.asked) == asked


async def test_a_subscription_that_keeps_ending_is_opened_ever_less_often(pauses: list[float]) -> None:
    """A server that keeps none for long was listed every five seconds, for ever."""
    ends: list[Exception | None] = [None] * 9
    assert await listen(Subscription(ends), TELLS, Era.MODERN) == 9  # what changed meanwhile
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]


async def test_a_subscription_that_lasted_is_opened_anew_soon(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = count(0, 3600)
    monkeypatch.setattr(listenings, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    await listen(Subscription([None] * 4), TELLS, Era.MODERN)
    assert pauses == [5, 5, 5, 5]


@pytest.mark.parametrize(
    ("end", "again"),
    [
        (JsonRpcError(RpcError(REQUEST_CANCELLED, "we are shutting down")), True),
        (JsonRpcError(RpcError(-32603, "oh")), False),
        (ChannelClosedError("it exited", sent=True), False),
        (ChannelClosedError("it answered HTTP 429", sent=False, fatal=False), True),
    ],
)
async def test_how_it_ended_says_whether_to_ask_again(
    pauses: list[float], end: Exception, again: bool
) -> None:
    """One that the server ended in the proper way, by cancelling it, was not opened again."""
    subscription = Subscription([end])
    await listen(subscription, TELLS, Era.MODERN)
    assert len(subscription.asked) == 1 + again


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_it_is_ended_with_the_connection(fake_mcp: Fake, tmp_path: Path, transport: str) -> None:
    shop = fake_mcp(name="shop", transport=transport, tools=[PAY], changed_tools=[PAY])
    async with pool_of(tmp_path, shop) as pool:
        await pool.list_tools("shop")
        await shop.record.until(lambda record: record.received("subscriptions/listen"))
    (asked,) = shop.record.received("subscriptions/listen")
    assert asked.params["notifications"] == {"toolsListChanged": True}
    if transport == "stdio":
        told = await shop.record.until(lambda record: record.received("notifications/cancelled"))
        assert told[0].params["requestId"] == asked.message["id"]
