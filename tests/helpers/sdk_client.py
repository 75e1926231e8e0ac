"""The SDK's client in front of `mcpzip serve`, over either transport, answering whatever it is asked.

async with talking(tmp_path, "http", "legacy", shop) as talk:
    result = await talk.call("shop__book_table")
assert talk.asked == ["For how many?"]
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as t
from helpers.driver import ROOT, Json, write_config
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcpzip_fakes.launch import FakeServer

from mcpzip.system.network import tls_context

PATIENCE = 30.0
ENDING = 15.0
"""Seconds it may take to end: two are promised, and machines are shared."""


class Talk:
    """One client. asked: the questions it was asked; told: the log messages it heard; heard: other
    notifications, by method.
    """

    def __init__(self) -> None:
        self.client: Client
        self.asked: list[object] = []
        self.told: list[t.LoggingMessageNotificationParams] = []
        self.heard: list[str] = []
        self.news = asyncio.Event()
        self.on_message: Callable[[object], Awaitable[None]] | None = None

    async def sample(self, context: object, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        self.asked.append(params.max_tokens)
        content = t.TextContent(type="text", text="All is well.")
        return t.CreateMessageResult(role="assistant", model="m", content=content)

    async def elicit(self, context: object, params: Any) -> t.ElicitResult:
        self.asked.append(params.message)
        if params.mode == "url":
            return t.ElicitResult(action="accept")
        return t.ElicitResult(action="accept", content={"people": 4})

    async def roots(self, context: object) -> t.ListRootsResult:
        self.asked.append("roots")
        return t.ListRootsResult(roots=[t.Root(uri="file:///here", name="here")])

    async def log(self, params: t.LoggingMessageNotificationParams) -> None:
        self.told.append(params)

    async def message(self, message: object) -> None:
        self.heard.append(getattr(message, "method", type(message).__name__))
        if self.on_message is not None:
            await self.on_message(message)
        self.news.set()

    async def call(self, name: str, arguments: Json | None = None, **options: Any) -> t.CallToolResult:
        """`execute_tool`."""
        return await self.client.call_tool(
            "execute_tool", {"name": name, "arguments": arguments or {}}, **options
        )

    async def text(self, name: str, arguments: Json | None = None, **options: Any) -> str:
        """What `execute_tool` answers."""
        (part,) = (await self.call(name, arguments, **options)).content
        assert isinstance(part, t.TextContent)
        return part.text


@asynccontextmanager
async def talking(
    folder: Path, transport: str, mode: str, *fakes: FakeServer, level: str | None = None, **keys: object
) -> AsyncIterator[Talk]:
    """A client in ``mode`` in front of mcpzip, which is in front of ``fakes``. transport: of the client.
    level: from which it wants log messages. keys: of the config.
    """
    config = write_config(folder, *fakes, **keys)
    async with asyncio.timeout(2 * PATIENCE):
        if transport == "stdio":
            argv = ["-m", "mcpzip", "serve", "--no-daemon", "--config", str(config)]
            env = {"PYTHONPATH": str(ROOT), "HOME": str(folder)}
            async with client_of(
                StdioServerParameters(command=sys.executable, args=argv, env=env), mode, level
            ) as talk:
                yield talk
        else:
            async with serving_http(config) as url, client_at(url, mode, level) as talk:
                yield talk


@asynccontextmanager
async def client_at(url: str, mode: str, level: str | None = None) -> AsyncIterator[Talk]:
    """A client of what listens at ``url``."""
    http = httpx2.AsyncClient(timeout=httpx2.Timeout(PATIENCE), trust_env=False, verify=tls_context())
    target = streamable_http_client(url, http_client=http, max_sse_event_size=None)
    async with http, client_of(target, mode, level) as talk:
        yield talk


@asynccontextmanager
async def client_of(target: Any, mode: str, level: str | None) -> AsyncIterator[Talk]:
    talk = Talk()
    async with Client(
        target,
        mode=mode,  # type: ignore[arg-type]
        sampling_callback=talk.sample,
        elicitation_callback=talk.elicit,
        list_roots_callback=talk.roots,
        logging_callback=talk.log,
        message_handler=talk.message,
        log_level=level if mode != "legacy" else None,  # type: ignore[arg-type]
        read_timeout_seconds=PATIENCE,
        cache=None,
    ) as client:
        talk.client = client
        if level is not None and mode == "legacy":
            await client.set_logging_level(level)  # type: ignore[arg-type]
        yield talk


@asynccontextmanager
async def serving_http(config: Path, *options: str) -> AsyncIterator[str]:
    """`mcpzip serve --http` on a free port; its URL."""
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "mcpzip",
            "serve",
            "--config",
            str(config),
            "--http",
            "127.0.0.1:0",
            *options,
        ),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(config.parent)},
    )
    assert process.stderr
    said = b""
    try:
        while not (line := await process.stderr.readline()).startswith(b"listening "):
            said += line
            assert line, f"it did not come up: {said.decode()}"
        draining = asyncio.create_task(process.stderr.read())
        yield line.split()[1].decode()
        process.terminate()
        assert await asyncio.wait_for(process.wait(), ENDING) == 0, (await draining).decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def comes(look: Callable[[], bool], news: asyncio.Event) -> None:
    """Waits until ``look`` is true; it is asked again at all news."""
    async with asyncio.timeout(PATIENCE):
        while not look():
            news.clear()
            await news.wait()


def structured(result: t.CallToolResult) -> Json:
    assert result.structured_content is not None
    return json.loads(json.dumps(result.structured_content))
