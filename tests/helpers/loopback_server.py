"""Servers on loopback that do with a connection what a test has them do, and the HTTP connections to one."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx

from mcpzip.http.connections import Connections

MUCH = 48 << 20
"""Bytes: more than all buffers of the system between two sockets hold."""
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]

_PASSES_TO_A_HANDLER = 4
"""Iterations of the event loop after which a connection that was accepted has its handler."""


@asynccontextmanager
async def accepting(
    handler: Handler, port: int = 0, tls: ssl.SSLContext | None = None, limit: int = 1 << 16
) -> AsyncIterator[int]:
    """Does with each connection what ``handler`` does; the port. No connection is left open at the end, also
    none that was accepted a moment before: its handler may not have begun.
    """
    tasks: set[asyncio.Task[None]] = set()

    def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def done(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            if task.cancelled():
                writer.transport.abort()
            else:
                writer.close()

        task = asyncio.create_task(handler(reader, writer))
        tasks.add(task)
        task.add_done_callback(done)

    server = await asyncio.start_server(came, "127.0.0.1", port, ssl=tls, limit=limit)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for _ in range(_PASSES_TO_A_HANDLER):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
    async with accepting(made.serve, tls=tls) as made.port:
        yield made


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
