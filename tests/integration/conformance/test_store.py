"""The store of a check, and the relay by which it is taken away."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcpzip_conformance.declaration import Store
from mcpzip_conformance.errors import NotPlayableError
from mcpzip_conformance.http_subject import free_port
from mcpzip_conformance.processes import environment
from mcpzip_conformance.store import RunningStore

COUNTER = (sys.executable, "-m", "mcpzip_conformance.mutants.relay.counter", "{store_port}")
PATIENCE = 20.0


async def started(declared: Store, tmp_path: Path, patience: float = PATIENCE) -> RunningStore:
    return await RunningStore.start(declared, tmp_path, environment(tmp_path, tmp_path, {}), patience)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RunningStore]:
    store = await started(Store(command=COUNTER), tmp_path)
    try:
        yield store
    finally:
        await store.end()


class Client:
    """A connection to the store."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, store: RunningStore) -> "Client":
        host, _, port = store.address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def count(self) -> bytes:
        self.begin()
        return await self.answer()

    def begin(self) -> None:
        self._writer.write(b"INCR calls\r\n")

    async def answer(self) -> bytes:
        return await asyncio.wait_for(self._reader.readline(), PATIENCE)

    async def is_over(self) -> bool:
        try:
            return await self.answer() == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self._writer.close()


async def test_it_passes_on_refuses_and_is_back(store: RunningStore) -> None:
    client = await Client.to(store)
    assert [await client.count(), await client.count()] == [b":1\r\n", b":2\r\n"]
    await store.refuse()
    assert await client.is_over()
    with pytest.raises(ConnectionError):
        await Client.to(store)
    await store.mend()
    again = await Client.to(store)
    assert await again.count() == b":3\r\n"
    for each in (client, again):
        each.close()


async def test_what_is_held_is_passed_on_later(store: RunningStore) -> None:
    client = await Client.to(store)
    assert await client.count() == b":1\r\n"
    store.hold()
    client.begin()
    late = await Client.to(store)
    late.begin()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.answer(), 0.2)
    await store.mend()
    assert {await client.answer(), await late.answer()} == {b":2\r\n", b":3\r\n"}
    for each in (client, late):
        each.close()


async def test_one_that_runs_already_is_used_and_left_alone(store: RunningStore, tmp_path: Path) -> None:
    other = await started(Store(address=store.address), tmp_path)
    client = await Client.to(other)
    assert await client.count() == b":1\r\n"
    await other.end()
    client.close()
    client = await Client.to(store)
    assert await client.count() == b":2\r\n"
    client.close()


async def test_without_a_store_it_says_why(tmp_path: Path) -> None:
    with pytest.raises(NotPlayableError, match="no-such-store isn't on the PATH"):
        await started(Store(command=("no-such-store", "{store_port}")), tmp_path)
    with pytest.raises(
        NotPlayableError, match=f"No store takes connections after {sys.executable} was started"
    ):
        await started(Store(command=(sys.executable, "-c", "raise SystemExit('no room')")), tmp_path)
    nowhere = f"127.0.0.1:{free_port()}"
    with pytest.raises(NotPlayableError, match=f"No store takes connections at {nowhere}"):
        await started(Store(address=nowhere), tmp_path, 0.1)
