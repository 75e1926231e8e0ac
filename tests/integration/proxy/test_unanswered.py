"""A server that never answered delays the first search of one start, not of every start."""

import asyncio
import json
from pathlib import Path

import pytest
from helpers.driver import LEGACY_SCRIPT, PATIENCE, Json, comes_true, proxy_of, said_by, scripted, text_of

from mcpzip.config import load
from mcpzip.proxy import first_listings
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.unanswered import UnansweredServers, forget_saved

SHOP = scripted(LEGACY_SCRIPT)
DEAD = scripted("")
FILE = "config.json.unanswered.json"


def stored(folder: Path) -> list[str]:
    path = folder / "cache" / FILE
    return sorted(json.loads(path.read_text())["servers"]) if path.exists() else []


async def search(proxy: Proxy, **more: object) -> str:
    return text_of(await said_by(proxy, "search_tools", {"query": "pay", **more}))


@pytest.fixture
async def waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a search has waited for ``dead`` in vain. From now on each would wait for ever."""
    monkeypatch.setattr(first_listings, "OTHERS_LISTING", 0.01)
    async with proxy_of(tmp_path, others={"shop": SHOP, "dead": DEAD}, listed=False) as proxy:
        await proxy.refresh(["shop"])
        proxy.start()
        assert "dead" in await search(proxy)
    assert stored(tmp_path) == ["dead"]
    monkeypatch.setattr(first_listings, "OTHERS_LISTING", 10 * PATIENCE)
    monkeypatch.setattr(first_listings, "FIRST_LISTING", 10 * PATIENCE)
    return tmp_path


async def waits(proxy: Proxy, **more: object) -> bool:
    """Whether a search does not end before the server's answer, which never comes."""
    searching = asyncio.create_task(search(proxy, **more))
    await comes_true(lambda: searching.done() or proxy._refresher.listing("dead") is not None)
    for _ in range(
        20
    ):  # of the event loop's turns, in which a search that waits for nothing begins to search
        await asyncio.sleep(0)
    is_waiting = (
        not searching.done() and proxy.statistics.searches == 1 and proxy._catalog_state._indexing is None
    )
    searching.cancel()
    await asyncio.wait({searching})
    return is_waiting


async def test_the_next_start_does_not_wait_and_says_that_it_has_not_answered(waited: Path) -> None:
    async with proxy_of(waited, others={"shop": SHOP, "dead": DEAD}, listed=False) as proxy:
        proxy.start()
        async with asyncio.timeout(PATIENCE):
            found = await search(proxy)
        assert "shop__pay" in found
        assert "still starting, their tools are not in this answer: dead" in found
        assert proxy._refresher.listing("dead") is not None, "it is not tried any more"


@pytest.mark.parametrize("change", ["its settings", "restart", "command", "damaged"])
async def test_it_is_waited_for_again_after_a_change(waited: Path, change: str) -> None:
    dead: Json = {**DEAD, "env": {"A": "1"}} if change == "its settings" else DEAD
    others = {"shop": SHOP, "dead": dead}
    if change == "command":
        forget_saved(load(str(waited / "config.json"), {}), ["shop", "dead"])
        assert stored(waited) == []
    if change == "damaged":
        (waited / "cache" / FILE).write_text("{")
    async with proxy_of(waited, others=others, listed=False) as proxy:
        proxy.start()
        if change == "restart":
            proxy.disconnect("dead", again=True)
        assert await waits(proxy)


async def test_it_is_waited_for_where_only_its_tools_are_wanted(waited: Path) -> None:
    async with proxy_of(waited, others={"shop": SHOP, "dead": DEAD}, listed=False) as proxy:
        proxy.start()
        assert await waits(proxy, server="dead")


async def test_an_answer_is_remembered_too(waited: Path) -> None:
    others = {"shop": SHOP, "dead": DEAD}
    async with proxy_of(waited, others=others, listed=False) as proxy:
        proxy._first_listings.answered("dead")
    assert stored(waited) == []


async def test_a_server_that_answers_in_time_is_not_stored(tmp_path: Path) -> None:
    async with proxy_of(tmp_path, others={"shop": SHOP}, listed=False) as proxy:
        proxy.start()
        assert "shop__pay" in await search(proxy)
    assert stored(tmp_path) == []


async def test_the_file_keeps_configured_servers_only(waited: Path) -> None:
    config = load(str(waited / "config.json"), {})
    unanswered = UnansweredServers(config)
    assert config.servers["dead"] in unanswered
    assert config.servers["shop"] not in unanswered
    unanswered.add(config.servers.values())
    unanswered.save({"shop": config.servers["shop"]})
    assert stored(waited) == ["shop"]
