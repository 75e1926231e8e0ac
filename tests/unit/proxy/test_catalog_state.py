"""An index that is behind answers with what is in it, and says what is not."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpzip.catalog import Catalog, Listed, View, catalog, merge, parts
from mcpzip.config import parse
from mcpzip.proxy import catalog_state as keeping
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.search import Searcher


def listed(server: str, count: int, at: float = 1.0) -> Listed:
    tools = (json.dumps({"name": f"tool_{n}", "description": f"Pay {server} {n}"}) for n in range(count))
    return Listed(server, tuple(tool.encode() for tool in tools), at=at)


def keeper_of(folder: Path, *servers: str, **more: object) -> CatalogState:
    config = {"mcpServers": {name: {"command": "x", **more} for name in servers}}
    path = folder / "config.json"
    return CatalogState(
        parse(json.dumps(config).encode(), str(path), {}), Catalog(), print, lambda which: None
    )


class Gate:
    """Indexing, which waits in its thread until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.began = threading.Event(), threading.Event()
        self.rounds: list[int] = []
        real = Searcher.index

        def index(searcher: Searcher, entries: tuple[object, ...], version: str, **more: object) -> bool:
            self.began.set()
            assert self.open.wait(20)
            self.rounds.append(len(entries) - 2)  # without our own tools
            return real(searcher, entries, version, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(Searcher, "index", index)


async def test_a_search_does_not_wait_for_an_index_that_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It chased the newest version of the catalog through five rounds: 32 s."""
    monkeypatch.setattr(keeping, "INDEX_WAIT", 0.01)
    gate = Gate(monkeypatch)
    catalog_state = keeper_of(tmp_path, "shop", "bank")
    gate.open.set()
    catalog_state.merge(listed("shop", 3))
    assert len(await catalog_state.searcher()) == 5
    assert catalog_state.unindexed() == []
    gate.open.clear()
    catalog_state.merge(listed("bank", 4))
    searcher = await catalog_state.searcher()  # with the round for bank under way for as long as we like
    assert len(searcher) == 5
    assert catalog_state.unindexed() == ["bank"]
    gate.open.set()
    await catalog_state.wait_until_indexed()
    assert len(await catalog_state.searcher()) == 9
    assert catalog_state.unindexed() == []
    await catalog_state.close()


async def test_a_search_waits_for_the_first_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was answered with no tool on a busy machine."""
    monkeypatch.setattr(keeping, "INDEX_WAIT", 0.0)
    gate = Gate(monkeypatch)
    gate.open.set()
    catalog_state = keeper_of(tmp_path, "shop", "bank")
    assert len(await catalog_state.searcher()) == 2  # our own tools
    gate.open.clear()
    gate.began.clear()
    catalog_state.merge(listed("shop", 3))
    searching = asyncio.create_task(catalog_state.searcher())
    assert await asyncio.to_thread(gate.began.wait, 20)
    assert not searching.done()
    gate.open.set()
    assert len(await searching) == 5
    await catalog_state.close()


async def test_a_search_does_not_wait_for_ever_for_the_first_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "FIRST_INDEX_WAIT", 0.01)
    gate = Gate(monkeypatch)
    gate.open.set()
    catalog_state = keeper_of(tmp_path, "shop")
    await catalog_state.searcher()
    gate.open.clear()
    catalog_state.merge(listed("shop", 3))
    assert len(await catalog_state.searcher()) == 2
    assert catalog_state.unindexed() == ["shop"]
    gate.open.set()
    await catalog_state.wait_until_indexed()
    await catalog_state.close()


async def test_servers_that_come_while_an_index_is_made_cost_one_round_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    names = [f"up{n}" for n in range(9)]
    catalog_state = keeper_of(tmp_path, *names)
    for name in names:
        catalog_state.merge(listed(name, 2))
        catalog_state.start_indexing()
        await asyncio.sleep(0)
    gate.open.set()
    await catalog_state.wait_until_indexed()
    assert gate.rounds == [2, 18]
    await catalog_state.close()


async def test_what_is_listed_is_indexed_soon_though_nobody_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "INDEX_AFTER", 0.01)
    gate = Gate(monkeypatch)
    gate.open.set()
    catalog_state = keeper_of(tmp_path, "shop", "bank")
    for name in ("shop", "bank"):
        catalog_state.merge(listed(name, 2))
    assert await asyncio.to_thread(gate.began.wait, 20)
    await catalog_state.wait_until_indexed()
    assert gate.rounds == [4]
    await catalog_state.close()


@pytest.mark.parametrize(("expose", "indexed"), [("meta", True), ("direct", False), ("transparent", False)])
async def test_nothing_is_indexed_for_clients_that_cannot_search(
    expose: str, indexed: bool, tmp_path: Path
) -> None:
    """It took a tenth of the processor time of a start."""
    config = {"mcpServers": {"shop": {"command": "x"}}, "expose": expose}
    told = parse(json.dumps(config).encode(), str(tmp_path / "config.json"), {})
    catalog_state = CatalogState(told, Catalog(), print, lambda which: None)
    catalog_state.merge(listed("shop", 3))
    assert (catalog_state.index_for_clients() is not None) == indexed
    assert len(await catalog_state.searcher()) == 5  # for `mcpzip search`, which asks for it
    await catalog_state.close()


async def test_what_is_indexed_first_can_be_searched_while_the_rest_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalog without a kept index was taken in as one piece, and every search waited for all of it."""
    monkeypatch.setattr(keeping, "INDEXED_AT_ONCE", 10)
    gate = Gate(monkeypatch)
    catalog_state = keeper_of(tmp_path, "big", "one", "two")
    for name, count in (("big", 30), ("one", 4), ("two", 5)):
        catalog_state.catalog = merge(catalog_state.catalog, [listed(name, count)])
    catalog_state.merge(listed("one", 4))
    gate.open.set()
    await catalog_state.searcher()
    await catalog_state.wait_until_indexed()
    assert gate.rounds == [
        10,
        20,
        30,
        39,
    ]  # the small ones, then bit by bit the one that is more than a round
    catalog_state.merge(listed("one", 6, at=2.0))
    await catalog_state.wait_until_indexed()
    assert gate.rounds[4:] == [41]
    await catalog_state.close()


async def test_a_server_that_comes_late_is_not_behind_one_of_very_many_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was found when the last of 50,000 tools had been taken in, after minutes."""
    monkeypatch.setattr(keeping, "INDEXED_AT_ONCE", 10)
    gate = Gate(monkeypatch)
    catalog_state = keeper_of(tmp_path, "big", "late")
    catalog_state.merge(listed("big", 200))
    await asyncio.sleep(0)
    catalog_state.merge(listed("late", 2))
    gate.open.set()
    while "late" in catalog_state.unindexed():
        await asyncio.wait({catalog_state.start_indexing()})
    assert gate.rounds[-1] < 50
    assert catalog_state.unindexed() == ["big"]
    assert len((await catalog_state.searcher()).search("pay late", 5).hits) >= 2
    await catalog_state.wait_until_indexed()
    assert gate.rounds[-1] == 202
    await catalog_state.close()


async def test_an_index_that_nobody_wants_any_more_is_not_made_to_the_end(tmp_path: Path) -> None:
    """It went on beside the end of the process, and held that up by seconds."""
    catalog_state = keeper_of(tmp_path, "shop")
    catalog_state.merge(listed("shop", 3))
    await catalog_state.wait_until_indexed()
    catalog_state.merge(listed("shop", 300, at=2.0))
    await catalog_state.stop_indexing()
    searcher = catalog_state._searcher
    assert searcher is not None
    assert catalog_state._index_now(catalog_state.visible)[0] is False
    assert len(searcher) == 5
    await catalog_state.close()


# --- what a change costs the event loop ---------------------------------------------------------------------


def test_a_server_that_changes_costs_no_hash_over_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools of all were hashed, on the event loop, each time one of 84 servers answered."""
    hashed: list[str] = []
    real = parts.digest_of_tools

    def counted(entries: parts.Parts) -> bytes:  # type: ignore[type-arg]
        if getattr(entries, "digest", None) is None:
            hashed.append(entries[0].server)
        return real(entries)

    monkeypatch.setattr(catalog, "digest_of_tools", counted)
    whole = merge(Catalog(), [listed(f"up{n}", 3) for n in range(5)])
    before = whole.version
    hashed.clear()
    now = merge(whole, [listed("up3", 4, at=2.0)])
    assert now.version != before
    assert hashed == ["up3"]
    assert merge(now, [listed("up3", 3, at=3.0)]).version == before


def test_tools_that_the_config_hides_are_looked_for_in_a_server_that_changed_only(tmp_path: Path) -> None:
    config = keeper_of(tmp_path, "shop", "bank", tools={"deny": ["tool_1"]})._config
    view, looked = View(config.servers), list[str]()
    for name, may in list(view._allowed.items()):
        assert may is not None
        view._allowed[name] = lambda tool, may=may, name=name: looked.append(name) or may(tool)  # type: ignore
    whole = merge(Catalog(), [listed("shop", 3), listed("bank", 3)])
    assert len(view.of(whole).entries) == 4
    looked.clear()
    assert len(view.of(merge(whole, [listed("bank", 2, at=2.0)])).entries) == 3
    assert set(looked) == {"bank"}


async def test_a_search_waits_for_words_and_not_for_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    real = Searcher.add_meaning

    def add_meaning(searcher: Searcher, most: int, stopped: Callable[[], bool]) -> None:
        assert goes_on.wait(20)
        real(searcher, most, stopped)

    monkeypatch.setattr(Searcher, "add_meaning", add_meaning)
    catalog_state = keeper_of(tmp_path, "shop")
    catalog_state.merge(listed("shop", 300))
    searcher = await catalog_state.searcher()
    assert (len(searcher), searcher.pending) == (302, 302)
    assert catalog_state.unindexed() == []
    assert searcher.search("pay shop 7", 1).tiers == ("keyword",)
    goes_on.set()
    await catalog_state.wait_until_indexed()
    assert searcher.pending == 0
    assert searcher.search("pay shop 7", 1).tiers == ("keyword", "semantic")
    await catalog_state.close()
    again = keeper_of(tmp_path, "shop")
    again.merge(listed("shop", 300))
    assert (await again.searcher()).pending == 0  # the index was kept
    await again.close()
