"""What every kind of store does, each as real as it gets: several clients at one store."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest
import redis
from helpers.store_servers import SERVERS, PostgresServer, RedisServer, StoreServer, running

from mcpzip.model import limits
from mcpzip.model.errors import StoreError
from mcpzip.store.buckets import Bucket, Shortage
from mcpzip.store.memory_backend import Memory, MemoryBackend
from mcpzip.store.opening import open_store
from mcpzip.store.records import Entry, Key, Value
from mcpzip.store.store import Store

KEY = Key("grants", "a")
Make = Callable[[], Store]
numbers = itertools.count()


@pytest.fixture(scope="module", params=["memory", *SERVERS])
def server(request: pytest.FixtureRequest) -> Iterator[StoreServer | None]:
    if request.param == "memory":
        yield None
        return
    with running(SERVERS[request.param]()) as server:
        yield server


@pytest.fixture
async def make(server: StoreServer | None) -> AsyncIterator[Make]:
    """Opens one more client of a store that is only this test's."""
    made: list[Store] = []
    memory, namespace = Memory(), f"test-{next(numbers)}"

    def another() -> Store:
        store = Store(MemoryBackend(memory)) if server is None else open_store(server.url, namespace)
        made.append(store)
        return store

    yield another
    for store in made:
        await store.close()


async def test_a_value_is_what_was_set_last(make: Make) -> None:
    one, other = make(), make()
    assert await one.get(KEY) is None
    first = await one.compare_and_set(KEY, b"\0\xff: 1", 0)
    assert first
    assert await other.get(KEY) == Value(b"\0\xff: 1", first)
    second = await other.compare_and_set(KEY, b"", first)
    assert second
    assert second > first
    assert await one.get(KEY) == Value(b"", second)
    assert await one.get(Key("grants", "b")) is None
    assert await one.get(Key("other", "a")) is None


async def test_a_set_with_another_version_changes_nothing(make: Make) -> None:
    store = make()
    version = await store.compare_and_set(KEY, b"1", 0)
    assert version
    assert await store.compare_and_set(KEY, b"2", 0) is None
    assert await store.compare_and_set(KEY, b"2", version + 1) is None
    assert await store.compare_and_set(Key("grants", "b"), b"2", version) is None
    assert not await store.delete(KEY, version + 1)
    assert await store.get(KEY) == Value(b"1", version)
    assert await store.versions("grants") == {"a": version}


async def test_a_version_is_never_used_again(make: Make) -> None:
    store, seen = make(), set[int]()
    for _ in range(5):
        version = await store.compare_and_set(KEY, b"1", 0)
        assert version
        assert version not in seen
        seen.add(version)
        assert await store.delete(KEY, version)
        assert not await store.delete(KEY, version)
        assert await store.get(KEY) is None
        assert await store.versions("grants") == {}


async def test_of_many_who_set_at_once_one_succeeds(make: Make) -> None:
    stores = [make() for _ in range(5)]
    version = 0
    for round in range(20):
        data = [b"%d.%d" % (round, each) for each in range(len(stores))]
        made = await asyncio.gather(
            *(store.compare_and_set(KEY, each, version) for store, each in zip(stores, data, strict=True))
        )
        assert sum(each is not None for each in made) == 1
        version = next(filter(None, made))
        winner = next(number for number, each in enumerate(made) if each)
        assert await stores[0].get(KEY) == Value(data[winner], version)


async def test_a_lease_has_one_holder(make: Make) -> None:
    one, other = make(), make()
    lease = await one.acquire("a", "one", 60)
    assert lease
    assert await other.acquire("a", "other", 60) is None
    assert await one.acquire("a", "one", 60) is None
    assert await other.acquire("b", "other", 60)
    assert await one.renew(lease, 60)
    stolen = lease._replace(number=lease.number + 1)
    assert not await other.renew(stolen, 60)
    assert not await other.release(stolen)
    assert not await other.release(lease._replace(owner="other"))
    assert await one.release(lease)
    assert not await one.release(lease)
    assert not await one.renew(lease, 60)
    later = await other.acquire("a", "other", 60)
    assert later
    assert later.number > lease.number


async def test_a_lease_ends_by_itself_unless_it_is_renewed(make: Make) -> None:
    one, other = make(), make()
    lease = await one.acquire("a", "one", 0.4)
    assert lease
    later = None
    for _ in range(4):
        assert await one.renew(lease, 0.6)
        await asyncio.sleep(0.15)
        assert await other.acquire("a", "other", 60) is None
    async with asyncio.timeout(10):
        while later is None:
            later = await other.acquire("a", "other", 60)
            await asyncio.sleep(0.02)
    assert later.number > lease.number
    assert not await one.renew(lease, 60)
    assert not await one.release(lease)
    assert await other.renew(later, 60)


async def test_of_many_who_want_a_lease_one_gets_it(make: Make) -> None:
    stores = [make() for _ in range(5)]
    numbers = []
    for _ in range(20):
        leases = [
            lease
            for lease in await asyncio.gather(
                *(store.acquire("a", f"s{each}", 60) for each, store in enumerate(stores))
            )
            if lease
        ]
        assert len(leases) == 1
        numbers.append(leases[0].number)
        assert await stores[0].release(leases[0])
    assert numbers == sorted(set(numbers))


async def test_a_log_has_its_last_entries_in_their_order(make: Make) -> None:
    one, other = make(), make()
    assert await one.entries("log") == []
    made = [await store.append("log", b"same") for store in (one, other, one)]
    assert made == sorted(set(made))
    assert await other.entries("log") == [Entry(number, b"same") for number in made]
    assert await other.entries("log", made[0], 1) == [Entry(made[1], b"same")]
    assert await other.entries("log", made[2]) == []
    last = await one.append("log", b"\0:\xff", keep=2)
    assert await one.entries("log") == [Entry(made[2], b"same"), Entry(last, b"\0:\xff")]
    assert await one.entries("other") == []


async def test_a_reader_of_a_log_misses_no_entry(make: Make) -> None:
    writers, reader = [make() for _ in range(4)], make()
    read: list[int] = []
    done = asyncio.Event()

    async def write(store: Store) -> list[int]:
        return [await store.append("log", b"x") for _ in range(25)]

    async def follow() -> None:
        while True:
            over = done.is_set()
            found = await reader.entries("log", read[-1] if read else 0, 7)
            read.extend(entry.number for entry in found)
            if over and not found:
                return

    following = asyncio.create_task(follow())
    written = await asyncio.gather(*map(write, writers))
    done.set()
    await following
    assert read == sorted(number for numbers in written for number in numbers)


async def take(store: Store, buckets: Sequence[Bucket]) -> Shortage | None:
    """One request."""
    [short] = await store.take([buckets])
    return short


async def test_a_token_is_taken_from_each_bucket_or_from_none(make: Make) -> None:
    one, other = make(), make()
    small, large = Bucket("small", 1, 60_000_000), Bucket("large", 3, 50_000_000)
    assert await take(one, (large, small)) is None
    short = await take(other, (large, small))
    assert short
    assert short.number == 1
    assert 50_000_000 < short.microseconds <= 60_000_000
    assert [await take(each, (large,)) for each in (one, other)] == [None, None]
    short = await take(one, (Bucket("new", 1, 1), large))
    assert short
    assert short.number == 1
    assert 40_000_000 < short.microseconds <= 50_000_000


async def test_tokens_come_back_by_the_clock_of_the_store(make: Make) -> None:
    store, bucket = make(), Bucket("a", 2, 300_000)
    assert [await take(store, (bucket,)) for _ in range(2)] == [None, None]
    short = await take(store, (bucket,))
    assert short
    await asyncio.sleep(short.microseconds / 1_000_000 + 0.01)
    assert await take(store, (bucket,)) is None
    assert await take(store, (bucket,))
    await asyncio.sleep(0.61)
    assert [await take(store, (bucket,)) for _ in range(2)] == [None, None]


async def test_of_many_who_take_at_once_no_more_than_there_are_get_a_token(make: Make) -> None:
    stores = [make() for _ in range(5)]
    there = [Bucket("a", 7, 3_600_000_000), Bucket("b", 50, 3_600_000_000)]

    orders = there, there[::-1]
    taken = await asyncio.gather(*(store.take([*orders, *orders]) for _ in range(3) for store in stores))
    assert sum(found.count(None) for found in taken) == 7
    left = await stores[0].take([there[1:]] * 45)
    assert [short is None for short in left] == [True] * 43 + [False] * 2


async def test_each_request_has_its_answer(make: Make) -> None:
    store = make()
    small, large = Bucket("small", 1, 60_000_000), Bucket("large", 3, 50_000_000)
    found = await store.take([(large, small), (large,), (large, small), (small,), (large,), (large, small)])
    assert [None if short is None else short.number for short in found] == [None, None, 1, 0, None, 1]


async def test_a_clock_that_is_set_back_locks_nobody_out(make: Make, server: StoreServer | None) -> None:
    store, bucket = make(), Bucket("set-back", 2, 300_000)
    assert await take(store, (bucket,)) is None
    match server:
        case None:
            assert isinstance(store._backend, MemoryBackend)
            store._backend._memory.full_at["set-back"] += 3_600_000_000
        case RedisServer():
            with redis.Redis.from_url(server.url) as client:
                [key] = client.keys("*:b:set-back")
                client.set(key, int(client.get(key) or 0) + 3_600_000_000)
        case PostgresServer():
            server.run("UPDATE mcpzip_buckets SET full_at = full_at + 3600000000 WHERE name = 'set-back'")
    short = await take(store, (bucket,))
    assert short
    assert 0 < short.microseconds <= 300_000
    await asyncio.sleep(0.31)
    assert await take(store, (bucket,)) is None


async def test_messages_reach_whoever_is_subscribed(make: Make) -> None:
    one, other = make(), make()
    await other.publish("a", b"to nobody")
    async with one.subscribe("a") as messages, other.subscribe("a") as others:
        await other.publish("b", b"elsewhere")
        sent = [b"\0\xff", b"", b"x" * limits.STORE_MESSAGE]
        for message in sent:
            await other.publish("a", message)
        async with asyncio.timeout(10):
            assert [await anext(messages) for _ in sent] == sent
            assert [await anext(others) for _ in sent] == sent


async def test_namespaces_are_apart(server: StoreServer | None) -> None:
    if server is None:
        return  # in memory each store is apart
    one, other = (open_store(server.url, f"apart-{each}") for each in "ab")
    try:
        version = await one.compare_and_set(KEY, b"1", 0)
        assert version
        assert await one.acquire("a", "one", 60)
        bucket = Bucket("a", 1, 3_600_000_000)
        assert [await take(store, (bucket,)) is None for store in (one, other, one)] == [True, True, False]
        assert await other.get(KEY) is None
        assert await other.versions("grants") == {}
        assert not await other.delete(KEY, version)
        assert await other.acquire("a", "other", 60)
        async with other.subscribe("a") as messages:
            await one.publish("a", b"1")
            await other.publish("a", b"2")
            assert await anext(messages) == b"2"
    finally:
        await one.close()
        await other.close()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "{a}", "ä", "x" * (limits.STORE_NAME + 1), "a\n"])
async def test_a_name_has_a_shape(make: Make, name: str) -> None:
    store = make()
    with pytest.raises(ValueError, match="not a name"):
        await store.get(Key("grants", name))
    with pytest.raises(ValueError, match="not a name"):
        await store.acquire(name, "one", 1)
    with pytest.raises(ValueError, match="not a name"):
        await store.publish(name, b"")


async def test_everything_has_a_limit(make: Make) -> None:
    store = make()
    largest = b"x" * limits.STORE_VALUE
    version = await store.compare_and_set(KEY, largest, 0)
    assert version
    assert await store.get(KEY) == Value(largest, version)
    with pytest.raises(ValueError, match="the most"):
        await store.compare_and_set(KEY, largest + b"x", version)
    with pytest.raises(ValueError, match="the most"):
        await store.append("log", b"x" * (limits.STORE_ENTRY + 1))
    with pytest.raises(ValueError, match="the most"):
        await store.publish("a", b"x" * (limits.STORE_MESSAGE + 1))
    with pytest.raises(ValueError, match="isn't from"):
        await store.append("log", b"", limits.STORE_ENTRIES + 1)
    with pytest.raises(ValueError, match="isn't from"):
        await store.compare_and_set(KEY, b"", -1)
    for seconds in (0, -1, float("nan"), limits.STORE_LEASE + 1):
        with pytest.raises(ValueError, match="a lease of"):
            await store.acquire("a", "one", seconds)


async def test_a_table_has_a_most(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORE_VALUES", 3)
    store = make()
    made = [await store.compare_and_set(Key("grants", each), b"", 0) for each in "abc"]
    with pytest.raises(StoreError, match="has 3 values of this kind") as caught:
        await store.compare_and_set(Key("grants", "d"), b"", 0)
    assert caught.value.fault == "full"
    assert await store.compare_and_set(KEY, b"", 0) is None  # it is there, whatever room is left
    assert made[0]
    assert await store.compare_and_set(KEY, b"2", made[0])
    assert await store.compare_and_set(Key("other", "d"), b"", 0)
    assert made[1]
    assert await store.delete(Key("grants", "b"), made[1])
    assert await store.compare_and_set(Key("grants", "d"), b"", 0)
    assert sorted(await store.versions("grants")) == ["a", "c", "d"]


async def test_a_caller_may_leave_at_any_moment(make: Make) -> None:
    store = make()
    for delay in (0.0, 0.0005, 0.001, 0.002, 0.005):
        for _ in range(10):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await store.append("log", b"x")
                    await store.versions("grants")
    entries = await store.entries("log")
    assert [entry.data for entry in entries] == [b"x"] * len(entries)
    assert await store.compare_and_set(KEY, b"1", 0)
