"""What takes as long as a server likes is not done on the event loop, where everybody else waits.

One `search_tools` that found a tool with a hostile schema once made a call to another server wait for 11 s.
"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, executed, proxy_of, said_by, text_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.catalog import catalog as catalogs
from mcpzip.model import signature
from mcpzip.model.errors import UnknownToolError
from mcpzip.proxy import argument_repair, handlers, name_resolution, shown_tools, views
from mcpzip.search import searcher

Fake = Callable[..., FakeServer]

BOMB: Json = {
    "name": "explode",
    "description": "Explode the whole thing",
    "inputSchema": {
        "type": "object",
        "properties": {f"p{number}": {"$ref": "#/$defs/e"} for number in range(900)},
        "$defs": {"e": {"enum": [f"value-{number}" for number in range(20_000)]}},
    },
}


class Threads:
    """Notes in which threads a function runs."""

    def __init__(self, patch: pytest.MonkeyPatch, place: object, name: str) -> None:
        self.names: list[str] = []
        original = getattr(place, name)

        def noted(*given: object, **named: object) -> object:
            self.names.append(threading.current_thread().name)
            return original(*given, **named)

        patch.setattr(place, name, noted)

    @property
    def all_aside(self) -> bool:
        return bool(self.names) and threading.current_thread().name not in self.names


async def test_no_tool_is_read_searched_shown_or_described_on_the_loop(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = monkeypatch
    shop = fake_mcp(name="shop", tools=[BOMB])
    parsed = Threads(patch, catalogs, "_parsed")
    async with proxy_of(tmp_path, shop, trust="open") as proxy:  # else such a tool is held
        assert parsed.all_aside
        searched = Threads(patch, searcher.Searcher, "search")
        read = Threads(patch, signature, "SchemaReader")
        found = await said_by(proxy, "search_tools", {"query": "explode the whole thing"})
        assert "shop__explode" in text_of(found)
        assert searched.all_aside
        assert read.all_aside

        described = Threads(patch, handlers, "described")
        assert "value-19999" in text_of(await said_by(proxy, "describe_tool", {"name": "shop__explode"}))
        assert described.all_aside

        spelt = Threads(patch, argument_repair, "_spelling")
        await executed(proxy, "shop__explode", {"P1": "value-1"})
        assert spelt.all_aside


async def test_a_name_that_is_not_there_is_compared_off_the_loop(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fake_mcp(name="shop", tools=["pay_bills", "refund"])
    async with proxy_of(tmp_path, shop, trust="open") as proxy:  # else such a tool is held
        mended = Threads(monkeypatch, name_resolution, "repair_name")
        assert "There is no tool" in text_of(await executed(proxy, "shop__refnd_all"))
        assert mended.all_aside


async def test_a_call_that_needs_nothing_read_starts_no_thread(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    async with proxy_of(tmp_path, shop, trust="open") as proxy:  # else such a tool is held
        await proxy.searcher()
        await executed(proxy, "shop__pay")
        for module in (handlers, name_resolution, shown_tools, views):
            monkeypatch.setattr(module, "run_in_worker", None)  # it would be called
        assert "isError" not in await executed(proxy, "shop__pay", {"id": 1})


@pytest.mark.parametrize("expose", ["meta", "direct"])
async def test_a_long_name_is_refused_and_not_repeated_whole(
    fake_mcp: Fake, tmp_path: Path, expose: str
) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    long = "発" * 300_000
    async with proxy_of(tmp_path, shop, expose=expose) as proxy:
        with pytest.raises(UnknownToolError) as refused:
            await said_by(proxy, long, {})
        assert len(str(refused.value)) < 500
        if expose == "meta":
            for ours in ("execute_tool", "describe_tool"):
                result = await said_by(proxy, ours, {"name": f"shop__{long}"})
                assert result["isError"]
                assert len(text_of(result)) < 500
            found = await said_by(proxy, "search_tools", {"query": "pay", "server": long})
            assert len(text_of(found)) < 2_000
    assert shop.record.calls() == []


async def test_many_tools_with_hostile_schemas_are_found_while_another_server_answers(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bombs = [{**BOMB, "name": f"explode_{number}"} for number in range(3)]
    evil = fake_mcp(name="evil", tools=bombs)
    shop = fake_mcp(name="shop", tools=["pay"])
    let_go = threading.Event()
    original = signature.SchemaReader

    def held(*given: object) -> object:
        assert let_go.wait(30)  # as one that reads for very long would
        return original(*given)

    async with proxy_of(tmp_path, evil, shop, trust="open") as proxy:
        monkeypatch.setattr(signature, "SchemaReader", held)
        search = asyncio.create_task(said_by(proxy, "search_tools", {"query": "explode the whole thing"}))
        await asyncio.sleep(0)
        assert "isError" not in await executed(proxy, "shop__pay")
        assert not search.done()
        let_go.set()
        assert "evil__explode_0" in text_of(await search)
