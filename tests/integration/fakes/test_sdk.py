"""The fakes before an independent judge: the official SDK's client, over every transport and in both eras."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcpzip_fakes.launch import FakeServer
from pydantic import ValidationError

MODERN = "2026-07-28"
MODES = ("legacy", MODERN)
TRANSPORTS = ("stdio", "http", "sse")
LEGS = [
    pytest.param(transport, mode, flags, id="-".join([transport, mode, *flags]))
    for transport, flags in (("stdio", {}), ("http", {}), ("http", {"json_response": True}), ("sse", {}))
    for mode in MODES
]

Start = Callable[..., FakeServer]


def connect(server: FakeServer, mode: str, **options: Any) -> AbstractAsyncContextManager[Client]:
    return _connect(server, mode, options)


@asynccontextmanager
async def _connect(server: FakeServer, mode: str, options: dict[str, Any]) -> AsyncIterator[Client]:
    target: Any
    if server.transport == "stdio":
        target = stdio_client(
            StdioServerParameters(command=server.command[0], args=server.command[1:], env=server.env)
        )
    elif server.transport == "sse":
        target = sse_client(server.url)
    else:
        target = streamable_http_client(server.url)
    async with Client(target, mode=mode, read_timeout_seconds=20, cache=None, **options) as client:
        yield client


def said(result: Any) -> str:
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize(("transport", "mode", "flags"), LEGS)
async def test_list_call_errors_progress(
    fake_mcp: Start, transport: str, mode: str, flags: dict[str, bool]
) -> None:
    server = fake_mcp("echo", transport=transport, **flags)
    told: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with connect(server, mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [tool.name for tool in server.scenario.tools]
        assert said(await client.call_tool("echo", {"b": 1, "a": None})) == '{"b":1,"a":null}'
        assert said(await client.call_tool("greet", {"name": "Ann"})) == "Hello, Ann! (call 1)"
        measured = await client.call_tool("measure", {})
        assert measured.structured_content == {"unit": "°C", "value": 21.5}
        failed = await client.call_tool("fail", {})
        assert failed.is_error
        assert said(failed) == "the printer is on fire"
        with pytest.raises(MCPError, match="out of paper") as refused:
            await client.call_tool("refuse", {})
        assert (refused.value.code, refused.value.data) == (-32050, {"tray": 2})
        with pytest.raises(MCPError, match="Unknown tool: nobody"):
            await client.call_tool("nobody", {})
        assert said(await client.call_tool("slow", {}, progress_callback=on_progress)) == "done"
    if not flags:  # the SDK sends no progress with json_response
        assert sorted(told) == [1, 2, 3, 4, 5]
    for info in _server_infos(server):
        assert info == {"name": "echo", "title": "Echo", "version": "1.0.0"}
    opened_by = ["initialize", "notifications/initialized"] if mode == "legacy" else []
    assert server.record.methods()[: len(opened_by)] == opened_by
    assert ("initialize" in server.record.methods()) == (mode == "legacy")
    [call] = server.record.calls("greet")
    assert call["arguments"] == {"name": "Ann"}


def _server_infos(server: FakeServer) -> list[object]:
    """What the server said of itself: in each modern result, or once, to initialize."""
    results = [line.message["result"] for line in server.record.sent() if "result" in line.message]
    found: list[object] = []
    for result in results:
        assert isinstance(result, dict)
        if "protocolVersion" in result:
            return [result["serverInfo"]]
        found.append(result["_meta"]["io.modelcontextprotocol/serverInfo"])
    assert found
    return found


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_raw_result_arrives_whole(fake_mcp: Start, transport: str, mode: str) -> None:
    server = fake_mcp("echo", transport=transport)
    async with connect(server, mode) as client:
        with contextlib.suppress(ValidationError):  # the client's models know no holograms
            await client.call_tool("exact", {})
    [answer] = [
        line.message["result"]
        for line in server.record.sent()
        if "x-vendor" in str(line.message.get("result"))
    ]
    assert isinstance(answer, dict)
    assert answer["x-vendor"] == {"big": 12345678901234567890, "float": 1.0, "exp": 1000.0, "none": None}
    assert answer["content"][1] == {"type": "hologram", "x-depth": [1, 2]}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
async def test_pages_with_an_empty_cursor(fake_mcp: Start, transport: str, mode: str) -> None:
    server = fake_mcp("paging", transport=transport)
    found: list[str] = []
    cursors: list[str | None] = [None]
    async with connect(server, mode) as client:
        while True:
            page = await client.list_tools(cursor=cursors[-1])
            found += [tool.name for tool in page.tools]
            if page.next_cursor is None:
                break
            cursors.append(page.next_cursor)
        with pytest.raises(MCPError, match="Invalid cursor"):
            await client.list_tools(cursor="page-99")
    assert found == [tool.name for tool in server.scenario.all_tools()]
    assert cursors[:3] == [None, "", "page-3"]
    assert len(cursors) == 10


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
async def test_the_server_asks_its_client(fake_mcp: Start, transport: str, mode: str) -> None:
    server = fake_mcp("questions", transport=transport)

    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult(
            role="assistant", model="m", content=types.TextContent(type="text", text="fine")
        )

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"people": 4})

    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///srv"})])

    async with connect(
        server, mode, sampling_callback=sample, elicitation_callback=elicit, list_roots_callback=roots
    ) as client:
        assert '"fine"' in said(await client.call_tool("summarize", {"text": "x"}))
        assert '"people":4' in said(await client.call_tool("book_table", {}))
        assert '"file:///srv"' in said(await client.call_tool("where_am_i", {}))


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_be_asked(fake_mcp: Start, mode: str) -> None:
    server = fake_mcp("questions")
    async with connect(server, mode) as client:
        if mode == "legacy":
            answer = await client.call_tool("summarize", {"text": "x"})
            assert answer.is_error
            assert said(answer) == "this client does not offer sampling"
        else:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("summarize", {"text": "x"})
            assert (refused.value.code, refused.value.data) == (
                -32021,
                {"requiredCapabilities": {"sampling": {}}},
            )


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
async def test_resources_prompts_and_completions(fake_mcp: Start, transport: str, mode: str) -> None:
    server = fake_mcp("questions", transport=transport)
    async with connect(server, mode) as client:
        assert [it.uri for it in (await client.list_resources()).resources] == ["memo://today"]
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "memo://{day}"
        for uri, text in (
            ("memo://today", "Nothing to report."),
            ("memo://monday", "The memo of memo://monday."),
        ):
            [held] = (await client.read_resource(uri)).contents
            assert isinstance(held, types.TextResourceContents)
            assert (held.uri, held.text) == (uri, text)
        with pytest.raises(MCPError) as missing:
            await client.read_resource("memo://a/b")
        assert missing.value.code == (-32002 if mode == "legacy" else -32602)
        [prompt] = (await client.list_prompts()).prompts
        assert prompt.name == "review"
        [message] = (await client.get_prompt("review", {"file": "a.py"})).messages
        assert isinstance(message.content, types.TextContent)
        assert message.content.text == "Review a.py, please."
        completed = await client.complete(
            types.PromptReference(type="ref/prompt", name="review"), {"name": "tone", "value": "s"}
        )
        assert completed.completion.values == ["strict", "sober"]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_call_changes_the_tools(fake_mcp: Start, transport: str, mode: str) -> None:
    server = fake_mcp("list-changed", transport=transport)
    async with connect(server, mode) as client:
        if mode == "legacy":
            assert client.server_capabilities is not None
            assert client.server_capabilities.tools is not None
            assert client.server_capabilities.tools.list_changed
        assert [tool.name for tool in (await client.list_tools()).tools] == ["install"]
        if mode == "legacy":
            if transport == "http":  # the notification travels on the stream that this request opens
                await server.record.until(
                    lambda seen: [line for line in seen.events("status") if line.detail["verb"] == "GET"]
                )
            assert said(await client.call_tool("install", {"name": "x"})) == "x is installed."
            await server.record.until(_told_of_the_change)
        else:
            async with client.listen(tools_list_changed=True) as changes:
                await client.call_tool("install", {"name": "x"})
                await anext(aiter(changes))
        assert [tool.name for tool in (await client.list_tools()).tools] == ["install", "spellcheck"]
        assert said(await client.call_tool("install", {"name": "x"})) == "x was installed already."


def _told_of_the_change(record: Any) -> bool:
    return any(line.method == "notifications/tools/list_changed" for line in record.sent())


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
async def test_giving_up_a_call_ends_it(fake_mcp: Start, transport: str, mode: str) -> None:
    server = fake_mcp(tools=[{"name": "wait", "result": {"delay": 600}}], transport=transport)
    async with connect(server, mode) as client:
        with pytest.raises(MCPError, match="timed out"):
            await client.call_tool("wait", {}, read_timeout_seconds=1.0)
        [ended] = await server.record.until(lambda seen: seen.events("cancelled"))
        assert ended.detail["name"] == "wait"


async def test_calls_run_side_by_side(fake_mcp: Start) -> None:
    server = fake_mcp(tools=[{"name": "wait", "result": {"delay": 2.0}}])
    async with connect(server, MODERN) as client, anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(client.call_tool, "wait", {})
    order = [
        line.what for line in server.record.lines() if "tools/call" in line.method or "result" in line.message
    ]
    assert order.index("out") == 8  # all came in before the first went out


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("era", "mode", "works"),
    [
        ("legacy", "legacy", True),
        ("legacy", MODERN, False),
        ("legacy", "auto", True),
        ("modern", "legacy", False),
        ("modern", "auto", True),
    ],
)
async def test_a_server_of_one_era_only(
    fake_mcp: Start, transport: str, era: str, mode: str, works: bool
) -> None:
    server = fake_mcp(tools=["echo"], era=era, transport=transport)

    async def use() -> str:
        async with connect(server, mode) as client:
            return said(await client.call_tool("echo", {"a": 1}))

    if works:
        assert await use() == '{"a":1}'
    else:
        with pytest.raises((MCPError, ExceptionGroup)):
            await use()
        assert server.record.calls() == [] or not any(
            "result" in line.message for line in server.record.sent()
        )


@pytest.mark.parametrize("mode", MODES)
async def test_without_sessions(fake_mcp: Start, mode: str) -> None:
    server = fake_mcp(tools=["echo"], transport="http", stateless=True)
    async with connect(server, mode) as client:
        assert said(await client.call_tool("echo", {"a": 1})) == '{"a":1}'
    headers = [line.detail["headers"] for line in server.record.received()]
    assert all(isinstance(it, dict) and "mcp-session-id" not in it for it in headers)
