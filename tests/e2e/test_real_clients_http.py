"""The SDK's own `Client`, in each of its modes, in front of one `mcpzip serve --http` that wants a token."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import pytest
from helpers.client_answers import PATIENCE, Person
from helpers.inspector_targets import TOKEN, TOOLS
from helpers.sdk_modes import SPOKEN, TIMED_OUT, every_mode, execute, text_of
from helpers.serve_http import listening
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcpzip_fakes.launch import Fakes, FakeServer
from mcpzip_fakes.record import Record
from mcpzip_fakes.scenario import Scenario

_TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}


@dataclass(frozen=True)
class Endpoint:
    """mcpzip at ``url``, in front of a ``shop``, which speaks both eras, and of mcp-server-time."""

    url: str
    shop: FakeServer

    @asynccontextmanager
    async def client(
        self, mode: str, person: Person | None = None, token: str = TOKEN
    ) -> AsyncIterator[Client]:
        """A client in ``mode``, which asks ``person`` what it is asked."""
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            asyncio.timeout(2 * PATIENCE),
            httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(PATIENCE), trust_env=False) as http,
            Client(
                streamable_http_client(self.url, http_client=http),
                mode=mode,  # type: ignore[arg-type]
                log_level="info" if mode != "legacy" else None,
                cache=None,
                **(person.callbacks if person else {}),
            ) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def endpoint(mcpzip: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """One process for all tests of this file."""
    folder = tmp_path_factory.mktemp("endpoint")
    with Fakes(folder / "fakes") as fakes:
        tools = list(Scenario.load("questions").tools)
        shop = fakes.start("questions", name="shop", tools=[*tools, *TOOLS, "greet"])
        config = folder / "config.json"
        config.write_text(json.dumps({"mcpServers": {"shop": shop.config, "time": _TIME}}), "utf-8")
        # Its catalog is on disk before the first client comes: on a busy machine a server takes its time.
        subprocess.run([mcpzip, "refresh", "--config", str(config)], check=True, capture_output=True)
        with listening(mcpzip, config, TOKEN) as url:
            yield Endpoint(url, shop)


@every_mode
async def test_it_lists_searches_describes_and_executes(endpoint: Endpoint, mode: str) -> None:
    async with endpoint.client(mode) as client:
        assert client.protocol_version == SPOKEN[mode]
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search_tools", "describe_tool", "execute_tool"]
        found = await client.call_tool("search_tools", {"query": "what time is it in Tokyo"})
        assert "time__get_current_time: " in text_of(found)
        described = await client.call_tool("describe_tool", {"name": "time__get_current_time"})
        assert json.loads(text_of(described).splitlines()[0])["inputSchema"]["required"] == ["timezone"]
        answered = await execute(client, "time__get_current_time", {"timezone": "Asia/Tokyo"})
        assert answered.structured_content is not None
        assert answered.structured_content["timezone"] == "Asia/Tokyo"
        assert (await execute(client, "time__get_current_time", {"timezone": "Mars/Olympus"})).is_error


@every_mode
async def test_progress_and_logs_arrive(endpoint: Endpoint, mode: str) -> None:
    person = Person()
    async with endpoint.client(mode, person) as client:
        if mode == "legacy":
            await client.set_logging_level("info")
        done = await execute(client, "shop__build", {}, progress_callback=person.on_progress)
        assert text_of(done) == "built"
        await person.until(lambda: len(person.progress) == 2 and len(person.told) == 2)
        assert sorted(person.progress) == [(1, 2, "compiled"), (2, 2, "linked")]
        assert person.told == [("info", "compiling"), ("error", {"line": 3, "text": "unused import"})]


@every_mode
async def test_what_a_tool_asks_is_answered(endpoint: Endpoint, mode: str) -> None:
    person = Person()
    async with endpoint.client(mode, person) as client:
        assert "All is well." in text_of(await execute(client, "shop__summarize", {"text": "x"}))
        assert '"people":4' in text_of(await execute(client, "shop__book_table", {})).replace(" ", "")
        assert "accept" in text_of(await execute(client, "shop__sign_in", {}))
        assert "file:///here" in text_of(await execute(client, "shop__where_am_i", {}))
        assert [str(question) for question in person.asked if question == "roots"] == ["roots"]
        assert len(person.asked) == 4


@every_mode
async def test_a_call_given_up_is_cancelled_upstream(endpoint: Endpoint, mode: str) -> None:
    record = endpoint.shop.record
    async with endpoint.client(mode) as client:
        asked, ended = len(record.calls("slow")), len(record.events("cancelled"))

        def all_are_over(seen: Record) -> bool:
            return len(seen.events("cancelled")) - ended == len(seen.calls("slow")) - asked

        call = asyncio.create_task(execute(client, "shop__slow", {}))
        await record.until(lambda seen: len(seen.calls("slow")) > asked)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await record.until(all_are_over)

        with pytest.raises(MCPError) as late:
            await execute(client, "shop__slow", {}, read_timeout_seconds=1)
        assert late.value.error.code == TIMED_OUT
        await record.until(all_are_over)

        ours = await client.call_tool("execute_tool", {"name": "shop__slow", "timeout": 0.2})
        assert ours.is_error
        assert "may have run" in text_of(ours)
        await record.until(all_are_over)
        assert text_of(await execute(client, "shop__greet", {})) == "{}"


async def test_clients_of_all_modes_at_once_get_their_own_answers(endpoint: Endpoint) -> None:
    async def talk(mode: str, number: int) -> None:
        person = Person()
        async with endpoint.client(mode, person) as client:
            said = await execute(client, "shop__greet", {"number": number})
            assert json.loads(text_of(said)) == {"number": number}
            assert '"people":4' in text_of(await execute(client, "shop__book_table", {})).replace(" ", "")
            assert len(person.asked) == 1

    await asyncio.gather(*(talk(mode, number) for number in range(3) for mode in SPOKEN))


@every_mode
async def test_with_a_wrong_token_it_is_not_let_in(endpoint: Endpoint, mode: str) -> None:
    before = len(endpoint.shop.record.received())
    with pytest.raises(ExceptionGroup) as refused:
        async with endpoint.client(mode, token="x" * 32) as client:
            await client.list_tools()
    assert "This bearer token is not the one that is required." in told(refused.value)
    assert len(endpoint.shop.record.received()) == before


def told(error: BaseException) -> str:
    """All that it and those in its group say."""
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return " ".join([repr(error), *map(told, inner)])
