"""Several `mcpzip serve --http` with one config, and a balancer in front of them that knows nothing of MCP:
each request goes to the next replica that can be reached, on a connection of its own.
"""

import asyncio
import base64
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from helpers.driver import PATIENCE, comes_true, command, ended, environment, write_config
from helpers.raw_http_client import Json, Reply, SessionOf, Web, message
from mcpzip_fakes.launch import FakeServer

from mcpzip.identity.api_keys import new_key

KEY, OLD_KEY, OTHER_KEY = (base64.b64encode(bytes([number]) * 32).decode() for number in (7, 8, 9))


LONGEST = 60.0
"""Seconds that a test may have its replicas."""


class ReplicaProcess(Web):
    """One replica. Requests to it go around the balancer."""

    process: "subprocess.Popen[bytes]"
    errors: Path

    def said(self) -> str:
        """What it wrote to stderr."""
        return self.errors.read_text("utf-8")

    @property
    def private(self) -> str:
        """Its private address."""
        return next(line for line in self.said().splitlines() if line.startswith("replicas ")).split()[1]


class Balancer(Web):
    """In front of the ``replicas``. served: to which of them requests went, by number; next: the next one."""

    replicas: list[ReplicaProcess]

    def __init__(self, port: int, replicas: list[ReplicaProcess]) -> None:
        super().__init__(port)
        self.replicas, self.next = replicas, 0
        self.served: list[int] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line[15:])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                ),
                0,
            )
            body = await reader.readexactly(length)
            lines = [each for each in head.split(b"\r\n") if not each.lower().startswith(b"connection:")]
            lines[1:1] = [b"Connection: close"]
            there, back = await self._connected()
            try:
                back.write(b"\r\n".join(lines) + body)
                await _pump(there, writer, reader)
            finally:
                back.close()
        except (OSError, asyncio.IncompleteReadError):
            pass  # either side has left
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        first, self.next = self.next, (self.next + 1) % len(self.replicas)
        for step in range(len(self.replicas)):  # its own count: others move ``next`` while this one waits
            number = (first + step) % len(self.replicas)
            try:
                found = await asyncio.open_connection(self.replicas[number].host, self.replicas[number].port)
            except OSError:
                continue
            self.served.append(number)
            return found
        raise ConnectionError


async def _pump(
    there: asyncio.StreamReader, writer: asyncio.StreamWriter, client: asyncio.StreamReader
) -> None:
    """Passes a response on until it ends, or the client leaves."""
    left = asyncio.ensure_future(client.read(1))
    try:
        while True:
            piece = asyncio.ensure_future(there.read(1 << 16))
            await asyncio.wait({piece, left}, return_when=asyncio.FIRST_COMPLETED)
            if left.done() or not (data := await piece):
                piece.cancel()
                return
            writer.write(data)
            await writer.drain()
    finally:
        left.cancel()


def start(config: Path, errors: Path, *words: str, **env: str) -> "subprocess.Popen[bytes]":
    """One replica, which may not serve yet."""
    with errors.open("wb") as file:
        return subprocess.Popen(
            command("serve", "--http", "0", "--config", str(config), *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
            env=environment(**env),
        )


async def began(process: "subprocess.Popen[bytes]", errors: Path) -> ReplicaProcess:
    """The same once it serves."""

    def heard() -> str:
        assert process.poll() is None, errors.read_text("utf-8")
        found = [line for line in errors.read_text("utf-8").splitlines(keepends=True) if "listening" in line]
        return found[0] if found and found[0].endswith("\n") else ""

    port = (await comes_true(heard)).strip().removesuffix("/mcp").rpartition(":")[2]
    replica = ReplicaProcess(int(port))
    replica.process, replica.errors = process, errors
    return replica


@asynccontextmanager
async def cluster(
    folder: Path, *fakes: FakeServer, count: int = 2, keys: tuple[str, ...] = (KEY,), **more: Any
) -> AsyncIterator[Balancer]:
    """So many replicas behind a balancer. keys: of the ring. more: keys of the config."""
    settings = {"keys": list(keys), "listen": "127.0.0.1:0", **more.pop("replicas", {})}
    config = write_config(folder, *fakes, replicas=settings, **more)
    async with asyncio.timeout(LONGEST), AsyncExitStack() as stack:
        begun = []
        for number in range(count):
            errors = folder / f"stderr-{number}.log"
            process = start(config, errors)
            stack.enter_context(ended(process))
            begun.append((process, errors))
        replicas = [await began(*each) for each in begun]
        yield await balanced(stack, replicas)


async def balanced(stack: AsyncExitStack, replicas: list[ReplicaProcess]) -> Balancer:
    """A balancer in front of these, until ``stack`` ends."""
    balancer = Balancer(0, replicas)
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(balancer.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    balancer.port = server.sockets[0].getsockname()[1]

    async def close() -> None:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)

    stack.push_async_callback(close)
    return balancer


async def execute(web: Web, tool: str, arguments: Json | None = None, id: object = 1) -> Reply:
    """`execute_tool` in a legacy session."""
    params = {"name": "execute_tool", "arguments": {"name": tool, "arguments": arguments or {}}}
    return await web.ask("POST", message("tools/call", params, id))


def at(session: SessionOf, replica: Web) -> SessionOf:
    """A session as ``replica`` is asked for it."""
    return SessionOf(replica.port, replica.host, {**session.headers})


def text_of(reply: Reply) -> str:
    """The first text of a result."""
    return str(reply.last["result"]["content"][0]["text"])


def people(folder: Path, *names: str) -> dict[str, str]:
    """The API keys of these people."""
    path = str(folder / "keys.json")
    return {name: new_key(path, name, [], [], time.time(), None) for name in names}
