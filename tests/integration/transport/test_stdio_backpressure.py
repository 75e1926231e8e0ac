"""A server on stdio that floods us, or reads nothing of what it is sent."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from helpers.driver import comes_true, pool_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.model import limits
from mcpzip.model.errors import UpstreamUnavailableError
from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.exchange import Client
from mcpzip.system.reaper import Reaper
from mcpzip.transport.base import ChannelClosedError, Incoming, Origin
from mcpzip.transport.stdio import StdioChannel, open_stdio
from mcpzip.wire import Era

FLOOD = """
import sys
number = 0
while True:
    number += 1
    sys.stdout.write('{"jsonrpc":"2.0","id":"%s%d","method":"ping"}\\n' % ("x" * 500, number))
"""
DEAF = "import time; time.sleep(600)"
LITTLE = 1 << 18


class Answers:
    """Answers at once."""

    def notified(self, method: str, params: bytes | None, origin: object = None) -> None: ...

    async def asked(self, method: str, params: bytes | None, origin: object = None) -> bytes:
        return b"{}"

    def ended(self, reason: str) -> None: ...


class Waits(Answers):
    """Never answers. open: how many requests came."""

    open = 0

    async def asked(self, method: str, params: bytes | None, origin: object = None) -> bytes:
        self.open += 1
        await asyncio.Event().wait()
        raise AssertionError


@asynccontextmanager
async def opened(program: str, ear: Incoming) -> AsyncIterator[StdioChannel]:
    reaper, argv = Reaper(), [sys.executable, "-c", program]
    env = {"PATH": os.defpath}
    try:
        async with open_stdio(argv, {**os.environ, **env}, None, ear, reaper, grace=lambda: 0.1) as channel:
            yield channel
    finally:
        reaper.close()


async def test_a_server_that_floods_pings_and_reads_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What we answered it waited without end."""
    monkeypatch.setattr(limits, "WAITING", LITTLE)
    async with opened(FLOOD, Answers()) as channel:
        await comes_true(lambda: channel._stdin.waiting >= LITTLE)
        for _ in range(200):
            await asyncio.sleep(0)
            assert channel._stdin.waiting < LITTLE + 1000 * (limits.TURN + limits.ASKED)
            assert len(channel._rpc.peer.unanswered) <= limits.TURN + limits.ASKED


async def test_requests_of_a_server_under_way_have_an_end() -> None:
    ear = Waits()
    async with opened(FLOOD, ear) as channel:
        await comes_true(lambda: ear.open >= limits.ASKED)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(channel._rpc._answering) == ear.open == limits.ASKED


async def test_a_server_that_does_not_read_is_sent_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING", LITTLE)
    params = b'{"x":"%b"}' % (b"x" * (2 * LITTLE))
    async with opened(DEAF, Answers()) as channel:
        first = asyncio.create_task(channel.request("tools/call", params))
        await comes_true(lambda: channel._stdin.waiting >= LITTLE)
        with pytest.raises(ChannelClosedError, match="doesn't read") as refused:
            await channel.request("tools/call", params)
        assert not refused.value.sent
        assert not refused.value.fatal
        waiting = channel._stdin.waiting
        async with asyncio.timeout(30):
            await channel.notify("notifications/x", params)
        assert channel._stdin.waiting == waiting
        first.cancel()
        await asyncio.wait({first})


async def test_connections_of_ones_own_have_an_end(
    fake_mcp: Callable[..., FakeServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session that could be asked had a process of its own, however many there were."""
    monkeypatch.setattr(limits, "OWN_CONNECTIONS", 1)  # and one a server
    shop = fake_mcp(name="shop", tools=[{"name": "pay", "result": {"text": "paid"}}])
    async with pool_of(tmp_path, shop) as pool:
        slot = pool._states["shop"]

        async def call(origin: Origin) -> bytes:
            return await pool.request("shop", "tools/call", b'{"name":"pay"}', timeout=30, origin=origin)

        clients = [ClientBinding(Client(Era.LEGACY, b'{"roots":{}}')) for _ in range(4)]
        for bound_client in clients:
            assert b"paid" in await call(Origin(Era.LEGACY, bound_client))
            assert len(slot.entries) <= 2
        assert {key for _, key in slot.entries} == {bound_client.key for bound_client in clients[-2:]}
        for line in slot.entries.values():
            assert line.connection is not None
            line.connection.open_requests += 1  # both are in use
        with pytest.raises(UpstreamUnavailableError, match="too many clients"):
            await call(Origin(Era.LEGACY, clients[0]))
        for line in slot.entries.values():
            assert line.connection is not None
            line.connection.open_requests -= 1
        assert b"paid" in await call(Origin(Era.LEGACY, clients[0]))
        assert pool.health("shop").state == "connected"
