"""The scenario ``everything`` before the official SDK's client, over stdio and HTTP and in both eras. What
the official suite says of it is in docs/official-suite.md."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPDeprecationWarning, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcpzip_fakes.launch import FakeServer

MODERN = "2026-07-28"
Start = Callable[..., FakeServer]


class Person:
    """Behind the client: answers what the server asks, hears what it tells."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._send, self.told = anyio.create_memory_object_stream[str](100)

    async def samples(self, context: object, params: Any) -> types.CreateMessageResult:
        self.asked.append(params.messages[0].content.text)
        said = types.TextContent(type="text", text="Sampled.")
        return types.CreateMessageResult(role="assistant", model="m", content=said)

    async def elicits(self, context: object, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        content = {
            "name": "Ada",
            "color": "blue",
            "context": "tea",
            "username": "ada",
            "email": "a@b.c",
            "ok": True,
        }
        return types.ElicitResult(action="accept", content=None if params.mode == "url" else content)

    async def roots(self, context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///srv"})])

    async def hears(self, message: Any) -> None:
        if isinstance(method := getattr(message, "method", None), str):
            await self._send.send(method)

    async def heard(self, method: str) -> None:
        """Wait for a notification of this method."""
        with anyio.fail_after(20):
            while await self.told.receive() != method:
                pass


@asynccontextmanager
async def connect(server: FakeServer, mode: str, person: Person) -> AsyncIterator[Client]:
    target: Any = (
        streamable_http_client(server.url)
        if server.url
        else stdio_client(
            StdioServerParameters(command=server.command[0], args=server.command[1:], env=server.env)
        )
    )
    async with Client(
        target,
        mode=mode,
        read_timeout_seconds=20,
        cache=None,
        sampling_callback=person.samples,
        elicitation_callback=person.elicits,
        list_roots_callback=person.roots,
        message_handler=person.hears,
    ) as client:
        yield client
    person._send.close()
    person.told.close()


def said(result: Any) -> str:
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


LEGS = pytest.mark.parametrize(
    ("transport", "mode"),
    [(transport, mode) for transport in ("stdio", "http") for mode in ("legacy", MODERN)],
)


@LEGS
async def test_every_tool_answers(fake_mcp: Start, transport: str, mode: str) -> None:
    server, person = fake_mcp("everything", transport=transport), Person()
    async with connect(server, mode, person) as client:
        told = [tool.name for tool in (await client.list_tools()).tools]
        assert told == [tool.name for tool in server.scenario.tools if not tool.late]
        kinds = {
            block.type
            for name in told
            if name.endswith(("content", "resource", "link", "types"))
            for block in (await client.call_tool(name, {})).content
        }
        assert kinds == {"text", "image", "audio", "resource", "resource_link"}
        assert (await client.call_tool("test_error_handling", {})).is_error


@LEGS
async def test_it_asks_its_client(fake_mcp: Start, transport: str, mode: str) -> None:
    server, person = fake_mcp("everything", transport=transport), Person()
    async with connect(server, mode, person) as client:

        async def call(name: str, **arguments: str) -> str:
            return said(await client.call_tool(name, arguments))

        assert await call("test_sampling", prompt="Why?") == "LLM response: Sampled."
        assert (await call("test_elicitation", message="Who?")).startswith("User response: action=accept")
        assert await call("test_elicitation_url") == "URL elicitation: action=accept"
        assert "file:///srv" in await call("test_roots")
        assert await call("test_input_required_result_elicitation") == "Hello, Ada!"
        assert await call("test_input_required_result_request_state") == "state-ok"
        assert await call("test_input_required_result_multi_round") == "Ada likes blue."
        assert (await call("test_input_required_result_multiple_inputs")).startswith("Sampled. Ada, [")
        assert person.asked[:2] == ["Why?", "Who?"]
        assert "Step 2: What is your favorite color, Ada?" in person.asked
        prompt = await client.get_prompt("test_input_required_result_prompt")
        assert prompt.messages[0].content == types.TextContent(type="text", text="With this in mind: tea")
        [held] = (await client.read_resource("test://asking-resource")).contents
        assert isinstance(held, types.TextResourceContents)
        assert held.text == "Read by Ada."


@LEGS
async def test_prompts_resources_and_completions(fake_mcp: Start, transport: str, mode: str) -> None:
    server, person = fake_mcp("everything", transport=transport), Person()
    async with connect(server, mode, person) as client:
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        embedded = await client.get_prompt("test_prompt_with_embedded_resource", {"resourceUri": "test://x"})
        assert isinstance(embedded.messages[0].content, types.EmbeddedResource)
        image = await client.get_prompt("test_prompt_with_image")
        assert isinstance(image.messages[0].content, types.ImageContent)
        assert "test_late_prompt" not in names
        [blob] = (await client.read_resource("test://static-binary")).contents
        assert isinstance(blob, types.BlobResourceContents)
        [data] = (await client.read_resource("test://template/123/data")).contents
        assert isinstance(data, types.TextResourceContents)
        assert '"id":"123"' in data.text
        ref = types.ResourceTemplateReference(type="ref/resource", uri="test://template/{id}/data")
        done = await client.complete(ref, {"name": "id", "value": "12"})
        assert done.completion.values == ["123", "124"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_legacy_client_hears_of_changes_and_of_what_it_subscribed_to(
    fake_mcp: Start, transport: str
) -> None:
    server, person = fake_mcp("everything", transport=transport), Person()
    async with connect(server, "legacy", person) as client:
        await server.record.until(lambda seen: "notifications/initialized" in seen.methods())
        if transport == "http":  # changes travel on the standing stream
            await server.record.until(
                lambda seen: any(it.detail.get("verb") == "GET" for it in seen.events("status"))
            )
        for kind in ("tool", "prompt", "resource"):
            await client.call_tool(f"test_trigger_{kind}_change", {})
            await person.heard(f"notifications/{kind}s/list_changed")
        assert "test_late_tool" in [tool.name for tool in (await client.list_tools()).tools]
        with pytest.warns(MCPDeprecationWarning, match="subscribe"):
            await client.subscribe_resource("test://watched-resource")
        await client.call_tool("test_trigger_resource_update", {})
        await person.heard("notifications/resources/updated")


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_modern_client_hears_what_it_listens_to(fake_mcp: Start, transport: str) -> None:
    server, person = fake_mcp("everything", transport=transport), Person()
    async with (
        connect(server, MODERN, person) as client,
        client.listen(
            prompts_list_changed=True, resource_subscriptions=["test://watched-resource"]
        ) as changes,
    ):
        heard = aiter(changes)
        await client.call_tool("test_trigger_tool_change", {})
        await client.call_tool("test_trigger_prompt_change", {})
        await client.call_tool("test_trigger_resource_update", {})
        with anyio.fail_after(20):
            kinds = [type(await anext(heard)).__name__ for _ in range(2)]
        assert kinds == ["PromptsListChanged", "ResourceUpdated"]
