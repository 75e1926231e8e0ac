"""Connections come when they are needed, go when they are not, and leave nothing behind."""

import asyncio
import gc
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from helpers.driver import (
    LEGACY_SCRIPT,
    Json,
    alive,
    comes_true,
    config_of,
    executed,
    family,
    left_of,
    pool_of,
    proxy_of,
    scripted,
    text_of,
)
from mcpzip_fakes.launch import FakeServer

from mcpzip.model.errors import UpstreamError, UpstreamLostError, UpstreamUnavailableError
from mcpzip.system.reaper import Reaper
from mcpzip.transport import session_times
from mcpzip.transport.connection import Connection
from mcpzip.transport.pool import Pool

Fake = Callable[..., FakeServer]

PAY: Json = {"name": "pay", "result": {"text": "paid"}}
CALL = b'{"name":"pay"}'
STUBBORN = ("ignore-eof", "ignore-sigterm", "fork")
QUICK = 20.0
"""Seconds to end in: one is meant, and machines are shared."""


# When connections open and close


async def test_nothing_is_started_before_it_is_needed(fake_mcp: Fake, tmp_path: Path) -> None:
    shop, bank = fake_mcp(name="shop", tools=[PAY]), fake_mcp(name="bank", tools=[PAY])
    async with pool_of(tmp_path, shop, bank) as pool:
        assert {pool.health(name).state for name in ("shop", "bank")} == {"idle"}
        await pool.request("shop", "tools/call", CALL, timeout=10)
        assert pool.health("shop").state == "connected"
        assert pool.health("bank").state == "idle"
    assert family(bank) == []


async def test_many_callers_at_once_share_one_start(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], faults=[{"kind": "slow-start", "seconds": 0.2}])
    async with pool_of(tmp_path, shop) as pool:
        calls = [pool.request("shop", "tools/call", CALL, timeout=10) for _ in range(20)]
        results = await asyncio.gather(*calls, pool.list_tools("shop"))
        assert len(results) == 21
    assert len(shop.record.events("start")) == 1


async def test_an_idle_connection_is_closed_and_opened_again(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], faults=["fork"])
    async with pool_of(tmp_path, shop, idle_timeout=0.2) as pool:
        await pool.request("shop", "tools/call", CALL, timeout=10)
        assert pool.health("shop").state == "connected"
        await comes_true(lambda: pool.health("shop").state == "idle")
        first = family(shop)
        await comes_true(lambda: not any(map(alive, first)))
        await pool.request("shop", "tools/call", CALL, timeout=10)
    assert len(shop.record.events("start")) == 2


async def test_a_connection_in_use_is_not_idle(fake_mcp: Fake, tmp_path: Path) -> None:
    wait = {"name": "pay", "result": {"delay": 0.6}}
    shop = fake_mcp(name="shop", tools=[wait])
    async with pool_of(tmp_path, shop, idle_timeout=0.1) as pool:
        assert b"ok" in await pool.request("shop", "tools/call", CALL, timeout=10)
    assert len(shop.record.events("start")) == 1


async def test_the_idle_timeout_is_the_configs(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    async with proxy_of(tmp_path, shop, idle_timeout_minutes=0.2 / 60) as proxy:
        await executed(proxy, "shop__pay")
        await comes_true(lambda: proxy.status()[0].state == "idle")
        assert text_of(await executed(proxy, "shop__pay")) == "paid"


# The circuit


async def test_a_failing_server_is_refused_at_once_and_says_when_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpzip.transport.circuit.FIRST_DELAY", 60.0)
    others = {"shop": {"command": "no-such-command-anywhere"}}
    async with pool_of(tmp_path, others=others) as pool:
        with pytest.raises(UpstreamUnavailableError, match=r"was not found\. Install it"):
            await pool.request("shop", "tools/call", CALL, timeout=10)
        with pytest.raises(
            UpstreamUnavailableError, match=r"Install it.* tried again in \d+\.\d s"
        ) as caught:
            await pool.request("shop", "tools/call", CALL, timeout=10)
        assert str(caught.value).startswith("shop: the command 'no-such-command-anywhere' was not found")
        health = pool.health("shop")
        assert health.state == "failing"
        assert 0 < health.retry_in <= 60


async def test_a_server_that_is_back_is_found_when_its_time_has_come(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], faults=[{"kind": "exit-at-once", "run": run} for run in (1, 2)])
    async with pool_of(tmp_path, shop) as pool:
        with pytest.raises(UpstreamUnavailableError, match="fake: no token, giving up"):
            await pool.request("shop", "tools/call", CALL, timeout=10)
        starts = len(shop.record.events("start"))
        with pytest.raises(UpstreamUnavailableError, match="tried again"):
            await pool.request("shop", "tools/call", CALL, timeout=10)
        assert len(shop.record.events("start")) == starts
        await comes_true(lambda: pool.health("shop").retry_in == 0)
        assert b"paid" in await pool.request("shop", "tools/call", CALL, timeout=10)
        assert pool.health("shop").state == "connected"


async def test_who_lists_asks_even_a_server_that_was_given_up(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], faults=[{"kind": "exit-at-once", "run": run} for run in (1, 2)])
    async with pool_of(tmp_path, shop) as pool:
        with pytest.raises(UpstreamError):
            await pool.request("shop", "tools/call", CALL, timeout=10)
        assert len((await pool.list_tools("shop")).tools) == 1


async def test_a_disabled_or_unusable_server_is_never_started(fake_mcp: Fake, tmp_path: Path) -> None:
    off = fake_mcp(name="off", tools=[PAY])
    others = {
        "off": {**off.config, "disabled": True},
        "unset": {"command": "echo", "args": ["${MCPZIP_TEST_SURELY_UNSET}"]},
    }
    async with pool_of(tmp_path, others=others) as pool:
        with pytest.raises(UpstreamUnavailableError, match="disabled"):
            await pool.request("off", "tools/call", CALL, timeout=10)
        with pytest.raises(UpstreamUnavailableError, match="MCPZIP_TEST_SURELY_UNSET"):
            await pool.request("unset", "tools/call", CALL, timeout=10)
        assert pool.health("off").state == "disabled"
        assert pool.health("unset").state == "failing"
    assert family(off) == []


async def test_a_listing_survives_the_loss_of_its_connection(fake_mcp: Fake, tmp_path: Path) -> None:
    """Listing twice does no harm; the listing failed, and the server's tools were called stale."""
    fault = {"kind": "crash", "method": "tools/list", "run": 1}
    shop = fake_mcp(name="shop", tools=[PAY], faults=[fault])
    async with pool_of(tmp_path, shop) as pool:
        assert len((await pool.list_tools("shop")).tools) == 1


async def test_how_long_a_connection_lasted_is_told_once_with_how_it_ended(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    fault = {"kind": "crash", "method": "tools/list", "run": 1}
    shop = fake_mcp(name="shop", tools=[PAY], faults=[fault])
    told: list[tuple[str, str, bool]] = []
    session_times.install(lambda server, version, _, lost: told.append((server.name, version, lost)))
    try:
        async with pool_of(tmp_path, shop) as pool:
            await pool.list_tools("shop")
            assert [each[2] for each in told] == [True]
        assert [each[2] for each in told] == [True, False]
        assert {(name, len(version)) for name, version, _ in told} == {("shop", len("2025-11-25"))}
    finally:
        session_times.install(None)


# Nothing left behind


def open_files() -> set[str]:
    """The descriptors of this process."""
    return set(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


async def settle() -> None:
    """Let callbacks that are due run."""
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()


@pytest.mark.skipif(os.name == "nt", reason="counts descriptors the POSIX way")
async def test_a_closed_pool_leaves_no_task_thread_descriptor_or_process(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    fakes = [
        fake_mcp(name="polite", tools=[PAY]),
        fake_mcp(name="stubborn", tools=[PAY], faults=STUBBORN),
        fake_mcp(name="exits", faults=["exit-at-once"]),
        fake_mcp(name="silent", faults=["silence"]),
        fake_mcp(name="http", transport="http", tools=[PAY]),
        fake_mcp(name="sse", transport="sse", tools=[PAY]),
        fake_mcp(name="hang", transport="http", faults=["hang"]),
    ]
    config = config_of(tmp_path, *fakes, others={"missing": {"command": "no-such-command-anywhere"}})
    await use_and_close(Pool(config.servers.values(), idle_timeout=60), fakes)  # what is imported stays
    files, threads, tasks = open_files(), threading.active_count(), asyncio.all_tasks()
    await use_and_close(Pool(config.servers.values(), idle_timeout=60), fakes)
    assert left_of(family(*fakes[:4])) == []
    assert asyncio.all_tasks() == tasks
    # The other ends are in this process too, in threads of their own.
    await comes_true(lambda: threading.active_count() <= threads and open_files() <= files)


async def use_and_close(pool: Pool, fakes: list[FakeServer]) -> None:
    seen = len(fakes[3].record.received())
    silent = [asyncio.create_task(pool.list_tools(name)) for name in ("silent", "hang")]
    results = await asyncio.gather(
        *(pool.list_tools(name) for name in ("polite", "stubborn", "exits", "http", "sse", "missing")),
        return_exceptions=True,
    )
    assert [isinstance(result, Exception) for result in results] == [False, False, True, False, False, True]
    await fakes[3].record.until(lambda record: len(record.received()) > seen)
    await pool.close()
    await asyncio.gather(*silent, return_exceptions=True)
    await settle()


@pytest.fixture
def at_leisure(monkeypatch: pytest.MonkeyPatch) -> None:
    """To close an idle connection to a server that minds nothing takes two minutes, not four seconds."""
    monkeypatch.setattr("mcpzip.transport.pool.GRACE", 60.0)


@pytest.mark.usefixtures("at_leisure")
async def test_closing_while_a_connection_is_leaving_is_quick(fake_mcp: Fake, tmp_path: Path) -> None:
    """An idle connection was closed at leisure, and the end waited."""
    shop = fake_mcp(name="shop", tools=[PAY], faults=STUBBORN)
    async with pool_of(tmp_path, shop, idle_timeout=0.05) as pool:
        await pool.request("shop", "tools/call", CALL, timeout=10)
        await comes_true(lambda: pool.health("shop").state == "idle")
        assert any(map(alive, family(shop)))
        async with asyncio.timeout(QUICK):
            await pool.close()
        assert left_of(family(shop)) == []


@pytest.mark.usefixtures("at_leisure")
async def test_closing_the_moment_a_connection_leaves_is_quick(fake_mcp: Fake, tmp_path: Path) -> None:
    """What was about to leave, and had not begun to, was not known to be there."""
    shop = fake_mcp(name="shop", tools=[PAY], faults=STUBBORN)
    async with pool_of(tmp_path, shop) as pool:
        await pool.request("shop", "tools/call", CALL, timeout=10)
        slot = pool._states["shop"]
        (line,) = slot.entries.values()
        line.unused_at = 0.0
        pool._expiry._expire(slot, line)
        async with asyncio.timeout(QUICK):
            await pool.close()
        assert left_of(family(shop)) == []


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.08, 0.15])
async def test_closing_at_any_moment_of_a_start_leaves_nothing(
    fake_mcp: Fake, tmp_path: Path, seconds: float
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], faults=STUBBORN)
    async with pool_of(tmp_path, shop) as pool:
        call = asyncio.create_task(pool.request("shop", "tools/call", CALL, timeout=10))
        await asyncio.wait({call}, timeout=seconds)
        async with asyncio.timeout(QUICK):
            await pool.close()
        await asyncio.gather(call, return_exceptions=True)
    assert left_of(family(shop)) == []
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_connect_cancelled_the_moment_it_is_ready_is_given_up(fake_mcp: Fake, tmp_path: Path) -> None:
    """It was believed to be somebody's: its process lived on with nobody to end it."""
    shop = fake_mcp(name="shop", tools=[PAY])
    server = config_of(tmp_path, shop).servers["shop"]
    guardian = Reaper()
    connection = Connection(server, Deaf(), guardian)
    connecting = asyncio.create_task(connection.connect(10))
    while not connection._ready.is_set():  # noqa: ASYNC110 - the very moment, not a turn of the loop later
        await asyncio.sleep(0)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert left_of(family(shop)) == []
    guardian.close()


class Deaf:
    """Listens to nothing."""

    def list_changed(self, connection: Connection, which: str | None) -> None: ...

    def disconnected(self, server: str, connection: Connection) -> None: ...


async def test_closing_twice_and_asking_afterwards_does_no_harm(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    async with pool_of(tmp_path, shop) as pool:
        await pool.request("shop", "tools/call", CALL, timeout=10)
        await pool.close()
        await pool.close()
        with pytest.raises(UpstreamUnavailableError, match="shutting down"):
            await pool.request("shop", "tools/call", CALL, timeout=10)
    assert len(shop.record.events("start")) == 1


async def test_a_server_that_never_stops_talking_can_be_ended(tmp_path: Path) -> None:
    each = LEGACY_SCRIPT + 'elif method == "tools/call":\n    while True: print("noise " * 1000, flush=True)'
    others = {
        "shop": scripted(
            each,
            before="import threading\n"
            "threading.Thread(target=sys.stderr.write, args=('x' * 10**7,), daemon=True).start()",
        )
    }
    async with pool_of(tmp_path, others=others) as pool:
        with pytest.raises(UpstreamError, match="no answer"):
            await pool.request("shop", "tools/call", CALL, timeout=0.3)
        async with asyncio.timeout(QUICK):
            await pool.close()


# Everything at once


@pytest.mark.parametrize("seed", range(2))
async def test_a_storm_of_calls_crashes_and_cancellations(fake_mcp: Fake, tmp_path: Path, seed: int) -> None:
    """Every call has its own answer or a reason, none runs more often than it may, and nothing is left."""
    tools: list[Json] = [
        {"name": "echo", "result": {"echo": True}},
        {"name": "slow", "result": {"echo": True, "delay": 0.05}},
        {"name": "boom", "result": {"echo": True}},
    ]
    crashes = [
        {"kind": "crash", "tool": "boom", "when": when, "nth": 2} for when in ("before", "middle", "after")
    ]
    fakes = [
        fake_mcp(name="steady", tools=tools),
        fake_mcp(name="brittle", tools=tools, faults=[*crashes[:1], "junk"]),
        fake_mcp(name="broken", tools=tools, era="legacy", faults=[*crashes[1:], "duplicate"]),
        fake_mcp(name="web", tools=tools, transport="http"),
    ]
    random = Random(seed)
    repeatable = [random.random() < 0.5 for _ in range(150)]
    async with pool_of(tmp_path, *fakes, idle_timeout=0.05) as pool:

        async def one(number: int) -> None:
            await asyncio.sleep(random.random() * 0.8)
            server, tool = random.choice(fakes).name, random.choice(["echo", "slow", "boom"])
            params = b'{"name":"%b","arguments":{"n":%d}}' % (tool.encode(), number)
            calling = asyncio.create_task(
                pool.request(server, "tools/call", params, timeout=20, repeatable=repeatable[number])
            )
            if random.random() < 0.3:
                await asyncio.wait({calling}, timeout=random.random() * 0.1)
                calling.cancel()
            (outcome,) = await asyncio.gather(calling, return_exceptions=True)
            if isinstance(outcome, bytes):
                assert json.loads(json.loads(outcome)["content"][0]["text"]) == {"n": number}
            else:
                assert isinstance(outcome, UpstreamLostError | asyncio.CancelledError), repr(outcome)

        await asyncio.gather(*map(one, range(150)))
        assert json.loads(await pool.request("steady", "tools/call", b'{"name":"echo"}', timeout=10))
    runs = Counter(
        params["arguments"]["n"]
        for fake in fakes
        for params in fake.record.calls()
        if "n" in params.get("arguments", {})
    )
    assert [number for number, times in runs.items() if times > 1 + repeatable[number]] == []
    await settle()
    assert left_of(family(*fakes[:3])) == []
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
