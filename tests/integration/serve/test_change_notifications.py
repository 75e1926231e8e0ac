"""What changes upstream is heard of downstream, within a second, by those who can hear it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import mcp_types as t
import pytest
from helpers.driver import few_listings, write_config
from helpers.sdk_client import PATIENCE, Talk, client_at, comes, serving_http, talking
from mcpzip_fakes.launch import FakeServer

from mcpzip.proxy.first_listings import FIRST_LISTING

Fake = Callable[..., FakeServer]

TOOLS = [
    {"name": "change", "result": {"text": "changed", "changes": ["tools", "prompts", "resources"]}},
    {"name": "update", "result": {"text": "updated", "updates": ["memo://today"]}},
    {"name": "new", "late": True},
]
PROMPTS = [{"name": "old"}, {"name": "fresh", "late": True}]
RESOURCES = [
    {"uri": "memo://today", "name": "today", "text": "Now."},
    {"uri": "memo://later", "name": "later", "text": "Then.", "late": True},
]
WAYS = (("stdio", "http"), ("legacy", "2026-07-28"), ("stdio", "http"), ("legacy", "modern"))
COLUMNS = [
    pytest.param(*column, id="-".join(column).replace("2026-07-28", "modern"))
    for column in product(*WAYS)
    if sum(way.index(word) for way, word in zip(WAYS, column, strict=True)) % 2 == 0
]
"""Half of all columns, in which any three words that can stand together do."""


def changing(fake_mcp: Fake, transport: str, era: str, name: str = "shop") -> FakeServer:
    return fake_mcp(
        name=name, transport=transport, era=era, tools=TOOLS, prompts=PROMPTS, resources=RESOURCES
    )


@asynccontextmanager
async def hearing(talk: Talk, mode: str, *resources: str) -> AsyncIterator[set[str]]:
    """What the client hears of meanwhile: words for lists, URIs for resources."""
    heard: set[str] = set()
    if mode == "legacy":
        for uri in resources:
            await talk.client.subscribe_resource(uri)

        async def listen(message: object) -> None:
            match message:
                case t.ToolListChangedNotification():
                    heard.add("tools")
                case t.PromptListChangedNotification():
                    heard.add("prompts")
                case t.ResourceListChangedNotification():
                    heard.add("resources")
                case t.ResourceUpdatedNotification(params=params):
                    heard.add(params.uri)
            talk.news.set()

        talk.on_message = listen
        yield heard
        return
    async with talk.client.listen(
        tools_list_changed=True,
        prompts_list_changed=True,
        resources_list_changed=True,
        resource_subscriptions=list(resources) or None,
    ) as events:

        async def take() -> None:
            async for event in events:
                name = type(event).__name__
                heard.add(getattr(event, "uri", "") or name.removesuffix("ListChanged").lower())
                talk.news.set()

        taking = asyncio.create_task(take())
        try:
            yield heard
        finally:
            taking.cancel()


@pytest.mark.parametrize(("transport", "mode", "upstream", "era"), COLUMNS)
async def test_lists_that_change_and_resources_that_are_watched(
    fake_mcp: Fake, tmp_path: Path, transport: str, mode: str, upstream: str, era: str
) -> None:
    shop = changing(fake_mcp, upstream, era)
    begun = time.monotonic()  # the five seconds count from the start of its listing
    async with talking(tmp_path, transport, mode, shop, expose="direct") as talk:
        at_first = (["shop__change", "shop__update"], ["shop__old"], ["today"])
        async with asyncio.timeout(PATIENCE):
            while await names(talk) != at_first:
                # What isn't listed by then is left out until it is; no sooner.
                assert time.monotonic() - begun >= FIRST_LISTING
        async with hearing(talk, mode, "mcpzip://shop/memo://today") as heard:
            await talk.client.call_tool("shop__change", {})
            async with asyncio.timeout(PATIENCE):  # a second is meant, and machines are shared
                await comes(lambda: {"tools", "prompts", "resources"} <= heard, talk.news)
            assert await names(talk) == (
                ["shop__change", "shop__new", "shop__update"],
                ["shop__fresh", "shop__old"],
                ["later", "today"],
            )
            await talk.client.call_tool("shop__update", {})
            await comes(lambda: "mcpzip://shop/memo://today" in heard, talk.news)


async def tools(talk: Talk) -> list[str]:
    return [tool.name for tool in (await talk.client.list_tools()).tools]


async def names(talk: Talk) -> tuple[list[str], list[str], list[str]]:
    client = talk.client
    return (
        await tools(talk),
        [prompt.name for prompt in (await client.list_prompts()).prompts],
        [resource.name for resource in (await client.list_resources()).resources],
    )


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_through_transparent_all_is_the_upstreams_own(
    fake_mcp: Fake, tmp_path: Path, mode: str, era: str
) -> None:
    shop = changing(fake_mcp, "stdio", era)
    async with talking(tmp_path, "http", mode, shop, expose="transparent") as talk:
        assert await names(talk) == (["change", "update"], ["old"], ["today"])
        async with hearing(talk, mode, "memo://today") as heard:
            await talk.client.call_tool("change", {})
            await comes(lambda: {"tools", "prompts", "resources"} <= heard, talk.news)
            await talk.client.call_tool("update", {})
            await comes(lambda: "memo://today" in heard, talk.news)
        (read,) = (await talk.client.read_resource("memo://today")).contents
        assert read.uri == "memo://today"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_only_who_watches_a_resource_hears_of_it(fake_mcp: Fake, tmp_path: Path, era: str) -> None:
    shop = changing(fake_mcp, "stdio", era)
    uri = "mcpzip://shop/memo://today"
    async with (
        serving_http(write_config(tmp_path, shop)) as url,
        client_at(url, "legacy") as watcher,
        client_at(url, "legacy") as other,
    ):
        async with asyncio.timeout(PATIENCE):  # the lists change when those of the server become known
            while (await names(watcher))[1:] != (["shop__old"], ["today"]):
                pass
        async with hearing(watcher, "legacy", uri) as heard, hearing(other, "legacy", uri) as overheard:
            await watcher.call("shop__update")
            await comes(lambda: uri in heard, watcher.news)
            if era == "modern":  # one of a legacy server tells the client it was started for
                await comes(lambda: uri in overheard, other.news)
            await other.client.unsubscribe_resource(uri)
            heard.clear()
            overheard.clear()
            await watcher.call("shop__update")
            await comes(lambda: uri in heard, watcher.news)
            await other.client.list_tools()  # whatever was under way to it has come
            assert overheard == set()


async def test_a_storm_of_changes_costs_few_listings(fake_mcp: Fake, tmp_path: Path) -> None:
    storm = {"kind": "list-changed", "tool": "change", "count": 200}
    shop = fake_mcp(
        name="shop", era="legacy", tools=[{"name": "change"}], changed_tools=["new"], faults=[storm]
    )
    async with talking(tmp_path, "stdio", "legacy", shop, expose="direct") as talk:
        async with asyncio.timeout(PATIENCE):
            while await tools(talk) != ["shop__change"]:
                pass
        async with hearing(talk, "legacy") as heard:
            await talk.client.call_tool("shop__change", {})
            await comes(lambda: "tools" in heard, talk.news)
            async with asyncio.timeout(PATIENCE):
                while await tools(talk) != ["shop__new"]:
                    pass
        assert few_listings(shop)
