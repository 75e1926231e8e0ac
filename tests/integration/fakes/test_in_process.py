"""A fake without a process writes what the same fake on stdio writes."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from mcpzip_fakes.in_process import InProcess, can_play
from mcpzip_fakes.launch import FakeServer, described
from mcpzip_fakes.record import Record

Fake = Callable[..., FakeServer]

TOOLS = [
    "echo",
    {"name": "steps", "result": {"text": "done", "progress": [{"progress": 1}, {"progress": 2}]}},
    {"name": "fail", "result": {"text": "no", "isError": True}},
    {"name": "large", "result": {"size": 300_000}},
]
LEGACY = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def request(number: int, method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


LINES = [
    request(1, "initialize", **LEGACY),
    json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    request(2, "tools/list"),
    request(3, "tools/call", name="echo", arguments={"ü": 1.0}),
    request(4, "tools/call", name="steps", arguments={}, _meta={"progressToken": "p"}),
    request(5, "tools/call", name="fail", arguments={}),
    request(6, "tools/call", name="nothing", arguments={}),
    request(7, "tools/call", name="large", arguments={}),
    "{not JSON",
    request(8, "ping"),
]


ANSWERS = 11
"""Lines: a response to each request, one to what is not JSON, and two of progress."""


async def in_a_process(server: FakeServer) -> list[bytes]:
    process = await asyncio.create_subprocess_exec(
        *server.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **server.env},
        limit=1 << 20,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in LINES).encode())
    said = [await process.stdout.readline() for _ in range(ANSWERS)]
    process.stdin.close()
    assert await process.stdout.read() == b""
    assert await process.wait() == 0
    return said


async def here(record: Path) -> list[bytes]:
    said, all_there = bytearray(), asyncio.Event()

    def received(data: bytes) -> None:
        said.extend(data)
        if said.count(b"\n") == ANSWERS:
            all_there.set()

    server = InProcess(described(None, name="shop", tools=TOOLS), str(record), received)
    for line in LINES:
        server.write(line.encode() + b"\n")
    await all_there.wait()
    await server.close()
    server.write(b"what comes after the end is not read\n")
    await server.close()
    return bytes(said).splitlines(keepends=True)


async def test_it_writes_the_same_bytes(fake_mcp: Fake, tmp_path: Path) -> None:
    process, record = fake_mcp(name="shop", tools=TOOLS), Record(tmp_path / "record.jsonl")
    async with asyncio.timeout(30):
        assert sorted(await here(record.path)) == sorted(await in_a_process(process))
    assert record.methods() == process.record.methods()
    assert len(record.sent()) == ANSWERS
    (ended,) = record.events("exit")
    assert ended.detail == {"reason": "end of input", "code": 0}


@pytest.mark.parametrize("keys", [{"faults": ["crash"]}, {"record_env": ["HOME"]}])
def test_what_is_of_a_process_needs_one(keys: dict[str, list[str]]) -> None:
    assert can_play(described(None, name="shop", tools=TOOLS))
    assert not can_play(described(None, name="shop", tools=TOOLS, **keys))
