"""The SDK's own `Client`, in each of its modes, in front of `mcpzip serve`."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from helpers.client_answers import Person
from helpers.sdk_modes import PINNED, SPOKEN, TIMED_OUT, every_mode, execute, text_of
from mcp import Client, MCPError, StdioServerParameters
from mcpzip_fakes.launch import FakeServer

FakeMcp = Callable[..., FakeServer]

ERAS = ("legacy", "modern")
INVALID_PARAMS = -32602


class Serve:
    """Writes a config with the servers it is given, and connects clients to `mcpzip serve` with it."""

    def __init__(self, command: str, folder: Path) -> None:
        self._command, self._config = command, folder / "config.json"
        self.keys: dict[str, object] = {}
        """Of the config, beside ``mcpServers``."""

    @asynccontextmanager
    async def client(
        self, mode: str, *servers: FakeServer, person: Person | None = None, **more: object
    ) -> AsyncIterator[Client]:
        """A client in ``mode``, which asks ``person`` what it is asked. more: further ``mcpServers``."""
        entries = {server.name: server.config for server in servers} | more
        self._config.write_text(json.dumps({"mcpServers": entries, **self.keys}), "utf-8")
        params = StdioServerParameters(
            command=self._command, args=["serve", "--no-daemon", "--config", str(self._config)]
        )
        callbacks = person.callbacks if person else {}
        async with asyncio.timeout(60), Client(params, mode=mode, **callbacks) as client:  # type: ignore[arg-type]
            yield client


@pytest.fixture
def serve(mcpzip: str, tmp_path: Path) -> Serve:
    return Serve(mcpzip, tmp_path)


async def refresh(client: Client) -> str:
    """Lists every server anew, however long its start takes here."""
    return text_of(await client.call_tool("execute_tool", {"name": "proxy_refresh", "timeout": 50}))


async def search(client: Client, query: str) -> str:
    """The reply to a search for ``query`` of what is indexed, which takes longer on a busy machine than a
    search waits. The client's time is limited.
    """
    while "not indexed yet" in (reply := text_of(await client.call_tool("search_tools", {"query": query}))):
        pass
    return reply


@every_mode
async def test_it_lists_searches_describes_and_executes(serve: Serve, mode: str) -> None:
    time = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}
    async with serve.client(mode, time=time) as client:
        assert client.protocol_version == SPOKEN[mode]
        if mode != PINNED:  # pinned to a version, it asks nobody who they are
            assert client.server_info is not None
            assert client.server_info.name == "mcpzip"
            assert "Servers: time." in (client.instructions or "")
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search_tools", "describe_tool", "execute_tool"]

        await refresh(client)
        assert "time__get_current_time: " in await search(client, "what time is it in Tokyo")

        described = await client.call_tool("describe_tool", {"name": "time__get_current_time"})
        schema = json.loads(text_of(described).splitlines()[0])["inputSchema"]
        assert schema["required"] == ["timezone"]

        answered = await execute(client, "time__get_current_time", {"timezone": "Asia/Tokyo"})
        assert not answered.is_error
        assert answered.structured_content is not None
        assert answered.structured_content["timezone"] == "Asia/Tokyo"

        refused = await execute(client, "time__get_current_time", {"timezone": "Mars/Olympus"})
        assert refused.is_error


@every_mode
async def test_a_tool_of_its_own_runs_what_only_reads(serve: Serve, mode: str) -> None:
    time = {
        "command": sys.executable,
        "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"],
        "risk": {"convert_*": "writes"},
    }
    serve.keys = {"expose": {"split": True}}
    asked = {"name": "time__get_current_time", "arguments": {"timezone": "Asia/Tokyo"}}
    async with serve.client(mode, time=time) as client:
        *others, execute_tool, execute_read_tool = (await client.list_tools()).tools
        assert [tool.name for tool in others] == ["search_tools", "describe_tool"]
        assert execute_tool.annotations is None
        assert execute_read_tool.name == "execute_read_tool"
        assert execute_read_tool.annotations is not None
        assert execute_read_tool.annotations.read_only_hint
        assert execute_read_tool.input_schema == execute_tool.input_schema

        await refresh(client)
        found = (await search(client, "time")).splitlines()
        marked = [line.partition(":")[0] for line in found if line.endswith("] read-only")]
        assert marked == ["time__get_current_time"]
        described = await client.call_tool("describe_tool", {"name": "time__convert_time"})
        assert "\nRun it with execute_tool.\n" in text_of(described)

        answered = await client.call_tool("execute_read_tool", asked)
        assert answered.structured_content is not None
        assert answered.structured_content["timezone"] == "Asia/Tokyo"
        refused = await client.call_tool("execute_read_tool", {**asked, "name": "time__convert_time"})
        assert refused.is_error
        assert "the class of time__convert_time is: writes. Nothing ran." in text_of(refused)


@every_mode
@pytest.mark.parametrize("era", ERAS)
async def test_it_bridges_the_eras(serve: Serve, fake_mcp: FakeMcp, mode: str, era: str) -> None:
    async with serve.client(mode, fake_mcp("echo", era=era)) as client:
        sent = {"näme": "“x”", "big": 12345678901234567890, "list": [1, 1.0, None]}
        assert json.loads(text_of(await execute(client, "echo__echo", sent))) == sent

        measured = await execute(client, "echo__measure", {})
        assert measured.structured_content == {"unit": "°C", "value": 21.5}

        failed = await execute(client, "echo__fail", {})
        assert (failed.is_error, text_of(failed)) == (True, "the printer is on fire")

        with pytest.raises(MCPError) as refused:
            await execute(client, "echo__refuse", {})
        error = refused.value.error
        assert (error.code, error.message, error.data) == (-32050, "out of paper", {"tray": 2})


@every_mode
async def test_an_unknown_name_is_answered_with_the_nearest(
    serve: Serve, fake_mcp: FakeMcp, mode: str
) -> None:
    async with serve.client(mode, fake_mcp("echo")) as client:
        for tool in ("describe_tool", "execute_tool"):
            answered = await client.call_tool(tool, {"name": "echo__grating"})
            assert answered.is_error
            assert "echo__greet" in text_of(answered)
        with pytest.raises(MCPError) as refused:
            await client.call_tool("echo__greet", {"name": "Ada"})
        assert refused.value.error.code == INVALID_PARAMS
        assert "execute_tool" in refused.value.error.message


@every_mode
@pytest.mark.parametrize("era", ERAS)
async def test_progress_comes_in_order_and_before_the_result(
    serve: Serve, fake_mcp: FakeMcp, mode: str, era: str
) -> None:
    heard: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with serve.client(mode, fake_mcp("echo", era=era)) as client:
        done = await execute(client, "echo__slow", {}, progress_callback=on_progress)
        assert text_of(done) == "done"
        assert len(heard) == 5
        assert heard == sorted(heard)


@every_mode
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_given_up_is_cancelled_upstream(
    serve: Serve, fake_mcp: FakeMcp, mode: str, era: str
) -> None:
    server = fake_mcp("echo", era=era, faults=[{"kind": "silence", "tool": "slow"}])
    async with serve.client(mode, server) as client:
        call = asyncio.create_task(execute(client, "echo__slow", {}, read_timeout_seconds=50))
        await server.record.until(lambda record: record.calls("slow"))
        call.cancel()
        await server.record.until(lambda record: record.received("notifications/cancelled"))
        [asked], [given_up] = map(server.record.received, ("tools/call", "notifications/cancelled"))
        assert given_up.params["requestId"] == asked.message["id"]

        with pytest.raises(MCPError) as late:
            await execute(client, "echo__slow", {}, read_timeout_seconds=1)
        assert late.value.error.code == TIMED_OUT
        # Where it was too late before it was passed on, nobody needs to be told.
        await server.record.until(
            lambda record: len(record.received("notifications/cancelled")) == len(record.calls("slow"))
        )

        assert text_of(await execute(client, "echo__greet", {"name": "Ada"})).startswith("Hello, Ada!")


@every_mode
async def test_what_a_tool_asks_is_answered(serve: Serve, fake_mcp: FakeMcp, mode: str) -> None:
    person = Person()
    async with serve.client(mode, fake_mcp("questions"), person=person) as client:
        assert "All is well." in text_of(await execute(client, "questions__summarize", {"text": "x"}))
        assert '"people":4' in text_of(await execute(client, "questions__book_table", {})).replace(" ", "")
        assert "file:///here" in text_of(await execute(client, "questions__where_am_i", {}))
        assert len(person.asked) == 3


@every_mode
async def test_our_own_timeout_is_an_answer_the_model_can_read(
    serve: Serve, fake_mcp: FakeMcp, mode: str
) -> None:
    server = fake_mcp("echo", faults=[{"kind": "silence", "tool": "slow"}])
    async with serve.client(mode, server) as client:
        late = await client.call_tool("execute_tool", {"name": "echo__slow", "timeout": 0.2})
        assert late.is_error
        assert "may have run" in text_of(late)
        await server.record.until(lambda record: record.received("notifications/cancelled"))


async def test_a_server_that_dies_of_the_probe_is_started_again(serve: Serve, fake_mcp: FakeMcp) -> None:
    # Once its second life was closed as soon as it was ready, because the first had ended.
    server = fake_mcp("dies-on-discover", name="shy")
    async with serve.client("auto", server) as client:
        assert "shy: connected, 1 tools" in await refresh(client)
        assert len(server.record.events("start")) == 2


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_a_servers_own_error_32000_is_passed_on(
    serve: Serve, fake_mcp: FakeMcp, transport: str
) -> None:
    # Once taken for the SDK's "Connection closed", which has the same code.
    fault = {"kind": "error", "method": "tools/call", "code": -32000, "message": "Bad hair day", "data": [1]}
    async with serve.client("auto", fake_mcp("echo", transport=transport, faults=[fault])) as client:
        with pytest.raises(MCPError) as refused:
            pytest.fail(f"it answered {await execute(client, 'echo__greet', {'name': 'Ada'})}")
        error = refused.value.error
        assert (error.code, error.message, error.data) == (-32000, "Bad hair day", [1])
