"""The proxy with an edited config: what changes, and what goes on undisturbed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import Bridge, bridged, upstream
from helpers.driver import (
    LEGACY_SCRIPT,
    comes_true,
    config_of,
    executed,
    proxy_of,
    said_by,
    scripted,
    text_of,
)
from mcpzip_fakes.launch import FakeServer

from mcpzip.catalog import Listed
from mcpzip.proxy.proxy import Proxy
from mcpzip.transport import pool as pools

Fake = Callable[..., FakeServer]
URI = "plan://ask"


def edit(proxy: Proxy, folder: Path, *fakes: FakeServer, **keys: Any) -> str:
    """Writes the config and has it used; what has changed."""
    return proxy.reconfigure(config_of(folder, *fakes, **keys)).summary


def starts(fake: FakeServer) -> int:
    return len(fake.record.events("start"))


async def status(proxy: Proxy) -> str:
    return text_of(await said_by(proxy, "proxy_status", {}))


async def found(proxy: Proxy, query: str) -> str:
    return text_of(await said_by(proxy, "search_tools", {"query": query}))


@asynccontextmanager
async def open_call(proxy: Proxy, shop: FakeServer, tool: str) -> AsyncIterator["asyncio.Task[Any]"]:
    """A call that has reached its server."""
    before = len(shop.record.calls(tool))
    call = asyncio.create_task(executed(proxy, f"{shop.name}__{tool}"))
    await comes_true(lambda: len(shop.record.calls(tool)) > before)
    yield call
    if not call.done():
        call.cancel()


async def test_a_server_comes_and_goes(fake_mcp: Fake, tmp_path: Path) -> None:
    shop, bank = fake_mcp(name="shop", tools=["pay"]), fake_mcp(name="bank", tools=["transfer"])
    async with proxy_of(tmp_path, shop) as proxy:
        await executed(proxy, "shop__pay")
        assert edit(proxy, tmp_path, shop, bank) == "added bank"
        assert "bank__transfer" in await found(proxy, "transfer")
        await executed(proxy, "bank__transfer")
        assert edit(proxy, tmp_path, shop) == "removed bank"
        assert "bank" not in await found(proxy, "transfer")
        assert "bank" not in await status(proxy)
        gone = await executed(proxy, "bank__transfer")
        assert gone["isError"]
        await comes_true(lambda: bank.record.events("exit"))
        await executed(proxy, "shop__pay")
        assert (starts(shop), starts(bank)) == (1, 1)


async def test_a_changed_server_is_started_again_and_no_other(fake_mcp: Fake, tmp_path: Path) -> None:
    old, bank = fake_mcp(name="shop", tools=["pay"]), fake_mcp(name="bank", tools=["transfer"])
    new = fake_mcp(name="shop", tools=["refund"])
    async with proxy_of(tmp_path, old, bank) as proxy:
        assert edit(proxy, tmp_path, new, bank) == "changed shop"
        await comes_true(lambda: "shop__refund" in {entry.name for entry in proxy.catalog.entries})
        assert not (await executed(proxy, "shop__refund")).get("isError")
        assert (await executed(proxy, "shop__pay"))["isError"]
        await comes_true(lambda: old.record.events("exit"))
        assert (starts(old), starts(new), starts(bank)) == (1, 1, 1)


async def test_an_open_call_ends_on_the_connection_that_it_began_on(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy()
        call = wire.send_call([["await", str(go)]])
        await bridge.gets("tools/call")
        config = {**upstream(tmp_path, "up", "legacy"), "env": {"OTHER": "1"}}
        assert edit(bridge.proxy, tmp_path, others={"up": config}, expose="direct") == "changed up"
        before = bridge.starts()
        assert "result" in await wire.call([])  # on the new connection
        assert bridge.starts() > before
        await comes_true(lambda: len(bridge.proxy._pool._closing) == 1)
        go.touch()
        assert "result" in await wire.answer(call)
        await comes_true(lambda: not bridge.proxy._pool._closing)
        assert "result" in await wire.call([])


async def test_an_open_call_to_a_removed_server_ends_first(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with bridged(tmp_path, "legacy", "modern") as bridge:
        wire = bridge.modern()
        call = wire.send_call([["await", str(go)]])
        await bridge.gets("tools/call")
        edit(bridge.proxy, tmp_path, others={"up2": upstream(tmp_path, "up2", "modern")}, expose="direct")
        await comes_true(lambda: len(bridge.proxy._pool._closing) == 1)
        go.touch()
        assert "result" in await wire.answer(call)
        await comes_true(lambda: not bridge.proxy._pool._closing)


async def test_an_open_call_has_so_much_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "DRAIN_TIMEOUT", 0.05)
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy()
        call = wire.send_call([["hang"]])
        await bridge.gets("tools/call")
        edit(bridge.proxy, tmp_path, expose="direct")
        answer = await wire.answer(call)
        assert answer["result"]["isError"]
        assert "may have run" in answer["result"]["content"][0]["text"]


async def test_a_call_that_waits_for_a_start_goes_to_the_new_command(fake_mcp: Fake, tmp_path: Path) -> None:
    """The old command never answers."""
    shop = fake_mcp(name="shop", tools=["pay"])
    async with proxy_of(tmp_path, shop):
        pass
    hanging = {"command": "python3", "args": ["-c", "import time; time.sleep(1000)"]}
    async with proxy_of(tmp_path, listed=False, others={"shop": hanging}) as proxy:
        call = asyncio.create_task(executed(proxy, "shop__pay"))
        await comes_true(lambda: proxy._pool.health("shop").state == "connecting")
        edit(proxy, tmp_path, shop)
        assert not (await call).get("isError")


async def test_a_changed_process_starts_when_the_one_before_has_ended(tmp_path: Path) -> None:
    """Both want the same lock."""
    lock = tmp_path / "lock"
    before = f"""
import atexit, os
os.close(os.open({str(lock)!r}, os.O_CREAT | os.O_EXCL))
atexit.register(os.unlink, {str(lock)!r})
"""
    one, other = (scripted(LEGACY_SCRIPT, before + f"number = {number}") for number in (1, 2))
    async with proxy_of(tmp_path, others={"shop": one}) as proxy:
        (first,) = proxy._pool._states["shop"].connections()
        edit(proxy, tmp_path, others={"shop": other})
        (update,) = await proxy.refresh(["shop"])
        assert isinstance(update, Listed), update
        (second,) = proxy._pool._states["shop"].connections()
        assert second is not first


async def test_a_disabled_server_is_ended_and_comes_back(fake_mcp: Fake, tmp_path: Path) -> None:
    shop, bank = fake_mcp(name="shop", tools=["pay"]), fake_mcp(name="bank", tools=["transfer"])
    off = {"bank": {**bank.config, "disabled": True}}
    async with proxy_of(tmp_path, shop, bank) as proxy:
        edit(proxy, tmp_path, shop, others=off)
        assert "bank: disabled" in await status(proxy)
        assert "bank" not in await found(proxy, "transfer")
        assert (await executed(proxy, "bank__transfer"))["isError"]
        await comes_true(lambda: bank.record.events("exit"))
        edit(proxy, tmp_path, shop, bank)
        assert not (await executed(proxy, "bank__transfer")).get("isError")
        assert (starts(shop), starts(bank)) == (1, 2)


async def test_a_mistake_in_an_entry_is_made_and_mended(fake_mcp: Fake, tmp_path: Path) -> None:
    shop, bank = fake_mcp(name="shop", tools=["pay"]), fake_mcp(name="bank", tools=["transfer"])
    async with proxy_of(tmp_path, shop, bank) as proxy:
        edit(proxy, tmp_path, shop, others={"bank": {"command": 7}})
        await comes_true(lambda: "command: found a number" in (proxy.catalog.servers["bank"].error or ""))
        assert "; command: found a number" in await status(proxy)
        assert (await executed(proxy, "bank__transfer"))["isError"]
        edit(proxy, tmp_path, shop, bank)
        assert not (await executed(proxy, "bank__transfer")).get("isError")
        await comes_true(lambda: not proxy.catalog.servers["bank"].stale)
        assert (starts(shop), starts(bank)) == (1, 2)


async def test_settings_that_concern_no_connection_start_nothing(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=["pay", "refund"])
    async with proxy_of(tmp_path, shop) as proxy:
        hidden = {"shop": {**shop.config, "tools": {"deny": ["refund"]}, "pin": True}}
        assert edit(proxy, tmp_path, others=hidden, search={"default_limit": 9}) == (
            "changed shop, search.default_limit"
        )
        assert (await executed(proxy, "shop__refund"))["isError"]
        tools = proxy.exposure.tools_page()
        assert b'"shop__pay"' in tools
        edit(proxy, tmp_path, shop)
        assert not (await executed(proxy, "shop__refund")).get("isError")
        assert starts(shop) == 1


async def test_a_timeout_is_that_of_the_config_in_use(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy()
        config = {**upstream(tmp_path, "up", "legacy"), "timeout": 0.05}
        edit(bridge.proxy, tmp_path, others={"up": config}, expose="direct")
        answer = await wire.call([["hang"]])
        assert "within 0.05 s" in answer["result"]["content"][0]["text"]


async def test_clients_hear_of_the_lists_that_changed_for_them(tmp_path: Path) -> None:
    two = {name: upstream(tmp_path, name, "legacy") for name in ("up", "up2")}
    async with bridged(tmp_path, "legacy", expose="meta") as bridge:
        wire = await bridge.legacy()

        def heard() -> list[str]:
            return [
                one["method"].split("/")[1] for one in wire.heard if "/list_changed" in one.get("method", "")
            ]

        edit(bridge.proxy, tmp_path, others=two)
        await comes_true(lambda: {*heard()} == {"prompts", "resources"})
        servers = lambda: bridge.proxy.catalog.servers.values()  # noqa: E731
        await comes_true(lambda: [bool(one.resources) for one in servers()] == [True, True])
        wire.heard.clear()
        edit(bridge.proxy, tmp_path, others=two, idle_timeout_minutes=9)
        edit(bridge.proxy, tmp_path, others={**two, "up2": {**two["up2"], "boost": 2}})
        assert heard() == []
        edit(bridge.proxy, tmp_path, others=two, search={"default_limit": 9})
        assert heard() == ["tools"]
        wire.heard.clear()
        edit(bridge.proxy, tmp_path, others={"up": two["up"]}, search={"default_limit": 9})
        assert sorted(heard()) == ["prompts", "resources"]
        wire.heard.clear()
        edit(bridge.proxy, tmp_path, others={"up": two["up"]}, expose="direct")
        assert heard() == ["tools"]


async def test_resources_are_watched_on_the_new_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "REOPEN", 0.01)
    async with bridged(tmp_path) as bridge:
        shared, own = await bridge.legacy(), await bridge.legacy(sampling={})
        for wire in (shared, own):
            await wire.ask("resources/subscribe", {"uri": f"mcpzip://up/{URI}"})
        assert len(bridge.got("resources/subscribe")) == 2
        config = {**upstream(tmp_path, "up", "legacy"), "env": {"OTHER": "1"}}
        edit(bridge.proxy, tmp_path, others={"up": config}, expose="direct")
        assert await bridge.gets("resources/subscribe", 4) == [{"uri": URI}] * 4


async def test_an_untouched_server_keeps_its_connections_and_watchers(tmp_path: Path) -> None:
    async with bridged(tmp_path, "legacy", "modern") as bridge:
        wire = await bridge.legacy(sampling={})
        await wire.ask("resources/subscribe", {"uri": f"mcpzip://up/{URI}"})
        await wire.call([], "up2__run")
        await comes_true(lambda: not bridge.proxy.has_unlisted_servers)
        # The last that up2 gets: its second connection withdraws the subscription it opened.
        await bridge.gets("notifications/cancelled", name="up2")
        before = connections(bridge)
        requests = len(bridge.lines("up")) + len(bridge.lines("up2"))
        two = {name: upstream(tmp_path, name, era) for name, era in (("up", "legacy"), ("up2", "modern"))}
        for turn in range(20):
            other = {"other": {"command": f"no-such-command-{turn}"}} if turn % 2 else {}
            edit(bridge.proxy, tmp_path, others={**two, **other}, expose="direct")
        assert connections(bridge) == before
        assert len(bridge.lines("up")) + len(bridge.lines("up2")) == requests


def connections(bridge: Bridge) -> list[object]:
    states = bridge.proxy._pool._states
    return [one for name in ("up", "up2") for one in states[name].connections()]


async def test_a_server_that_lacks_a_variable_is_not_changed_by_the_edit_of_another(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reason, that it was listed where the variable is set, follows from the catalog."""
    monkeypatch.setenv("MCPZIP_TEST_VARIABLE", "x")
    shop, bank = fake_mcp(name="shop", tools=["pay"]), fake_mcp(name="bank", tools=["transfer"])
    others = {"shop": {**shop.config, "env": {**shop.env, "X": "${MCPZIP_TEST_VARIABLE}"}}}
    async with proxy_of(tmp_path, others=others) as proxy:
        pass
    monkeypatch.delenv("MCPZIP_TEST_VARIABLE")
    async with proxy_of(tmp_path, listed=False, others=others) as proxy:
        said = "${MCPZIP_TEST_VARIABLE} is not set here; it was when its tools were listed"
        assert said in await status(proxy)
        assert edit(proxy, tmp_path, bank, others=others) == "added bank"
        assert said in await status(proxy)


async def test_what_waits_for_a_start_is_in_the_status(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    async with proxy_of(tmp_path, shop) as proxy:
        edit(proxy, tmp_path, shop, search={"semantic": "off"})
        assert "config: search.semantic changed: takes effect when mcpzip is started again." in await status(
            proxy
        )
        edit(proxy, tmp_path, shop)
        assert "config:" not in await status(proxy)


async def test_a_transparent_server_is_changed(tmp_path: Path) -> None:
    async with bridged(tmp_path, expose="transparent") as bridge:
        wire = await bridge.legacy()
        assert "result" in await wire.call([], "run")
        before = bridge.starts()
        config = {**upstream(tmp_path, "up", "legacy"), "env": {"OTHER": "1"}}
        edit(bridge.proxy, tmp_path, others={"up": config}, expose="transparent")
        await wire.hears(lambda one: one.get("method") == "notifications/tools/list_changed")
        assert "result" in await wire.call([], "run")
        assert bridge.starts() > before


async def test_uris_of_the_only_server_are_still_known_when_there_are_two(tmp_path: Path) -> None:
    link = {"content": [{"type": "resource_link", "uri": URI, "name": "plan"}]}
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy()
        await wire.call([["result", link]])
        two = {name: upstream(tmp_path, name, "legacy") for name in ("up", "up2")}
        edit(bridge.proxy, tmp_path, others=two, expose="direct")
        await comes_true(lambda: bridge.proxy.catalog.servers.get("up2"))
        read = wire.send("resources/read", {"uri": URI})
        await bridge.gets("resources/read")
        assert bridge.got("resources/read", "up2") == []
        wire.cancel(read)
