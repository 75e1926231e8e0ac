"""A store that is away, silent, read-only or full: an error says so, in time, and later it works again."""

import asyncio
import itertools
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import psycopg
import pytest
from helpers.store_servers import PASSWORD, SERVERS, StoreServer, running

from mcpzip.model.errors import McpzipError, StoreError
from mcpzip.store.buckets import Bucket
from mcpzip.store.opening import open_store
from mcpzip.store.records import Key
from mcpzip.store.store import Store

KEY = Key("grants", "a")
DEADLINE = 2.0
SLACK = 3.0  # of a busy machine
SCHEMES = {"redis": "redis", "postgres": "postgresql"}
numbers = itertools.count()


@pytest.fixture(scope="module", params=[*SERVERS])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(kind: str) -> Iterator[StoreServer]:
    with running(SERVERS[kind]()) as server:
        yield server


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """A store of which nothing is known yet, which closes in time whatever became of it."""
    store = open_store(url, f"test-{next(numbers)}", DEADLINE)
    try:
        yield store
    finally:
        begun = time.monotonic()
        await store.close()
        assert time.monotonic() - begun < SLACK


@pytest.fixture
async def store(server: StoreServer) -> AsyncIterator[Store]:
    async with opened(server.url) as store:
        yield store


async def faults(store: Store, version: int) -> set[str]:
    """What every operation says is wrong; "" for those that work. Each ends in time."""
    lease = ("a", f"owner-{next(numbers)}", 60)
    operations = {
        "get": store.get(KEY),
        "versions": store.versions("grants"),
        "set": store.compare_and_set(KEY, b"2", version),
        "acquire": store.acquire(*lease),
        "take": store.take([[Bucket("a", 1_000, 1)]]),
        "append": store.append("log", b"x"),
        "entries": store.entries("log"),
        "publish": store.publish("a", b"x"),
        "subscribe": subscribed(store),
    }
    begun = time.monotonic()
    results = await asyncio.gather(*operations.values(), return_exceptions=True)
    assert time.monotonic() - begun < DEADLINE + SLACK
    found = set()
    for name, error in zip(operations, results, strict=True):
        if isinstance(error, BaseException):
            assert isinstance(error, StoreError), name
            assert isinstance(error, McpzipError)
            assert isinstance(error, OSError)
            assert store.place in str(error)
            assert PASSWORD not in str(error)
            assert "\n" not in str(error)
            found.add(f"{name}: {error.fault}")
    return found


async def subscribed(store: Store) -> None:
    async with store.subscribe("a"):
        pass


ALL = ("get", "versions", "set", "acquire", "take", "append", "entries", "publish", "subscribe")
WRITES = ("set", "acquire", "take", "append")


def each(names: tuple[str, ...], fault: str) -> set[str]:
    return {f"{name}: {fault}" for name in names}


async def works_again(store: Store, data: bytes) -> None:
    """With what was stored, and without a client that is begun anew."""
    async with asyncio.timeout(20):
        while True:
            try:
                value = await store.get(KEY)
                break
            except StoreError:
                await asyncio.sleep(0.05)
    assert value
    assert value.data == data
    assert await store.compare_and_set(KEY, b"again", value.version)
    assert await store.append("log", b"again")
    async with store.subscribe("a") as messages, asyncio.timeout(10):
        await store.publish("a", b"again")
        assert await anext(messages) == b"again"


async def test_a_store_that_is_killed_is_away_until_it_is_back(server: StoreServer, store: Store) -> None:
    version = await store.compare_and_set(KEY, b"1", 0)
    assert version
    async with store.subscribe("a") as messages:
        server.kill()
        with pytest.raises(StoreError) as caught:
            async with asyncio.timeout(10):
                await anext(messages)
        assert caught.value.fault == "away"
    assert await faults(store, version) == each(ALL, "away")
    server.start()
    await works_again(store, b"1")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the processes of a server in /proc")
async def test_a_store_that_is_paused_is_slow_and_never_hangs(server: StoreServer, store: Store) -> None:
    version = await store.compare_and_set(KEY, b"1", 0)
    assert version
    server.signal_all(signal.SIGSTOP)
    try:
        for _ in range(2):  # on the connections there were, and on new ones
            assert await faults(store, version) == each(ALL, "slow")
        async with opened(server.url) as another:
            assert await faults(another, 0) == each(ALL, "slow")
    finally:
        server.signal_all(signal.SIGCONT)
    # What was sent meanwhile may have been done since.
    value = await store.get(KEY)
    assert value
    assert value.data in (b"1", b"2")
    await works_again(store, value.data)


async def test_a_store_that_is_read_only_can_be_read(server: StoreServer, store: Store) -> None:
    version = await store.compare_and_set(KEY, b"1", 0)
    assert version
    server.read_only(on=True)
    try:
        await until(store, writable=False)
        assert await faults(store, version) == each(WRITES, "read-only")
        assert await store.get(KEY) == (b"1", version)
    finally:
        server.read_only(on=False)
    await until(store, writable=True)
    await works_again(store, b"1")


async def until(store: Store, *, writable: bool) -> None:
    """PostgreSQL reads its settings in its own time."""
    async with asyncio.timeout(10):
        for wait in itertools.repeat(0.05):
            [found] = await asyncio.gather(store.append("log", b"x"), return_exceptions=True)
            if isinstance(found, StoreError) is not writable:
                return
            await asyncio.sleep(wait)


async def test_a_store_that_is_full_can_be_read_and_emptied(kind: str) -> None:
    server = SERVERS[kind]()
    try:
        server.start()
        async with opened(server.url) as store:
            version = await store.compare_and_set(KEY, b"1", 0)
            assert version
            server.full()
            for _ in range(2):
                with pytest.raises(StoreError, match="Give it more room") as caught:
                    await store.compare_and_set(KEY, b"2", version)
                assert caught.value.fault == "full"
            assert await store.get(KEY) == (b"1", version)
            assert await store.delete(KEY, version)
            assert await store.versions("grants") == {}
    finally:
        server.end()


async def test_a_wrong_password_is_refused(server: StoreServer) -> None:
    async with opened(server.url.replace(PASSWORD, "hush-other")) as store:
        with pytest.raises(StoreError, match='Correct "store" in the config') as caught:
            await store.get(KEY)
        assert caught.value.fault == "refused"
        assert "hush" not in str(caught.value)


async def test_where_nothing_listens_the_store_is_away(kind: str) -> None:
    async with asyncio.timeout(30), opened(f"{SCHEMES[kind]}://:{PASSWORD}@127.0.0.1:1/0") as store:
        assert await faults(store, 0) == each(ALL, "away")


@pytest.mark.parametrize(
    ("text", "fault"),
    [(None, "slow"), (b"", "away"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "away")],
    ids=["silent", "hangs up", "HTTP"],
)
async def test_what_is_no_store_is_away_or_slow(kind: str, text: bytes | None, fault: str) -> None:
    answered: set[asyncio.Task[None]] = set()

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        answered.add(task)
        try:
            with suppress(OSError):
                if text is not None:
                    writer.write(text)
                    writer.write_eof()
                await reader.read()
        finally:
            writer.transport.abort()

    listener = await asyncio.start_server(say, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        async with opened(f"{SCHEMES[kind]}://u:{PASSWORD}@127.0.0.1:{port}/0") as store:
            with pytest.raises(StoreError) as caught:
                await store.get(KEY)
            assert caught.value.fault == fault, caught.value
    finally:
        listener.close()
        for task in answered:
            task.cancel()
        await asyncio.gather(*answered, return_exceptions=True)


@pytest.mark.parametrize("kind", ["postgres"], indirect=True, scope="module")
async def test_a_caller_that_leaves_as_the_connection_is_made_leaves_none_open(
    server: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[psycopg.AsyncConnection[object]] = []
    leaving: list[asyncio.Task[None]] = []
    initialize = psycopg.AsyncConnection.__init__

    def leave() -> None:
        task.cancel()
        leaving.append(asyncio.create_task(store.close()))

    def observed(connection: "psycopg.AsyncConnection[object]", *arguments: object) -> None:
        initialize(connection, *arguments)  # type: ignore[arg-type]
        made.append(connection)
        asyncio.get_running_loop().call_soon(leave)

    monkeypatch.setattr(psycopg.AsyncConnection, "__init__", observed)
    store = open_store(server.url, f"test-{next(numbers)}", DEADLINE)
    task = asyncio.create_task(store.get(KEY))
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.gather(*leaving)
    assert [connection.closed for connection in made] == [True]
