"""What a user of the store needs to be allowed: what docs/teams.md says, and no more."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from helpers.store_servers import PASSWORD, PostgresServer, RedisServer, running

from mcpzip.model.errors import StoreError
from mcpzip.store.buckets import Bucket
from mcpzip.store.opening import open_store
from mcpzip.store.records import Key
from mcpzip.store.store import Store

KEY = Key("sign-ins", "a")
PAGE = Path(__file__).parents[3] / "docs" / "teams.md"


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    with running(RedisServer()) as server:
        yield server


@pytest.fixture
def postgres_server() -> Iterator[PostgresServer]:
    with running(PostgresServer()) as server:
        yield server


async def use(store: Store) -> None:
    """Does everything once."""
    version = await store.compare_and_set(KEY, b"1", 0)
    assert version
    assert await store.get(KEY) == (b"1", version)
    assert await store.versions(KEY.table) == {"a": version}
    assert await store.delete(KEY, version)
    lease = await store.acquire("a", "one", 60)
    assert lease
    assert await store.renew(lease, 60)
    assert await store.release(lease)
    assert await store.take([[Bucket("a", 1_000, 1)]]) == [None]
    number = await store.append("log", b"1")
    assert await store.entries("log") == [(number, b"1")]
    async with store.subscribe("a") as messages:
        await store.publish("a", b"1")
        assert await anext(messages) == b"1"


async def test_a_user_of_redis_needs_the_commands_that_the_page_names(redis_server: RedisServer) -> None:
    [row] = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `redis://")]
    named = [name.lower() for name in re.findall("`([A-Z]+)`", row)]
    assert len(named) > 10
    rights = ["reset", "on", f">{PASSWORD}", "~{team}:*", "&{team}:*", *(f"+{name}" for name in named)]
    with redis.Redis.from_url(redis_server.url) as client:
        client.execute_command("ACL", "SETUSER", "mcpzip", *rights)
    url = redis_server.url.replace("//:", "//mcpzip:")
    store, other = open_store(url, "team"), open_store(url, "other")
    try:
        await use(store)
        with pytest.raises(StoreError, match=r"refuses us|lacks a right") as caught:
            await use(other)
        assert caught.value.fault == "refused"
    finally:
        await store.close()
        await other.close()


async def test_a_user_of_postgresql_may_find_the_tables_there(postgres_server: PostgresServer) -> None:
    owner = open_store(postgres_server.url, "team")
    postgres_server.run(f"CREATE USER app PASSWORD '{PASSWORD}'")
    store = open_store(postgres_server.url.replace("mcpzip:", "app:"), "team")
    try:
        with pytest.raises(StoreError, match="permission denied") as caught:
            await store.get(KEY)
        assert caught.value.fault == "refused"
        await use(owner)
        with pytest.raises(StoreError, match="permission denied"):
            await store.get(KEY)
        with psycopg.connect(postgres_server.url, autocommit=True) as connection:
            tables = "mcpzip_values, mcpzip_leases, mcpzip_entries, mcpzip_buckets"
            connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO app")  # type: ignore[call-overload]
            connection.execute("GRANT USAGE ON SEQUENCE mcpzip_numbers TO app")
            connection.execute("DELETE FROM mcpzip_entries")
        await use(store)
    finally:
        await store.close()
        await owner.close()
