"""A server on loopback that does with a connection what a test has it do, and the HTTP connections to it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from mcpzip.http.connections import Connections

MUCH = 48 << 20
"""Bytes: more than all buffers of the system between two sockets hold."""
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Site:
    """A server on loopback that does with each connection what ``handler`` does. met: how many there were."""

    def __init__(self, handler: Handler) -> None:
        self.met = 0
        self.port = 0
        self.tasks: set[asyncio.Task[Any]] = set()
        self._handler = handler

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.met += 1
        self.tasks.add(task)
        try:
            await self._handler(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            writer.transport.abort()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def quiet(self) -> None:
        """All connections have come to their end."""
        async with asyncio.timeout(20):
            while self.tasks:
                await asyncio.wait(set(self.tasks))


@asynccontextmanager
async def site(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    made = Site(handler)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)


@asynccontextmanager
async def connections_to(url: str) -> AsyncIterator[Connections]:
    made = Connections(url)
    try:
        yield made
    finally:
        await made.aclose()


def request(url: str, content: bytes | None = None, **timeouts: float) -> httpx.Request:
    extensions = {"timeout": timeouts} if timeouts else {}
    return httpx.Request("GET" if content is None else "POST", url, content=content, extensions=extensions)


async def got(connections: Connections, url: str) -> bytes:
    return await (await connections.handle_async_request(request(url))).aread()
