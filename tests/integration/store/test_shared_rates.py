"""Calls of one person at several replicas count once, in real stores, also while these fail."""

import asyncio
import itertools
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from helpers.driver import proxy_of
from helpers.people import ask, tool, use
from helpers.store_servers import SERVERS, StoreServer, running
from mcpzip_fakes.launch import FakeServer

from mcpzip.config.schema import RateLimit, Secret, StoreConfig
from mcpzip.model.entry import Entry
from mcpzip.model.errors import NotCountedError, TooManyCallsError
from mcpzip.model.principal import Principal
from mcpzip.proxy.rate_limits import RateLimits
from mcpzip.proxy.shared_rates import SharedRates
from mcpzip.proxy.statistics import Statistics
from mcpzip.server.endpoint import Endpoint

ANN, BOB = (Principal("https://issuer.example", name) for name in ("ann", "bob"))
GET = Entry.parse("crm", b'{"name":"get"}')
LIMIT = RateLimit(calls=10, seconds=3_600)
KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC0="
numbers = itertools.count()


@pytest.fixture(scope="module", params=[*SERVERS])
def server(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    with running(SERVERS[request.param]()) as server:
        yield server


class Replica:
    """Counts as one process does. drift: how much faster its clock is than time."""

    def __init__(self, config: StoreConfig, limits: tuple[RateLimit, ...], drift: float = 1.0) -> None:
        self.told, self.statistics = list[str](), Statistics()
        self.shared = SharedRates(config, self.told.append)
        clock = lambda: time.monotonic() * drift  # noqa: E731
        self.rates = RateLimits(limits, clock, self.shared, self.statistics)

    async def may(self, who: Principal = ANN) -> bool:
        try:
            (await self.rates.begin(who, GET))()
        except TooManyCallsError:
            return False
        return True

    async def connected(self) -> None:
        """Waits until its store is used."""
        async with asyncio.timeout(20):
            await self.shared.connect()


@asynccontextmanager
async def replicas(
    server: StoreServer, *drifts: float, limits: tuple[RateLimit, ...] = (LIMIT,)
) -> AsyncIterator[list[Replica]]:
    config = StoreConfig(server.url, (Secret(KEY),), f"test-{next(numbers)}")
    made = [Replica(config, limits, drift) for drift in drifts]
    try:
        for replica in made:
            await replica.connected()
        yield made
    finally:
        for replica in made:
            await replica.shared.close()


async def test_a_person_has_one_limit_whatever_the_replica_and_its_clock(server: StoreServer) -> None:
    async with replicas(server, 1.0, 1_000.0, 0.0) as made:
        calls = [replica.may() for _ in range(12) for replica in made]
        assert sum(await asyncio.gather(*calls)) == LIMIT.calls
        assert [await replica.may(BOB) for replica in made] == [True] * 3
        assert not any([await replica.may() for replica in made])
        assert [replica.told for replica in made] == [[], [], []]
        assert sum(replica.statistics.counted_locally for replica in made) == 0


async def test_limits_that_differ_in_their_order_are_the_same(server: StoreServer) -> None:
    config = StoreConfig(server.url, (Secret(KEY),), f"test-{next(numbers)}")
    crm = RateLimit(of=("crm", "a*"), calls=2, seconds=3_600)
    same = RateLimit(of=("a*", "crm"), calls=2, seconds=3_600, concurrent=9)
    made = [Replica(config, each) for each in ((LIMIT, crm), (same, LIMIT, same))]
    try:
        for replica in made:
            await replica.connected()
        assert [await made[each].may() for each in (0, 1, 0, 1)] == [True, True, False, False]
    finally:
        for replica in made:
            await replica.shared.close()


async def test_the_store_learns_no_names(server: StoreServer) -> None:
    async with replicas(server, 1.0) as [replica]:
        assert await replica.may()
    if server.url.startswith("redis"):
        with redis.Redis.from_url(server.url) as client:
            kept = str([(key, client.get(key)) for key in client.keys("*:b:*")])
    else:
        with psycopg.connect(server.url) as connection:
            kept = str(connection.execute("SELECT * FROM mcpzip_buckets").fetchall())
    assert "mcpzip" in kept or "test-" in kept
    assert "ann" not in kept
    assert "issuer" not in kept


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the processes of a server in /proc")
async def test_a_store_that_is_paused_keeps_nobody_waiting(server: StoreServer) -> None:
    denying = RateLimit(of=("crm",), calls=1_000, if_store_fails="deny")
    async with (
        replicas(server, 1.0, 1.0) as [one, other],
        replicas(server, 1.0, limits=(denying,)) as [third],
    ):
        assert [await replica.may() for replica in (one, other) for _ in range(2)] == [True] * 4
        server.signal_all(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            assert sum(await asyncio.gather(*(one.may() for _ in range(20)))) == LIMIT.calls - 2
            assert time.monotonic() - begun < 3.0  # a busy machine
            begun = time.monotonic()
            assert not any([await one.may() for _ in range(1_000)])
            assert [await one.may(Principal("https://i", str(each))) for each in range(100)] == [True] * 100
            assert time.monotonic() - begun < 3.0
            assert [await other.may() for _ in range(10)] == [True] * 8 + [False] * 2
            for _ in range(3):
                with pytest.raises(NotCountedError):
                    await third.rates.begin(ANN, GET)
        finally:
            server.signal_all(signal.SIGCONT)
        [told] = one.told
        assert "has not answered within 0.25 s" in told
        assert "counts the calls of people by itself" in told
        for replica in (one, other, third):
            await replica.connected()
        counted = one.statistics.counted_locally
        assert await one.may(BOB)
        assert await third.may()
        assert one.statistics.counted_locally == counted
        assert len(one.told) == 1


async def test_a_store_that_comes_later_is_used_then(server: StoreServer) -> None:
    server.kill()
    config = StoreConfig(server.url, (Secret(KEY),), f"test-{next(numbers)}")
    replica = Replica(config, (LIMIT,))
    try:
        assert [await replica.may() for _ in range(12)] == [True] * 10 + [False] * 2
        assert replica.statistics.counted_locally == 10
        server.start()
        await replica.connected()
        assert await replica.may(BOB)
        assert replica.statistics.counted_locally == 10
    finally:
        if server.process is None or server.process.poll() is not None:
            server.start()
        await replica.shared.close()


async def test_calls_of_tools_at_two_proxies(
    server: StoreServer, fake_mcp: Callable[..., FakeServer], tmp_path: Path
) -> None:
    shop = fake_mcp(name="shop", tools=[tool("sell", "Sell it.")])
    settings = {
        "store": {"url": server.url, "keys": [KEY], "namespace": f"test-{next(numbers)}"},
        "rate_limits": [{"of": "shop", "calls": 3, "seconds": 3_600}],
    }
    for folder in "ab":
        (tmp_path / folder).mkdir()
    async with (
        proxy_of(tmp_path / "a", shop, **settings) as one,
        proxy_of(tmp_path / "b", shop, **settings) as other,
    ):
        endpoints = Endpoint(one), Endpoint(other)
        async with asyncio.timeout(20):  # before the first call
            for proxy in (one, other):
                shared = proxy.tool_caller._share_counts()
                assert shared
                await shared.connect()
        said = [await ask(endpoint, ANN, "tools/call", use("shop__sell")) for endpoint in endpoints * 3]
        assert ["isError" in each for each in said] == [False] * 3 + [True] * 3
        assert 1_000 < said[3]["_meta"]["mcpzip/retryAfter"] <= 1_200
        assert "isError" not in await ask(endpoints[0], None, "tools/call", use("shop__sell"))
        assert other.statistics.rate_limited + one.statistics.rate_limited == 3
    assert len(shop.record.calls("sell")) == 4
