"""A client of a fake over stdio: lines in, lines out, and nothing between that a library might hide."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

from mcpzip_fakes.launch import FakeServer

Start = Callable[..., FakeServer]
DEADLINE = 20.0


class Conversation:
    """A client without manners: lines in, lines out."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def say(self, line: bytes | str) -> Self:
        assert self.process.stdin
        self.process.stdin.write(line.encode() + b"\n" if isinstance(line, str) else line)
        return self

    def ask(self, id: object, method: str, **params: object) -> Self:
        return self.say(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))

    def call(self, id: object, tool: str, **arguments: object) -> Self:
        return self.ask(id, "tools/call", name=tool, arguments=arguments)

    def modern(self, id: object, method: str, version: object = "2026-07-28", **params: object) -> Self:
        key = "io.modelcontextprotocol/"
        meta = {key + "protocolVersion": version, key + "clientCapabilities": {}}
        return self.ask(id, method, **params, _meta=meta)

    async def line(self) -> bytes:
        assert self.process.stdout
        async with asyncio.timeout(DEADLINE):
            return await self.process.stdout.readline()

    async def hear(self) -> Any:
        return json.loads(await self.line())

    async def initialize(self, version: str = "2025-06-18") -> Any:
        self.ask(
            0,
            "initialize",
            protocolVersion=version,
            capabilities={},
            clientInfo={"name": "t", "version": "1"},
        )
        greeting = await self.hear()
        self.say('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return greeting["result"]

    async def rest(self) -> bytes:
        """Everything that still comes once our side is closed."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        async with asyncio.timeout(DEADLINE):
            return await self.process.stdout.read()

    async def ended(self) -> int:
        async with asyncio.timeout(DEADLINE):
            return await self.process.wait()


@asynccontextmanager
async def talk(server: FakeServer) -> AsyncIterator[Conversation]:
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, **server.env}
    process = await asyncio.create_subprocess_exec(
        *server.command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, limit=1 << 24
    )
    try:
        yield Conversation(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def one_tool(start: Start, *faults: object, **keys: object) -> FakeServer:
    return start(tools=["echo"], faults=list(faults), **keys)
