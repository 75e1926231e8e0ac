"""How tools are shown: meta-tools, pinned tools beside them, all tools, or one server's as they are."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, serving, until, write_config
from helpers.sdk_client import PATIENCE, Talk, client_at, serving_http, talking
from mcp import MCPError
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

META = ["search_tools", "describe_tool", "execute_tool"]
PAY: Json = {
    "name": "pay",
    "description": "Pay an invoice.",
    "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}, "x-own": [1.0]},
    "x-unknown": {"kept": True},
    "result": {"text": "paid {id}", "fill": True},
}
BARE = '{"name":"bare tool.","inputSchema":{}}'

EVERYWHERE = pytest.mark.parametrize("transport", ["stdio", "http"])
MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


async def shown(talk: Talk) -> list[str]:
    """The names of every page."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await talk.client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return names


async def all_shown(talk: Talk, count: int) -> list[str]:
    """The names of every page once there are so many: a list waits five seconds for servers that it doesn't
    know, and then shows what it has."""
    async with asyncio.timeout(PATIENCE):
        while len(names := await shown(talk)) < count:
            pass
    return names


def answer(result: object) -> str:
    (part,) = result.content  # type: ignore[attr-defined]
    return part.text


@EVERYWHERE
@MODES
async def test_pinned_tools_stand_beside_the_meta_tools_and_are_called_by_their_own_name(
    fake_mcp: Fake, tmp_path: Path, transport: str, mode: str
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY, "refund", "rest"])
    bank = fake_mcp(name="bank", tools=["transfer"])
    config = {"shop": {**shop.config, "pin": ["pay", "re*nd"]}, "bank": {**bank.config, "pin": True}}
    for _ in ("at first, when nothing is known", "and from what was kept"):
        async with talking(tmp_path, transport, mode, others=config) as talk:
            names = [*META, "bank__transfer", "shop__pay", "shop__refund"]
            assert await all_shown(talk, len(names)) == names
            assert answer(await talk.client.call_tool("shop__pay", {"id": 7})) == "paid 7"
            assert await talk.text("shop__pay", {"id": 8}) == "paid 8"
            assert answer(await talk.client.call_tool("bank__transfer", {"to": "me"})) == '{"to":"me"}'
            with pytest.raises(MCPError, match="execute_tool with name 'shop__rest'"):
                await talk.client.call_tool("shop__rest", {})
    assert [call["arguments"] for call in shop.record.calls("pay")] == [{"id": 7}, {"id": 8}] * 2


@EVERYWHERE
@MODES
async def test_direct_shows_all_tools_namespaced_and_no_others(
    fake_mcp: Fake, tmp_path: Path, transport: str, mode: str
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY, {"raw": BARE}])
    bank = fake_mcp(name="bank", tools=["transfer"], transport="http")
    async with talking(tmp_path, transport, mode, shop, bank, expose="direct") as talk:
        transfer, bare, pay = await all_shown(talk, 3)
        assert (transfer, pay) == ("bank__transfer", "shop__pay")
        assert bare.startswith("shop__bare_tool")  # what hosts refuse in a name is replaced
        assert answer(await talk.client.call_tool(bare, {})) == "{}"
        assert answer(await talk.client.call_tool("shop__pay", {"id": 7})) == "paid 7"
        for unknown in ("search_tools", "shop__nothing"):
            with pytest.raises(MCPError, match="There is no tool"):
                await talk.client.call_tool(unknown, {})


@MODES
async def test_a_thousand_tools_come_in_pages_that_fit(fake_mcp: Fake, tmp_path: Path, mode: str) -> None:
    big = fake_mcp(name="big", generate={"count": 1500, "description": 600}, tools=[])
    async with talking(tmp_path, "http", mode, big, expose="direct") as talk:
        names = await all_shown(talk, 1500)
        assert (await talk.client.list_tools()).next_cursor is not None
        assert len(names) == len(set(names)) == 1500
        assert names == sorted(names)


def test_a_tool_that_is_shown_is_what_its_server_said_byte_for_byte(fake_mcp: Fake, tmp_path: Path) -> None:
    raw = '{"z":1.0,"name":"odd","inputSchema":{"type":"object","a":1e2},"description":"\\u00e4 ä","x":[ 1 ]}'
    shop = fake_mcp(name="shop", tools=[{"raw": raw}])
    with serving(tmp_path, shop, expose="direct") as client:
        named = raw.replace('"name":"odd"', '"name":"shop__odd"')
        assert client.ask("tools/list").raw_result == f'{{"tools":[{named}]}}'.encode()
    with serving(tmp_path, shop, expose="transparent") as client:
        assert client.ask("tools/list").raw_result == f'{{"tools":[{raw}]}}'.encode()


@MODES
async def test_two_clients_are_shown_the_same(fake_mcp: Fake, tmp_path: Path, mode: str) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    config = write_config(tmp_path, others={"shop": {**shop.config, "pin": True}})
    async with serving_http(config) as url, client_at(url, "legacy") as one, client_at(url, mode) as two:
        assert await asyncio.gather(shown(one), shown(two)) == [[*META, "shop__pay"]] * 2


def test_a_pin_that_shows_nothing_is_told(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=["send_message", "rest"])
    config = {**shop.config, "pin": ["send_mesage", "r*", "nothing_like_it*"]}
    with serving(tmp_path, others={"shop": config}) as client:
        until(lambda: "2 tools" in client.status())
        status = client.status()
    assert "pin: it shows no tool 'send_mesage'; the nearest is 'send_message'." in status
    assert "pin: it shows no tool 'nothing_like_it*'." in status
    assert "'r*'" not in status
