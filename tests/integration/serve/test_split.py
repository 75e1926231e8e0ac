"""`execute_read_tool` beside `execute_tool`: on every transport, in both eras, from the first message on."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as t
import pytest
from helpers.daemons import daemon_home
from helpers.driver import Client, Json, serving, until, write_config
from helpers.sdk_client import PATIENCE, Talk, comes, talking
from mcp import MCPError
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

META = ["search_tools", "describe_tool", "execute_tool"]
READ = "execute_read_tool"
SPLIT: Json = {"split": True}
TOOLS: list[Json] = [
    {"name": "list_orders", "description": "List orders", "annotations": {"readOnlyHint": True}},
    {"name": "cancel_order", "description": "Cancel an order"},
]
MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http"])


@pytest.fixture
def shop(fake_mcp: Fake) -> FakeServer:
    return fake_mcp(name="shop", tools=TOOLS)


async def names(talk: Talk) -> list[str]:
    return [tool.name for tool in (await talk.client.list_tools()).tools]


def text_of(result: t.CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, t.TextContent)
    return part.text


@TRANSPORTS
@MODES
async def test_it_is_offered_and_runs_what_reads(
    shop: FakeServer, tmp_path: Path, transport: str, mode: str
) -> None:
    others = {"shop": {**shop.config, "pin": ["list_*"]}}
    async with talking(tmp_path, transport, mode, others=others, expose=SPLIT) as talk:
        async with asyncio.timeout(PATIENCE):
            while await names(talk) != [*META, READ, "shop__list_orders"]:
                pass
        if mode == "legacy":  # pinned to a version, it asks nobody who they are
            assert "execute_tool (execute_read_tool if it is read-only)" in (talk.client.instructions or "")
        found = text_of(await talk.client.call_tool("search_tools", {"query": "orders"})).splitlines()
        assert "shop__list_orders: List orders [] read-only" in found
        assert "shop__cancel_order: Cancel an order []" in found
        assert not (await talk.client.call_tool(READ, {"name": "shop__list_orders"})).is_error
        refused = await talk.client.call_tool(READ, {"name": "shop__cancel_order"})
        assert refused.is_error
        assert "Call it with execute_tool." in text_of(refused)
        assert not (await talk.call("shop__cancel_order")).is_error
    assert [call["name"] for call in shop.record.calls()] == ["list_orders", "cancel_order"]


@TRANSPORTS
@MODES
async def test_an_edit_begins_and_ends_it(
    shop: FakeServer, tmp_path: Path, transport: str, mode: str
) -> None:
    """Clients hear of it, as of any other change of the list."""
    async with talking(tmp_path, transport, mode, shop) as talk:
        await talk.call("shop__list_orders")
        async with hearing(talk, mode) as heard:
            for expose, more in ((SPLIT, [READ]), ("meta", []), ({"mode": "meta", **SPLIT}, [READ])):
                heard.clear()
                write_config(tmp_path, shop, expose=expose)
                await comes(lambda: "tools" in heard, talk.news)
                assert await names(talk) == [*META, *more]
                if more:
                    assert not (await talk.client.call_tool(READ, {"name": "shop__list_orders"})).is_error
                else:
                    with pytest.raises(MCPError, match=f"There is no tool '{READ}'"):
                        await talk.client.call_tool(READ, {"name": "shop__list_orders"})


@asynccontextmanager
async def hearing(talk: Talk, mode: str) -> AsyncIterator[list[str]]:
    """Has "tools" each time that the client hears that the list of tools has changed."""
    heard: list[str] = []

    async def listen(message: object) -> None:
        if isinstance(message, t.ToolListChangedNotification):
            heard.append("tools")

    if mode == "legacy":
        talk.on_message = listen
        yield heard
        return
    async with talk.client.listen(tools_list_changed=True) as events:

        async def take() -> None:
            async for _ in events:
                heard.append("tools")
                talk.news.set()

        taking = asyncio.create_task(take())
        yield heard
        taking.cancel()


def opened(client: Client, modern: bool) -> tuple[list[str], bool]:
    """The names of the first list that a client gets, and whether the instructions have the new tool."""
    if modern:
        said = client.begin_modern().ask("server/discover")
    else:
        said = client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        client.tell("notifications/initialized")
    tools = client.ask("tools/list").result["tools"]
    return [tool["name"] for tool in tools], READ in said.result["instructions"]


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_the_first_answers_are_those_of_the_config_as_it_is(
    shop: FakeServer, tmp_path: Path, modern: bool
) -> None:
    """What was kept of another config is not used, in either direction."""
    kept = tmp_path / "cache" / "config.json.handshake.json"
    for expose in (None, SPLIT, SPLIT, "meta", {"mode": "meta", **SPLIT}):
        write_config(tmp_path, shop, expose=expose)
        split = isinstance(expose, dict)
        with serving(tmp_path, begin=False) as client:
            assert opened(client, modern) == ([*META, *([READ] if split else [])], split)
            client.finds("cancel an order", "shop__cancel_order")
        assert (READ.encode() in kept.read_bytes()) == split


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_the_daemon_greets_with_the_config_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modern: bool
) -> None:
    with daemon_home(tmp_path, monkeypatch, up={"risk": {"say": "reads"}}) as home:
        plain = json.loads(home.config.read_bytes())
        with home.serving(begin=False) as first:
            assert opened(first, modern) == (META, False)
            home.config.write_text(json.dumps({**plain, "expose": SPLIT}))
            until(lambda: "execute_read_tool" in first.ask("tools/list").raw_result.decode())
            with home.serving(begin=False) as client:
                assert opened(client, modern) == ([*META, READ], True)
                assert "] read-only" in client.finds("say", "up__say").splitlines()[0]
                assert not client.use(READ, name="up__say", arguments={"what": "x"}).failed
                assert client.use(READ, name="up__wait").failed
                home.config.write_text(json.dumps(plain))
                until(lambda: "execute_read_tool" not in client.ask("tools/list").raw_result.decode())
                assert "There is no tool" in client.use(READ, name="up__say").error["message"]
            assert not first.execute("up__say", {"what": "x"}).failed
        assert "wait" not in (home.log.read_text())
