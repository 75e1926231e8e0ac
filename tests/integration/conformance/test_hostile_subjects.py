"""What the runner itself does with a subject that hands on what should have had an end, and what it sees of
its memory."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcpzip_conformance.channel.http import HttpChannel
from mcpzip_conformance.channel.stdio import StdioChannel
from mcpzip_conformance.client import Client
from mcpzip_conformance.errors import NotPlayableError
from mcpzip_conformance.player import Player
from mcpzip_conformance.processes import Process, peak_memory
from mcpzip_conformance.route import Route
from mcpzip_conformance.scene import server, tool
from mcpzip_conformance.stage import STRAIGHT, Stage
from mcpzip_conformance.subject import Subject
from mcpzip_fakes.faults import fault
from mcpzip_fakes.launch import FakeServer

from mcpzip.model.limits import MESSAGE

Start = Callable[..., FakeServer]
MORE = MESSAGE + 1_000_000


async def test_an_answer_that_is_too_long_is_an_error_over_http(fake_mcp: Start) -> None:
    for kind in ("endless", "gzip-bomb"):
        fake = fake_mcp(tools=["pour"], faults=[fault(kind, size=MORE)], transport="http")
        client = Client()
        client.channel = HttpChannel(fake.url, None, client)
        player = Player(client, Route(STRAIGHT))
        await player.open()
        reply = await player.call("shop", "pour")
        assert reply.failed
        assert reply.text == "The connection broke before the answer."
        await client.end()


async def test_an_answer_that_is_too_long_is_an_error_over_stdio(fake_mcp: Start, tmp_path: Path) -> None:
    fake = fake_mcp(tools=["pour"], faults=[fault("endless", size=MORE)])
    client = Client()
    env = {**os.environ, **fake.env}
    client.channel = await StdioChannel.start(fake.command, client, env=env, cwd=tmp_path)
    player = Player(client, Route(STRAIGHT))
    await player.open()
    reply = await player.call("shop", "pour")
    assert reply.failed
    assert "can't be read" in reply.text
    await client.end()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
async def test_the_peak_is_that_of_the_group_but_for_its_servers(tmp_path: Path) -> None:
    holds = "import sys; held = b'1' * 100_000_000; del held; print('held', flush=True); sys.stdin.read()"
    said = asyncio.Event()
    command = [sys.executable, "-c", holds]
    process = await Process.start(command, lambda data: said.set(), env=os.environ, cwd=tmp_path)
    try:
        await said.wait()
        assert (peak_memory(process.pid) or 0) > 100_000_000
        assert peak_memory(process.pid, {process.pid}) is None
    finally:
        await process.end(1.0)


async def test_a_server_over_http_is_for_subjects_that_say_how() -> None:
    http = server("bad", tools=[tool("pour")], over="http")
    async with Stage(Subject.load("relay:names")) as stage:
        player = await stage.through(server(tools=[tool("echo")]), http)
        assert (await player.call("bad", "pour")).json == {}
    async with Stage(Subject.load("direct")) as stage:
        with pytest.raises(NotPlayableError, match="no config entry for a server over http"):
            await stage.through(http)


def test_a_tool_is_called_by_any_name_where_names_are_how() -> None:
    assert Route(STRAIGHT).named("a.b") == b'{"name":"a.b","arguments":{}}'
    meta = Route(Subject.load("relay:meta")).named("a.b")
    assert meta == b'{"name":"run","arguments":{"tool":"a.b","arguments":{}}}'
