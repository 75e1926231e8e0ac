"""Many servers at once: a few start at a time, nobody's time runs before its start, and a search says who is
not there yet.
"""

import asyncio
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.driver import Json, comes_true, executed, pool_of, proxy_of, said_by, text_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.proxy import first_listings
from mcpzip.system.process_activity import ProcessActivity
from mcpzip.transport.start_queue import StartPriority

Fake = Callable[..., FakeServer]
SLOW: Json = {"kind": "slow-start", "seconds": 0.2}
ASLEEP: Json = {"kind": "slow-start", "seconds": 60.0}


def pay(n: int) -> Json:
    return {"name": f"pay_{n}", "description": "Pay an invoice"}


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fakes, which sleep, are taken for servers that work."""
    monkeypatch.setattr(ProcessActivity, "resting", lambda self: False)


def starting_at_once(fakes: list[FakeServer]) -> int:
    """How many had started at some moment without having answered yet, at most."""
    changes = []
    for fake in fakes:
        changes.append((fake.record.events("start")[0].time, 1))
        changes.append((fake.record.sent()[0].time, -1))
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


async def test_of_many_servers_only_a_few_start_at_the_same_time(
    fake_mcp: Fake, tmp_path: Path, busy: None
) -> None:
    """All did: with 84 of them half ran out of time before they had got a processor."""
    fakes = [fake_mcp(name=f"up{n}", tools=[pay(n)], faults=[SLOW]) for n in range(8)]
    async with proxy_of(tmp_path, *fakes, listed=False) as proxy:
        proxy._pool.starts.at_once = 2
        await proxy.refresh()
        assert len(proxy.catalog.entries) == 8
    assert starting_at_once(fakes) <= 2


async def test_a_call_does_not_wait_for_the_servers_that_it_does_not_name(
    fake_mcp: Fake, tmp_path: Path, busy: None
) -> None:
    fakes = [fake_mcp(name=f"up{n}", tools=[pay(n)], faults=[ASLEEP]) for n in range(4)]
    last = fake_mcp(name="last", tools=[{"name": "pay", "result": {"text": "paid"}}])
    async with proxy_of(tmp_path, *fakes, last, listed=False) as proxy:
        proxy._pool.starts.at_once = 1
        proxy.start()
        await comes_true(lambda: proxy._pool.starts.waits("last"))
        assert text_of(await executed(proxy, "last__pay")) == "paid"
        assert [proxy._pool.starts.waits(f"up{n}") for n in range(4)] == [False, True, True, True]


async def test_a_server_that_hangs_does_not_keep_the_others_from_starting(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    hanging = [fake_mcp(name=f"hangs{n}", faults=[ASLEEP]) for n in range(3)]
    shop = fake_mcp(name="shop", tools=[pay(1)])
    async with proxy_of(tmp_path, *hanging, shop, listed=False) as proxy:
        proxy._pool.starts.at_once = 1
        proxy.start()
        await comes_true(lambda: proxy.catalog.entries)


class Clock:
    """Monotonic time, which can be put on."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._real = time.monotonic

    def __call__(self) -> float:
        return self._real() + self.ahead


async def test_the_time_of_a_server_counts_from_its_own_start(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 84 servers 38 failed their first listing: their 30 s were over before they had got a processor."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    shop = fake_mcp(name="shop", tools=[pay(1)])
    async with pool_of(tmp_path, shop) as pool:
        pool.starts.at_once = 1
        async with pool.starts.turn("another", StartPriority.NEW):
            listing = asyncio.create_task(pool.list_tools("shop"))
            await comes_true(lambda: pool.starts.waits("shop"))
            clock.ahead = 300.0
            await asyncio.sleep(0)  # whatever is due now is done
            await asyncio.sleep(0)
        assert len((await listing).tools) == 1


async def test_a_search_says_which_servers_are_still_starting(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 48 tools it said "No tool knows 'lock'" while 28 servers were still starting, and named none."""
    monkeypatch.setattr(first_listings, "OTHERS_LISTING", 0.01)
    shop = fake_mcp(name="shop", tools=[pay(1)])
    fakes = [fake_mcp(name=f"up{n}", faults=[ASLEEP]) for n in range(9)]
    details = {"details": True}
    async with proxy_of(tmp_path, shop, *fakes, listed=False, search=details) as proxy:
        await proxy.refresh(["shop"])
        proxy.start()
        result = await said_by(proxy, "search_tools", {"query": "qwertz"})
        first, *_, last = text_of(result).splitlines()
        assert first.startswith("No tool so far knows 'qwertz'.")
        assert last == (
            "-- still starting, their tools are not in this answer: up0, up1, up2, up3, up4, up5 and 3 more"
        )
        assert result["_meta"]["mcpzip/search"]["starting"] == [f"up{n}" for n in range(9)]


async def test_without_any_tool_yet_a_search_says_that_servers_are_starting(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_listings, "FIRST_LISTING", 0.01)
    shop = fake_mcp(name="shop", faults=[ASLEEP])
    async with proxy_of(tmp_path, shop, listed=False) as proxy:
        proxy.start()
        text = text_of(await said_by(proxy, "search_tools", {"query": "pay"}))
        assert re.match("There are no tools yet: 1 server is still starting. Search again in a", text)


async def test_a_first_search_of_more_servers_than_start_at_once_waits_no_longer_than_one_with_answers(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: None
) -> None:
    monkeypatch.setattr(first_listings, "OTHERS_LISTING", 0.01)
    fakes = [fake_mcp(name=f"up{n}", faults=[ASLEEP]) for n in range(3)]
    async with proxy_of(tmp_path, *fakes, listed=False) as proxy:
        proxy._pool.starts.at_once = 1
        proxy.start()
        await comes_true(lambda: proxy._pool.starts.crowded)
        assert proxy._first_listings._patience() == first_listings.OTHERS_LISTING
        assert "3 servers are still starting" in text_of(await said_by(proxy, "search_tools", {"query": "a"}))


async def test_no_process_is_started_on_the_event_loop(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting 84 of them blocked it for 3.6 s: who starts a program waits until the system has got to it."""
    started: list[threading.Thread] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            started.append(threading.current_thread())
            super().__init__(*args, **options)

    shop = fake_mcp(name="shop", tools=[pay(1)])
    monkeypatch.setattr(subprocess, "Popen", Popen)
    async with proxy_of(tmp_path, shop) as proxy:
        assert len(proxy.catalog.entries) == 1
    assert len(started) == 2  # the server, and the guardian
    assert threading.main_thread() not in started
