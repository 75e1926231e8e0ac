"""What a client sends while it is handed over runs once: in the daemon that it goes on with."""

import asyncio
import json
import os
import socket
import sys
from types import SimpleNamespace
from typing import cast

import pytest
from helpers.session_client import HELLO, Upstreams

from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.tool_result import text_result
from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.client import DaemonClient, Greeting
from mcpzip.server.daemon.proxies import SharedProxy
from mcpzip.server.endpoint import Endpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its event loop watches no descriptors")


def line(id: int, method: str, params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


async def test_a_batch_that_comes_in_the_turn_of_the_hand_over_does_not_run_here() -> None:
    ran: list[bytes] = []

    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        ran.append(exchange.id)
        return text_result("done")

    proxy = Upstreams(behave)
    shared = SimpleNamespace(proxy=proxy, endpoint=Endpoint(proxy), warnings=[], warned=set())
    said = {"pid": os.getpid(), "folder": "/", "environment": {}, "replay": 0}
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        client = DaemonClient(ours, Greeting.of(said), cast(SharedProxy, shared))
        client.accept(b"", b"")
        serving = asyncio.create_task(client.serve())
        loop, received = asyncio.get_running_loop(), bytearray()

        async def lines(count: int) -> list[bytes]:
            while received.count(b"\n") < count:
                received.extend(await loop.sock_recv(theirs, 1 << 16))
            return bytes(received).splitlines()

        call = {"name": "shop__buy", "arguments": {}}
        opening = line(1, "initialize", {**HELLO, "protocolVersion": "2025-03-26"})
        sent = opening + b"\n[" + line(2, "tools/call", call) + b"]\n"
        theirs.send(sent)
        await lines(3)  # that it is accepted, and two answers
        assert len(ran) == 1
        assert await client.becomes_quiet(5.0)
        # The event loop looks for input before it runs what is due in a turn: here the hand-over first, and
        # then what has come.
        theirs.send(b"[" + line(3, "tools/call", call) + b"]\n")
        loop.call_soon(client.hand_over, "2.0")
        await serving
        last = (await lines(4))[-1]
        assert last.startswith(protocol.HANDOVER)
        assert json.loads(last.removeprefix(protocol.HANDOVER)) == {"read": len(sent), "to": "2.0"}
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(ran) == 1
        await client.close()
