"""Sign-ins in a store that processes share: what is sealed, who wins, who waits."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from helpers.driver import until
from helpers.grant_stores import GRANT, OTHER, SECRETS, URL
from msgspec.structs import replace

from mcpzip.auth import codec, shared_record
from mcpzip.auth.grant import Grant
from mcpzip.auth.shared_store import CHANNEL, TABLE, SharedStore, Times
from mcpzip.auth.store import PersonStore
from mcpzip.model.errors import StoreError
from mcpzip.store.memory_backend import Memory, MemoryBackend
from mcpzip.store.records import Key, Value
from mcpzip.store.store import Store
from mcpzip.store.thread import StoreThread
from mcpzip.system.sealing import KeyRing, SealingMissingError

NEW, OLD = b"n" * 32, b"o" * 32
TIMES = Times(lease=0.3, grace=0.4, poll=0.02)
KEY = Key(TABLE, codec.key(URL))
Make = Callable[..., SharedStore]


class Flaky(MemoryBackend):
    """away: whether it can't be used."""

    away = False

    async def get(self, key: Key) -> Value | None:
        self._look()
        return await super().get(key)

    async def compare_and_set(self, key: Key, data: bytes, version: int, most: int) -> int | None:
        self._look()
        return await super().compare_and_set(key, data, version, most)

    async def acquire(self, name: str, owner: str, milliseconds: int) -> int | None:
        self._look()
        return await super().acquire(name, owner, milliseconds)

    async def renew(self, name: str, owner: str, number: int, milliseconds: int) -> bool:
        self._look()
        return await super().renew(name, owner, number, milliseconds)

    def _look(self) -> None:
        if self.away:
            raise StoreError("memory", "away", "it can't be used")


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def backend(memory: Memory) -> Flaky:
    """Of all processes."""
    return Flaky(memory)


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def make(backend: Flaky, warnings: list[str]) -> Iterator[Make]:
    """The store as one more process has it."""
    made: list[SharedStore] = []

    def another(*keys: bytes, namespace: str = "team", times: Times = TIMES) -> SharedStore:
        thread = StoreThread(lambda: Store(backend))
        made.append(SharedStore(thread, lambda: KeyRing(keys or (NEW,)), namespace, warnings.append, times))
        return made[-1]

    yield another
    for each in made:
        each.close()


def raw(memory: Memory) -> bytes:
    return memory.values[KEY].data


# ---- what is kept


def test_what_is_saved_comes_back_until_it_is_removed(make: Make, warnings: list[str]) -> None:
    store, other = make(), make()
    assert store.load(URL) is None
    assert not store.remove(URL)
    assert store.save(GRANT) is GRANT
    another = replace(GRANT, url=OTHER, access_token="another")
    assert other.save(another) is another
    assert (other.load(URL), store.load(OTHER)) == (GRANT, another)
    assert store.all() == [GRANT, another]
    assert other.remove(URL)
    assert not store.remove(URL)
    assert (store.load(URL), store.all()) == (None, [another])
    assert warnings == []


def test_what_a_person_signed_in_with_is_theirs_alone(make: Make, memory: Memory) -> None:
    store, other = make(), make()
    ann, bob = (PersonStore(store, ("https://login.example", name)) for name in ("ann", "bob"))
    theirs = replace(GRANT, person=ann.person, access_token="of-ann")
    store.save(GRANT)
    ann.save(theirs)
    assert (PersonStore(other, ann.person).load(URL), other.load(URL), bob.load(URL)) == (theirs, GRANT, None)
    keys = [Key(TABLE, codec.key(URL, one.person)) for one in (ann, bob)]
    memory.values[keys[1]] = memory.values[keys[0]]  # somebody who can write to the store puts it there
    assert PersonStore(make(), bob.person).load(URL) is None
    assert ann.remove(URL)
    assert (ann.load(URL), store.load(URL)) == (None, GRANT)


def test_nothing_of_it_is_readable_in_the_store(make: Make, memory: Memory) -> None:
    make().save(GRANT)
    assert not any(secret in raw(memory) for secret in SECRETS)
    assert b"example" not in raw(memory)


def test_keys_rotate_without_losing_a_sign_in(make: Make, memory: Memory, warnings: list[str]) -> None:
    make(OLD).save(GRANT)
    before = raw(memory)
    rotating = make(NEW, OLD)
    assert rotating.load(URL) == GRANT
    rotating.save(GRANT)  # with the first key
    assert raw(memory) != before
    assert make(NEW).load(URL) == GRANT
    assert warnings == []
    assert make(OLD).load(URL) is None
    [warning] = warnings
    assert "a key that isn't in the ring" in warning
    assert "store.keys" in warning


def test_what_cannot_be_opened_is_replaced_by_a_sign_in_alone(make: Make, memory: Memory) -> None:
    make(OLD).save(GRANT)
    before, store = raw(memory), make(NEW)
    assert store.load(URL) is None
    with pytest.raises(StoreError, match="isn't in the ring") as caught:
        store.about_to_refresh(GRANT)
    assert caught.value.fault == "unreadable"
    assert raw(memory) == before
    store.save(GRANT)
    assert store.load(URL) == GRANT


@pytest.mark.parametrize(
    "what", ["another server's", "another namespace's", "changed", "cut", "of a later version"]
)
def test_what_somebody_put_there_is_not_used(
    make: Make, memory: Memory, warnings: list[str], what: str
) -> None:
    make().save(GRANT)
    make().save(replace(GRANT, url=OTHER))
    good = memory.values[KEY]
    record = shared_record.decode(good.data)
    data = {
        "another server's": memory.values[Key(TABLE, codec.key(OTHER))].data,
        "another namespace's": shared_record.encode(GRANT, KeyRing([NEW]), "other"),
        "changed": good.data.replace(record.sealed[30:40].encode(), record.sealed[30:40].swapcase().encode()),
        "cut": good.data[:-20],
        "of a later version": good.data.replace(b'"version":1', b'"version":2'),
    }[what]
    memory.values[KEY] = Value(data, good.version)
    assert make().load(URL) is None
    assert len(warnings) == 1


def test_without_cryptography_it_says_what_to_install(warnings: list[str], backend: Flaky) -> None:
    def missing() -> KeyRing:
        raise SealingMissingError

    store = SharedStore(StoreThread(lambda: Store(backend)), missing, "team", warnings.append, TIMES)
    try:
        with pytest.raises(StoreError, match="pip install"):
            store.save(GRANT)
    finally:
        store.close()


# ---- who wins

BEFORE = replace(GRANT, obtained_at=1.0)
REFRESHED = replace(GRANT, access_token="new", refresh_token="next", obtained_at=2.0)
NOTES = (
    replace(GRANT, access_token="", refresh_token="", refused="invalid_grant"),
    replace(GRANT, failures=1, retry_at=60.0, refused="it failed"),
    replace(GRANT, wanted_scope="more"),
)


@pytest.mark.parametrize("note", NOTES)
def test_a_note_never_replaces_tokens_that_came_meanwhile(make: Make, note: Grant) -> None:
    winner, loser = make(), make()
    winner.save(BEFORE)
    assert loser.load(URL) == BEFORE
    winner.save(REFRESHED)
    assert loser.save(note) == REFRESHED
    assert make().load(URL) == REFRESHED


@pytest.mark.parametrize("note", NOTES)
def test_tokens_replace_a_note_that_came_meanwhile(make: Make, note: Grant) -> None:
    """A process was stopped for longer than its lease; another one showed the same token in vain."""
    winner, loser = make(), make()
    winner.save(BEFORE)
    winner.about_to_refresh(BEFORE)
    loser.load(URL)
    loser.save(note)
    assert winner.save(REFRESHED) is REFRESHED
    assert make().load(URL) == REFRESHED


def test_of_two_who_were_granted_tokens_the_later_one_wins(make: Make) -> None:
    one, other = make(), make()
    one.save(BEFORE)
    one.about_to_refresh(BEFORE)
    other.load(URL)
    later = replace(REFRESHED, access_token="later", obtained_at=3.0)
    other.save(later)
    assert one.save(REFRESHED) == later
    assert make().load(URL) == later


def test_whoever_is_too_late_does_not_begin_to_refresh(make: Make) -> None:
    one, other = make(), make()
    one.save(BEFORE)
    other.load(URL)
    one.save(REFRESHED)
    with pytest.raises(OSError, match="just refreshed"):
        other.about_to_refresh(BEFORE)
    assert make().load(URL) == REFRESHED


def test_a_sign_in_that_was_removed_meanwhile_comes_back_with_new_tokens(make: Make) -> None:
    one, other = make(), make()
    one.save(BEFORE)
    one.about_to_refresh(BEFORE)
    assert other.remove(URL)
    assert one.save(REFRESHED) is REFRESHED


# ---- who waits


async def test_a_lock_has_one_holder_in_all_processes(make: Make) -> None:
    one, other = make(), make()
    async with one.locked(URL, 0):
        for each in (one, other):
            with pytest.raises(TimeoutError, match="another process"):
                async with each.locked(URL, 0.05):
                    pass
        async with other.locked(OTHER, 0):
            pass
        await asyncio.sleep(2 * TIMES.lease)
        with pytest.raises(TimeoutError):
            async with other.locked(URL, 0):
                pass
    async with other.locked(URL, 5):
        pass


async def test_a_lock_is_given_back_by_whoever_leaves_early(make: Make) -> None:
    one, other = make(), make()
    holding = asyncio.Event()

    async def hold() -> None:
        async with one.locked(URL):
            holding.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await holding.wait()
    waiter = asyncio.create_task(hold())
    await asyncio.sleep(0.1)
    for each in (waiter, holder):
        each.cancel()
    await asyncio.gather(waiter, holder, return_exceptions=True)
    async with other.locked(URL, 5):
        pass


async def test_inside_the_lock_everybody_sees_what_was_written_last(make: Make) -> None:
    one, other = make(times=Times(1, 1, 60)), make()
    one.save(BEFORE)
    one.signature(URL)  # from now on it answers from memory
    other.load(URL)
    other.save(REFRESHED)
    async with one.locked(URL):
        assert one.load(URL) == REFRESHED


async def test_one_who_began_to_refresh_is_waited_for(make: Make) -> None:
    lost, other = make(), make()
    lost.save(BEFORE)
    lost.about_to_refresh(BEFORE)  # and is not heard of any more
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match="begun to refresh"):
        async with other.locked(URL, 0.05):
            pass
    async with other.locked(URL, 5):
        assert time.monotonic() - begun >= TIMES.grace
        other.about_to_refresh(BEFORE)
        other.save(REFRESHED)
    async with make().locked(URL, 0):
        pass


async def test_one_who_brings_its_tokens_late_ends_the_waiting(make: Make) -> None:
    slow, other = make(), make(times=Times(1, 60, 1))
    slow.save(BEFORE)
    slow.about_to_refresh(BEFORE)

    async def wait() -> Grant | None:
        async with other.locked(URL, 10):
            return other.load(URL)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0.1)
    assert not waiting.done()
    slow.save(REFRESHED)
    assert await waiting == REFRESHED


# ---- a store that is away


async def test_tokens_are_kept_until_they_can_be_written(
    make: Make, backend: Flaky, warnings: list[str]
) -> None:
    store, other = make(), make()
    store.save(BEFORE)
    async with store.locked(URL):
        store.about_to_refresh(BEFORE)
        backend.away = True
        assert store.save(REFRESHED) is REFRESHED
    assert store.load(URL) == REFRESHED
    with pytest.raises(StoreError):
        other.load(URL)
    backend.away = False
    with pytest.raises(TimeoutError):  # its lock is kept
        async with other.locked(URL, 0):
            pass
    async with other.locked(URL, 5):
        assert other.load(URL) == REFRESHED
    assert len(warnings) == 1


async def test_tokens_that_are_not_written_yet_are_written_at_the_end(make: Make, backend: Flaky) -> None:
    store = make()
    store.save(BEFORE)
    async with store.locked(URL):
        store.about_to_refresh(BEFORE)
        backend.away = True
        store.save(REFRESHED)
    backend.away = False
    await asyncio.to_thread(store.close)
    assert make().load(URL) == REFRESHED
    async with make().locked(URL, 0):
        pass


async def test_no_refresh_begins_where_nothing_can_be_written(make: Make, backend: Flaky) -> None:
    store = make()
    store.save(BEFORE)
    backend.away = True
    with pytest.raises(StoreError):
        store.about_to_refresh(BEFORE)
    with pytest.raises(StoreError):  # nor does anybody who signs in believe that it is kept
        store.save(REFRESHED)
    with pytest.raises(StoreError):
        async with store.locked(URL):
            pass


# ---- what others do


def test_a_change_by_another_process_is_noticed_without_asking(
    make: Make, backend: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = make(), make()
    assert store.signature(URL) is None  # and watches from now on, in the store's thread
    other.save(BEFORE)
    before = until(lambda: store.signature(URL))
    assert store.load(URL) == BEFORE
    other.save(REFRESHED)
    until(lambda: store.signature(URL) != before)
    backend.away = True
    assert store.load(URL) == REFRESHED
    backend.away = False
    other.remove(URL)
    until(lambda: store.signature(URL) is None)
    assert store.load(URL) is None


def test_what_was_asked_about_counts_on_while_the_store_is_away(
    make: Make, backend: Flaky, memory: Memory
) -> None:
    make().save(GRANT)
    store = make()
    asked = [URL, "https://other.example/mcp"]
    for url in asked:
        store.signature(url)
    until(lambda: codec.key(asked[1]) in store._known)
    backend.away = True
    assert store.load(URL) == GRANT
    assert store.load(asked[1]) is None
    with pytest.raises(StoreError, match="can't be used"):
        store.load("https://third.example/mcp")


def test_others_are_told_also_by_who_ends_at_once(
    make: Make, backend: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def publish(channel: str, message: bytes) -> None:
        await asyncio.sleep(0.05)
        told.append(channel)

    monkeypatch.setattr(backend, "publish", publish)
    store = make()
    store.save(GRANT)
    store.close()
    assert told == [CHANNEL]


def test_what_is_closed_is_an_error(make: Make) -> None:
    store = make()
    store.save(GRANT)
    store.close()
    store.close()
    with pytest.raises(OSError, match="closed"):
        store.load(URL)
