"""A search that is answered before mcpzip is loaded has the bytes that the session would have sent."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.driver import LEGACY_SCRIPT, Json, exchange, proxy_of, scripted
from mcpzip_fakes.launch import FakeServer
from msgspec.structs import replace

from mcpzip.catalog import Catalog, snapshot
from mcpzip.config import snapshot_path
from mcpzip.pins.record import Hold
from mcpzip.pins.store import PinFile
from mcpzip.proxy.tool_usage import UseCount, save, usage_path
from mcpzip.proxy.unanswered import UnansweredServers
from mcpzip.server.early_search import EarlySearch
from mcpzip.server.prepared import Prepared, prepare

Fake = Callable[..., FakeServer]

TOOLS: list[Json] = [
    {"name": "pay_invoice", "description": "Pay an invoice", "inputSchema": {"type": "object"}},
    {"name": "list_invoices", "description": "List invoices", "annotations": {"readOnlyHint": True}},
    {"name": "delete_customer", "description": "Delete a customer for good"},
]
REQUESTS: list[Json] = [
    {"query": "pay an invoice"},
    {"query": "pay an invoice", "limit": 1},
    {"query": "pay an invoice and delete the customer"},
    {"query": "invoice server:shop -pay", "read_only": True},
    {"query": "pay", "server": "bank"},
    {"query": "pay", "server": "nobody"},
    {"query": "xyzzy plugh"},
    {"query": ""},
    {"query": "shop__pay_invoice", "limit": "3"},
    {"query": "status of the proxy"},
    {"query": "Rechnung bezahlen", "limit": 500},
    {"query": "water the garden flowers"},
]


async def warmed(folder: Path, *fakes: FakeServer, **keys: Any) -> Prepared:
    """What is on disk after a start with these servers."""
    async with proxy_of(folder, *fakes, **keys) as proxy:
        await proxy.wait_until_indexed()
    return prepare(str(folder / "config.json"), env={})


async def by_the_session(folder: Path, requests: list[Json], **keys: Any) -> list[bytes]:
    """The results of a proxy that starts with what is on disk."""
    async with proxy_of(folder, **keys, listed=False) as proxy:
        proxy.start()
        return [
            await proxy.call("search_tools", json.dumps(request).encode(), exchange()) for request in requests
        ]


def before_it(prepared: Prepared, requests: list[Json]) -> list[bytes | None]:
    early = EarlySearch.of(prepared)
    assert early is not None
    return [early.answer(json.dumps(request).encode(), False) for request in requests]


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"search": {"details": True, "default_limit": 2}},
        {"search": {"semantic": "off", "learn": False, "max_tokens": 200}},
        {"expose": {"split": True}},
    ],
)
async def test_the_bytes_are_those_of_the_session(fake_mcp: Fake, tmp_path: Path, keys: Json) -> None:
    shop, bank = (fake_mcp(name=name, tools=TOOLS) for name in ("shop", "bank"))
    others = {
        "shop": {**shop.config, "boost": 2, "tools": {"deny": ["list_*"]}},
        "bank": {**bank.config, "risk": {"pay_*": "reads"}},
        "off": {**bank.config, "disabled": True},
    }
    prepared = await warmed(tmp_path, others=others, **keys)
    learned = {"water": 2.0, "garden": 2.0, "flower": 2.0}
    save(usage_path(prepared.config.path), {"shop__delete_customer": UseCount(3.0, 4e9, learned)}, 4e9)
    ours = before_it(prepared, REQUESTS)
    assert ours == await by_the_session(tmp_path, REQUESTS, others=others, **keys)
    assert ours[0] is not None
    assert b"shop__pay_invoice" in ours[0]
    marked = [b"read-only" in (each or b"") for each in ours]
    assert any(marked) == ("expose" in keys)
    learns = keys.get("search", {}).get("learn", True)
    assert (b"'flowers'.\\nshop__delete_customer" in (ours[-1] or b"")) == learns


async def test_servers_that_fail_now_are_named(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    others: dict[str, Json] = {"shop": shop.config, "bank": {"command": "no-such-command-anywhere"}}
    await warmed(tmp_path, others=others)
    others["shop"] = {**shop.config, "env": {"CHANGED": "1"}}  # its tools are those of other settings
    others["loop"] = {"url": "not an address"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"mcpServers": others}))
    # A server with a mistake, which nobody has tried to list yet, is left to the session.
    assert EarlySearch.of(prepare(str(path), env={})) is None
    del others["loop"]
    path.write_text(json.dumps({"mcpServers": others}))
    ours = before_it(prepare(str(path), env={}), REQUESTS)
    assert ours == await by_the_session(tmp_path, REQUESTS, others=others)
    assert ours[0] is not None
    assert b"bank" in ours[0]


async def test_a_server_that_never_answered_is_named_and_one_that_was_never_asked_is_waited_for(
    tmp_path: Path,
) -> None:
    shop, dead = scripted(LEGACY_SCRIPT), scripted("")
    await warmed(tmp_path, others={"shop": shop})
    others = {"shop": shop, "dead": dead}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"mcpServers": others}))
    prepared = prepare(str(path), env={})
    assert EarlySearch.of(prepared) is None
    unanswered = UnansweredServers(prepared.config)
    unanswered.add([prepared.config.servers["dead"]])
    unanswered.save(prepared.config.servers)
    requests = [request for request in REQUESTS if "server" not in request]
    ours = before_it(prepared, requests)
    assert ours == await by_the_session(tmp_path, requests, others=others)
    assert ours[0] is not None
    assert b"still starting, their tools are not in this answer: dead" in ours[0]
    assert before_it(prepared, [{"query": "pay", "server": "dead"}]) == [None]


async def test_where_something_is_held_back_or_pins_are_damaged_the_session_answers(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    prepared = await warmed(tmp_path, fake_mcp(name="shop", tools=TOOLS))
    assert EarlySearch.of(prepared) is not None
    store = PinFile(prepared.config.path)
    with store.changing() as pins:
        for name, server in pins.servers.items():
            key, pin = next(iter(server.pins.items()))
            hold = Hold(pin.digest, pin.raw, 0.0, rejected=True)
            store.write(pins, name, replace(server, held={key: hold}), {})
    assert any(server.held for server in PinFile(prepared.config.path).load().servers.values())
    assert EarlySearch.of(prepared) is None
    await asyncio.to_thread(Path(store.path).write_text, "{")
    assert EarlySearch.of(prepared) is None


async def test_what_was_approved_since_is_searched_by_the_session(fake_mcp: Fake, tmp_path: Path) -> None:
    """And the first search of the session finds it."""
    shop = fake_mcp(name="shop", tools=TOOLS)
    prepared = await warmed(tmp_path, shop)
    record = prepared.catalog.servers["shop"]
    shown = [entry for entry in record.entries if entry.tool != "pay_invoice"]
    catalog = Catalog({"shop": replace(record, entries=tuple(shown))})
    store = PinFile(prepared.config.path)
    with store.changing() as pins:
        server = pins.servers["shop"]
        later = replace(server.pins["tool pay_invoice"], at=time.time())
        store.write(pins, "shop", replace(server, pins={**server.pins, "tool pay_invoice": later}), {})
    snapshot.save(snapshot_path(prepared.config.path), prepared.config.path, catalog)
    assert EarlySearch.of(prepare(prepared.config.path, env={})) is None
    (first,) = await by_the_session(tmp_path, [{"query": "pay an invoice"}], others={"shop": shop.config})
    assert b"shop__pay_invoice" in first


async def test_the_first_search_says_what_is_held(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    prepared = await warmed(tmp_path, shop)
    store = PinFile(prepared.config.path)
    with store.changing() as pins:
        server = pins.servers["shop"]
        pin = server.pins["tool pay_invoice"]
        held = {"tool pay_invoice": Hold(pin.digest, pin.raw, 0.0)}
        store.write(pins, "shop", replace(server, held=held), {})
    (first,) = await by_the_session(tmp_path, [{"query": "pay an invoice"}], others={"shop": shop.config})
    assert b"1 tool held back: mcpzip review shop" in first
    assert b"shop__pay_invoice" not in first


async def test_it_answers_nothing_that_the_session_would_refuse(fake_mcp: Fake, tmp_path: Path) -> None:
    prepared = await warmed(tmp_path, fake_mcp(name="shop", tools=TOOLS))
    wrong: list[Json] = [{}, {"query": 5}, {"query": "x", "limit": []}, {"query": "\ud800"}]
    assert before_it(prepared, wrong) == [None] * len(wrong)


@pytest.mark.parametrize(
    "keys",
    [
        {"expose": "direct"},
        {"search": {"semantic": "http://127.0.0.1:9/api"}},
        {"gemini_api_key": "key"},
    ],
)
async def test_some_configs_are_the_sessions(fake_mcp: Fake, tmp_path: Path, keys: Mapping[str, Any]) -> None:
    await warmed(tmp_path, shop := fake_mcp(name="shop", tools=TOOLS))
    (tmp_path / "config.json").write_text(json.dumps({"mcpServers": {"shop": shop.config}, **keys}))
    assert EarlySearch.of(prepare(str(tmp_path / "config.json"), env={})) is None


async def test_tools_that_are_not_indexed_are_searched_by_the_session(fake_mcp: Fake, tmp_path: Path) -> None:
    prepared = await warmed(tmp_path, fake_mcp(name="shop", tools=TOOLS))
    assert EarlySearch.of(prepared) is not None
    path = snapshot_path(prepared.config.path)
    await asyncio.to_thread(
        lambda: Path(path).write_text(Path(path).read_text().replace("Pay an", "Settle an"))
    )
    again = prepare(prepared.config.path, env={})
    assert snapshot.load(path, prepared.config.path)[0].entries == again.catalog.entries
    assert EarlySearch.of(again) is None


async def test_the_searcher_goes_on_in_the_session(fake_mcp: Fake, tmp_path: Path) -> None:
    prepared = await warmed(tmp_path, shop := fake_mcp(name="shop", tools=TOOLS))
    early = EarlySearch.of(prepared)
    assert early is not None
    async with proxy_of(tmp_path, shop, listed=False) as proxy:
        other = type(proxy)(prepared.config, prepared.catalog, searcher=early.searcher)
        try:
            assert await other.searcher() is early.searcher
        finally:
            await other.close()
