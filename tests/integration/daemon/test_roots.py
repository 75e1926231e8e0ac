"""Agents with and without roots at one daemon: the processes of a server, and what each is told."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.daemons import Home, daemon_home
from helpers.driver import environment
from mcpzip_fakes import Client, FakeServer, Pending
from mcpzip_fakes.pytest_plugin import many_clients as many_clients

Start = Callable[..., Pending[list[Client]]]
CHANGED = "notifications/roots/list_changed"


@pytest.fixture
def shop(fake_mcp: Callable[..., FakeServer]) -> FakeServer:
    return fake_mcp("shared", era="legacy")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: FakeServer) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch, others={"shop": shop.config}) as home:
        yield home


async def agents(home: Home, many_clients: Start, *roots: str | None) -> list[Client]:
    """An agent for each: its root, None for one without roots."""
    command = [sys.executable, "-m", "mcpzip", "serve", "--config", str(home.config)]
    declared = [{} if root is None else {"roots": [f"file:///{root}"]} for root in roots]
    return await many_clients(command, declared, env=environment())


async def call(agent: Client, tool: str) -> str:
    reply = await agent.call("execute_tool", {"name": f"shop__{tool}", "arguments": {"word": "x"}})
    return reply.text


async def where(agent: Client) -> object:
    """The root that the server is told in a call of ``agent``, or what it says of it."""
    text = await call(agent, "where")
    return json.loads(text)["roots"][0]["uri"].removeprefix("file:///") if text.startswith("{") else text


def processes(shop: FakeServer, tool: str) -> set[int | None]:
    """Those in which the tool was called."""
    return {line.pid for line in shop.record.received("tools/call") if line.params.get("name") == tool}


async def test_agents_with_and_without_roots_share_a_server_that_does_not_ask(
    home: Home, shop: FakeServer, many_clients: Start
) -> None:
    four = await agents(home, many_clients, "a", "b", None, None)
    for agent in four:
        await call(agent, "say")
    assert len(processes(shop, "say")) == 1
    assert not any(agent.messages("roots/list") for agent in four)


async def test_a_server_that_asks_is_shared_by_those_with_equal_roots(
    home: Home, shop: FakeServer, many_clients: Start
) -> None:
    four = await agents(home, many_clients, "a", "a", "b", None)
    assert await where(four[0]) == "a"
    told = await asyncio.gather(*(where(agent) for agent in four))
    assert told[:3] == ["a", "a", "b"]
    assert told[3] == "this client does not offer roots"
    await asyncio.gather(*(call(agent, "say") for agent in four))
    assert len(processes(shop, "say")) == 3
    assert not four[3].messages("roots/list")
    for agent in four:
        await agent.disconnect()
    home.stop()
    again = await agents(home, many_clients, "a", "a", "b")  # the next daemon remembers it
    assert await asyncio.gather(*(where(agent) for agent in again)) == ["a", "a", "b"]
    assert all(len(agent.messages("roots/list")) == 1 for agent in again)


async def test_one_whose_roots_change_is_told_the_new_ones_and_no_other(
    home: Home, shop: FakeServer, many_clients: Start
) -> None:
    one, same, other = await agents(home, many_clients, "a", "a", "b")
    await where(one)
    assert [await where(agent) for agent in (one, same, other)] == ["a", "a", "b"]
    one.identity.roots[0] = "file:///c"  # type: ignore[index]
    one.notify(CHANGED)
    assert [await where(agent) for agent in (one, same, other)] == ["c", "a", "b"]
