"""The faults that mean harm do what they say, and cost the fake itself little."""

import asyncio
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.fake_http_client import KEY, modern
from helpers.fake_stdio_client import one_tool, talk
from mcpzip_fakes.faults import fault
from mcpzip_fakes.hostile import TEXT
from mcpzip_fakes.launch import FakeServer

Start = Callable[..., FakeServer]


async def listed(server: FakeServer) -> list[dict[str, Any]]:
    async with talk(server) as client:
        await client.initialize()
        tools: list[dict[str, Any]] = (await client.ask(1, "tools/list").hear())["result"]["tools"]
        return tools


def bomb(shape: str, size: int = 7, count: int = 3, **more: object) -> object:
    return fault("schema-bomb", shape=shape, size=size, count=count, **more)


@pytest.mark.parametrize(
    ("shape", "said"),
    [("refs", '"v6"'), ("all-of", '"q6"'), ("pointer", "%61" * 7), ("anchor", '"#a2"'), ("deep", '"d3"')],
)
async def test_a_schema_bomb_has_the_shape_that_was_asked_for(fake_mcp: Start, shape: str, said: str) -> None:
    [tool] = await listed(one_tool(fake_mcp, bomb(shape)))
    assert said in json.dumps(tool["inputSchema"])
    assert len(tool["inputSchema"]["properties"]) == (1 if shape == "deep" else 3)


async def test_a_schema_bomb_is_for_the_tool_that_is_named(fake_mcp: Start) -> None:
    first, second = await listed(fake_mcp(tools=["a", "b"], faults=[bomb("refs", name="b")]))
    assert "$defs" not in first["inputSchema"]
    assert "$defs" in second["inputSchema"]


async def test_a_long_name_comes_beside_the_others(fake_mcp: Start) -> None:
    names = [tool["name"] for tool in await listed(one_tool(fake_mcp, fault("long-name", size=50_000)))]
    assert names == ["echo", "n" * 50_000]


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list"])
async def test_endless_pages_have_fresh_cursors_until_their_count(fake_mcp: Start, method: str) -> None:
    server = one_tool(fake_mcp, fault("endless-pages", method=method, size=500, count=3))
    cursors: list[str] = []
    sizes: list[int] = []
    async with talk(server) as client:
        await client.initialize()
        params: dict[str, str] = {}
        while True:
            line = await client.ask(len(sizes), method, **params).line()
            sizes.append(len(line))
            cursor = json.loads(line)["result"].get("nextCursor")
            if cursor is None:
                break
            cursors.append(cursor)
            params = {"cursor": cursor}
    assert len(set(cursors)) == 3
    assert len(sizes) == 4
    assert min(sizes[1:]) > 500


@pytest.mark.parametrize(
    ("what", "method"),
    [
        ("progress", "notifications/progress"),
        ("log", "notifications/message"),
        ("list-changed", "notifications/tools/list_changed"),
        ("ping", "ping"),
        ("request-roots", "roots/list"),
    ],
)
async def test_a_flood_comes_before_the_answer(fake_mcp: Start, what: str, method: str) -> None:
    server = one_tool(fake_mcp, fault("flood", what=what, count=20, size=300))
    async with talk(server) as client:
        await client.initialize()
        client.ask(1, "tools/call", name="echo", arguments={}, _meta={"progressToken": "t"})
        lines = [await client.line() for _ in range(20)]
        assert [json.loads(line)["method"] for line in lines] == [method] * 20
        assert min(map(len, lines)) > 300
        for message in map(json.loads, lines):
            if "id" in message:
                client.say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}))
        assert (await client.hear())["id"] == 1


async def test_many_keys_stand_beside_the_answer_with_a_lone_surrogate(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("many-keys", count=500))
    async with talk(server) as client:
        await client.initialize()
        line = await client.call(1, "echo").line()
    assert rb'"lone":"\ud800"' in line
    result = json.loads(line)["result"]
    assert result["key-499"] == 499
    assert result["content"]


async def test_hostile_text_ends_what_a_person_reads(fake_mcp: Start) -> None:
    tools = [{"name": "pay", "result": {"text": "paid", "progress": 1}}]
    server = fake_mcp(tools=tools, instructions="Hi.", faults=["hostile-text"])
    async with talk(server) as client:
        assert (await client.initialize())["instructions"] == "Hi." + TEXT
        [tool] = (await client.ask(1, "tools/list").hear())["result"]["tools"]
        assert (tool["title"], tool["description"]) == ("pay" + TEXT, TEXT)
        client.ask(2, "tools/call", name="pay", arguments={}, _meta={"progressToken": "t"})
        assert (await client.hear())["params"]["message"] == TEXT
        assert (await client.hear())["result"]["content"][0]["text"] == "paid" + TEXT
        assert (await client.call(3, "gone").hear())["error"]["message"] == "Unknown tool: gone" + TEXT


async def test_hostile_text_says_what_it_is_told(fake_mcp: Start) -> None:
    [tool] = await listed(one_tool(fake_mcp, fault("hostile-text", text="!")))
    assert tool["title"] == "echo!"


# What has no end is made while it goes out, is in no record, and ends with its reader


async def test_an_endless_line_ends_after_its_size(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("endless", size=3_000_000))
    async with talk(server) as client:
        await client.initialize()
        line = client.call(1, "echo", n=1).process.stdout
        assert line
        whole = b""
        while not whole.endswith(b"\n"):
            whole += await line.read(1 << 20)
    assert len(whole) > 3_000_000
    assert json.loads(whole)["result"]["content"][0]["text"] == '{"n": 1}'
    assert server.record.path.stat().st_size < 100_000


async def test_an_endless_line_ends_when_nobody_reads_it(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("endless", size=10**15))
    async with talk(server) as client:
        await client.initialize()
        client.call(1, "echo")
        assert client.process.stdout
        await client.process.stdout.read(1 << 20)
        client.process._transport.close()  # type: ignore[attr-defined] # as a client that has died
        await client.ended()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_endless_answer_over_http_ends_with_its_reader(fake_mcp: Start, era: str) -> None:
    faults = [fault("endless", size=10**15, nth=1)]
    server = fake_mcp(tools=["echo"], faults=faults, transport="http", stateless=True)
    async with httpx.AsyncClient(timeout=10) as client:
        read = 0
        async with client.stream("POST", server.url, **call(era)) as answer:
            async for piece in answer.aiter_raw():
                read += len(piece)
                if read > 3_000_000:
                    break
    assert (await modern(server, "tools/call", name="echo", arguments={})).status_code == 200
    assert server.record.path.stat().st_size < 100_000


def call(era: str) -> dict[str, Any]:
    """A request over HTTP; the legacy one, which is answered by a stream, without a session: stateless."""
    meta = {KEY + "protocolVersion": "2026-07-28", KEY + "clientCapabilities": {}}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-method": "tools/call",
        "mcp-name": "echo",
    }
    params: dict[str, object] = {"name": "echo", "arguments": {"n": 1}}
    if era == "modern":
        headers["mcp-protocol-version"] = "2026-07-28"
        params["_meta"] = meta
    return {
        "json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        "headers": headers,
    }


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_gzip_bomb_is_small_on_the_wire(fake_mcp: Start, era: str) -> None:
    faults = [fault("gzip-bomb", size=20_000_000)]
    server = fake_mcp(tools=["echo"], faults=faults, transport="http", stateless=True)
    async with httpx.AsyncClient(timeout=20) as client:
        request = call(era)
        request["headers"]["accept-encoding"] = "identity"
        async with client.stream("POST", server.url, **request) as answer:
            assert answer.headers["content-encoding"] == "gzip"
            raw = b"".join([piece async for piece in answer.aiter_raw()])
    assert len(raw) < 1_000_000
    whole = zlib.decompress(raw, 31)
    assert len(whole) > 20_000_000
    text = next(line for line in whole.splitlines() if b'"id":1' in line).removeprefix(b"data: ")
    assert json.loads(text)["result"]["content"]


@pytest.mark.parametrize("count", [3, 0])
async def test_interim_answers_come_before_the_answer(fake_mcp: Start, count: int) -> None:
    faults = [fault("interim", count=count)]
    server = fake_mcp(tools=["echo"], faults=faults, transport="http", stateless=True)
    port = int(server.url.split(":")[2].split("/")[0])
    request = call("legacy")
    body = json.dumps(request["json"])
    fields = {**request["headers"], "host": f"127.0.0.1:{port}", "content-length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n{head}\r\n{body}".encode())
    answers = []
    async with asyncio.timeout(20):
        while len(answers) < 10_000:
            said = await reader.readuntil(b"\r\n\r\n")
            answers.append(said.split()[1])
            if answers[-1] != b"103":
                break
    writer.close()
    assert answers == ([b"103"] * 3 + [b"200"] if count else [b"103"] * 10_000)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
async def test_a_slow_start_holds_memory_and_burns_time(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("slow-start", seconds=0.0, memory=120, busy=0.3))
    async with talk(server) as client:
        await client.initialize()
        place = Path(f"/proc/{client.process.pid}")
        status, stat = (place / "status").read_text(), (place / "stat").read_text()
    [held] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")]
    ticks = sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    assert held > 120_000
    assert ticks / os.sysconf("SC_CLK_TCK") >= 0.2
