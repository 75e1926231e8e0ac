"""What a server that comes and goes leaves behind in us: nothing."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.driver import Json, comes_true, pool_of
from helpers.loopback_server import accepting

from mcpzip.model.errors import UpstreamError
from mcpzip.transport.base import Origin
from mcpzip.transport.pool import Pool
from mcpzip.wire import Era

RESTARTS = 4
MODERN, LEGACY = Origin(era=Era.MODERN), Origin(era=Era.LEGACY)


class Shop:
    """A legacy server over HTTP that dies and comes back at its port.

    Of two clients that shake hands at once the first is answered once the second has asked, and the second
    when the first has listed the tools.
    """

    port = 0

    async def __aenter__(self) -> "Shop":
        self.greeted, self.listed = 0, asyncio.Event()
        self._both = asyncio.Event()
        self._listening = accepting(self._serve, self.port)
        self.port = await self._listening.__aenter__()
        return self

    async def __aexit__(self, *args: Any) -> None:
        await self._listening.__aexit__(*args)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().lower().split("\r\n")
                length = next((line[15:] for line in lines if line.startswith("content-length:")), "0")
                body = await reader.readexactly(int(length))
                status, answer = await self._answer(lines[0].split()[0], json.loads(body) if body else {})
                said = json.dumps(answer).encode() if answer else b""
                kept = "content-type: application/json\r\nmcp-session-id: s"
                head = f"HTTP/1.1 {status} -\r\n{kept}\r\ncontent-length: {len(said)}\r\n\r\n".encode()
                writer.write(head + said)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went, or we did

    async def _answer(self, verb: str, message: Json) -> tuple[int, Json | None]:
        if verb != "post":
            return (405 if verb == "get" else 200), None
        if "id" not in message:
            return 202, None
        result: Json
        match message["method"]:
            case "initialize":
                self.greeted += 1
                if self.greeted == 1:
                    await self._both.wait()
                else:
                    self._both.set()
                    await self.listed.wait()
                info = {"name": "shop", "version": "1"}
                version = message["params"]["protocolVersion"]
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                self.listed.set()
                result = {"tools": []}
            case _:
                error = {"code": -32601, "message": "no such method"}
                return 200, {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return 200, {"jsonrpc": "2.0", "id": message["id"], "result": result}


def owners() -> int:
    """How many upstream connections have somebody who keeps them."""
    return sum(task.get_name() == "upstream-shop" for task in asyncio.all_tasks())


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


async def both_eras(pool: Pool, shop: Shop) -> None:
    """A modern and a legacy client come at once; the modern one, who is told the legacy era, is faster."""
    modern = asyncio.create_task(pool.list_tools("shop", origin=MODERN))
    await comes_true(lambda: shop.greeted == 1)
    await asyncio.gather(modern, pool.list_tools("shop", origin=LEGACY))


async def test_of_two_connections_made_at_once_one_is_kept(tmp_path: Path) -> None:
    """The slower took the place of the faster, which nobody used or closed any more."""
    async with Shop() as shop:
        async with pool_of(tmp_path, others=config(shop)) as pool:
            await both_eras(pool, shop)
            assert shop.greeted == 2
            await comes_true(lambda: owners() == 1)
        assert owners() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="open files are counted in /dev/fd")
async def test_a_server_that_dies_again_and_again_leaves_no_connection_and_no_file(tmp_path: Path) -> None:
    shop = Shop()
    async with shop:
        pass
    seen = []
    async with pool_of(tmp_path, others=config(shop)) as pool:
        for _ in range(RESTARTS):
            async with shop:
                await both_eras(pool, shop)
            for origin in (MODERN, LEGACY):
                with pytest.raises(UpstreamError):
                    await pool.list_tools("shop", origin=origin)
            await comes_true(lambda: owners() == 0)
            seen.append(open_files())
    assert max(seen[1:]) <= seen[0], seen


def config(shop: Shop) -> dict[str, Any]:
    return {"shop": {"type": "http", "url": f"http://127.0.0.1:{shop.port}/mcp"}}
