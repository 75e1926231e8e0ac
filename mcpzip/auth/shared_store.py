"""Grants in a store that processes and machines share.

The rules:

1. A refresh token that rotates is shown once. Whoever shows it holds the server's lease, has read the grant
   inside the lease, and has written down that it begins (`about_to_refresh`), so that a store that takes no
   writes is known before the token is spent.
2. Every write compares versions. Whoever is too late reads again, and deletes nothing (`settled`).
3. Tokens that were granted are in no other place. If they can't be written, it is tried on and on, and the
   lease is kept until they are.
4. A process that began to refresh and is not heard of any more may still bring its tokens: the next one waits
   for `Times.grace` before it shows the same token.
5. Nothing here is asked for a request to a server: who wants to know whether somebody signed in elsewhere is
   told from memory, which messages and a look now and then keep up to date.
"""

import asyncio
import errno
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from mcpzip.auth import codec
from mcpzip.auth.grant import Grant
from mcpzip.auth.shared_record import decode, encode, opened, settled
from mcpzip.model.errors import StoreError
from mcpzip.model.principal import PrincipalId
from mcpzip.store.records import Key, Lease
from mcpzip.store.sealed_table import SealedTable
from mcpzip.store.thread import StoreThread
from mcpzip.system.backoff import Backoff
from mcpzip.system.formats import UnusableError
from mcpzip.system.sealing import KeyRing
from mcpzip.system.tasks import retrieve_exception, run_to_completion

TABLE = CHANNEL = "sign-ins"
_TRIES = 16
"""How often a write is tried against writes of others, each of which takes a person or a lease."""


class Times(NamedTuple):
    """Seconds. lease: until the lease of a process ends that doesn't renew it. grace: in which a process that
    began to refresh may still bring what it got: with a lease less than whoever signs in waits for the lock.
    poll: after which versions are looked at without a message.
    """

    lease: float = 10.0
    grace: float = 15.0
    poll: float = 10.0


USUAL = Times()


class _Known(NamedTuple):
    """What was read or written last. version: 0 for nothing. unusable: why there is no grant in it."""

    version: int
    grant: Grant | None = None
    refreshing: str = ""
    unusable: str = ""


class _Held(NamedTuple):
    """A lease, and the task that renews it."""

    lease: Lease
    renewal: "asyncio.Task[None]"


class SharedStore:
    """Grants in the store of ``thread``, sealed with the ring that ``make_ring`` makes. warn: is told a
    sentence once.
    """

    person: PrincipalId | None = None

    def __init__(
        self,
        thread: StoreThread,
        make_ring: Callable[[], KeyRing],
        namespace: str,
        warn: Callable[[str], None],
        times: Times = USUAL,
    ) -> None:
        self._thread, self._namespace = thread, namespace
        self._sealed = SealedTable(thread, make_ring, namespace, TABLE)
        self._warn, self._times = warn, times
        self._owner = secrets.token_hex(8)
        self._told: set[str] = set()
        # All of this belongs to the store's loop, but for `signature`, which reads one member of a dict.
        self._known: dict[str, _Known] = {}
        self._versions: dict[str, int] = {}
        self._asked: set[str] = set()  # other threads add to it
        self._writes = 0
        self._held: dict[str, _Held] = {}
        self._began: dict[str, _Known] = {}
        self._unwritten: dict[str, tuple[Grant, _Known]] = {}
        self._suspects: dict[str, tuple[int, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._messages: set[asyncio.Task[None]] = set()
        self._watching = False

    # ---- `mcpzip.auth.store.Store`

    def load(self, url: str, person: PrincipalId | None = None) -> Grant | None:
        """As `Store.load`; raises StoreError where nobody can know. From memory, once changes are watched."""
        grant = self._thread.call(lambda: self._load(codec.key(url, person)))
        return grant and msgspec.structs.replace(grant, url=url)

    def save(self, grant: Grant) -> Grant:
        return self._thread.call(lambda: self._save(grant))

    def about_to_refresh(self, grant: Grant) -> None:
        self._thread.call(lambda: self._begin_refresh(grant))

    def remove(self, url: str, person: PrincipalId | None = None) -> bool:
        return self._thread.call(lambda: self._remove(codec.key(url, person)))

    def all(self) -> list[Grant]:
        return self._thread.call(self._all)

    def signature(self, url: str, person: PrincipalId | None = None) -> object:
        name = codec.key(url, person)
        self._asked.add(name)
        if not self._watching:
            self._watching = True
            self._thread.begin(self._begin_watching)
        return self._versions.get(name) or None

    @asynccontextmanager
    async def locked(
        self, url: str, timeout: float = 30.0, person: PrincipalId | None = None
    ) -> AsyncIterator[None]:
        name = codec.key(url, person)
        held = await self._thread.ask(lambda: self._enter(name, timeout))
        try:
            yield
        finally:
            await run_to_completion(self._thread.ask(lambda: self._leave(name, held)))

    def close(self) -> None:
        """Writes what is not written yet, if that can be done at once, and ends the connections."""
        self._thread.close(self._flush)

    # ---- values, on the store's loop

    async def _load(self, name: str) -> Grant | None:
        if name in self._unwritten:
            return self._unwritten[name][0]
        known = self._known.get(name) if self._watching else None
        return (known or await self._read(name)).grant

    async def _read(self, name: str) -> _Known:
        value = await self._thread.store.get(Key(TABLE, name))
        known = _Known(0) if value is None else self._opened(name, value.data, value.version)
        self._know(name, known)
        return known

    def _opened(self, name: str, data: bytes, version: int) -> _Known:
        refreshing = ""
        try:
            record = decode(data)
            refreshing = record.refreshing
            return _Known(version, opened(record, self._keys(), self._namespace, name), refreshing)
        except UnusableError as error:
            self._tell(
                f"The sign-in {name[:8]}… in the store can't be opened: it {error}. Add the key to "
                '"store.keys" in the config, or sign in again: mcpzip auth login NAME.'
            )
            return _Known(version, None, refreshing, str(error))

    def _know(self, name: str, known: _Known) -> None:
        self._known[name], self._versions[name] = known, known.version

    def _keys(self) -> KeyRing:
        return self._sealed.ring()

    async def _save(self, grant: Grant) -> Grant:
        name = codec.key(grant.url, grant.person)
        began = self._began.get(name)
        before = began or self._known.get(name, _Known(0))
        try:
            return await self._write(name, grant, before)
        except StoreError as error:
            if began is None or not grant.access_token:
                raise
            self._tell(f"A refreshed sign-in is not in the store yet: {error} Until then it is tried again.")
            self._unwritten[name] = (grant, before)
            self._start(self._write_sometime(name, grant, before))
            return grant

    async def _write(self, name: str, ours: Grant, before: _Known) -> Grant:
        """Stores ``ours``, or finds that somebody else's is to be kept, which is returned. before: of what
        ours was made.
        """
        data, known = self._encoded(ours), before
        for _ in range(_TRIES):
            version = await self._thread.store.compare_and_set(Key(TABLE, name), data, known.version)
            if version is not None:
                self._wrote(name, _Known(version, ours))
                return ours
            value = await self._thread.store.get(Key(TABLE, name))
            if value is not None and value.data == data:  # an earlier try was done after all
                self._wrote(name, _Known(value.version, ours))
                return ours
            known = _Known(0) if value is None else self._opened(name, value.data, value.version)
            self._know(name, known)
            kept = settled(before.grant, ours, known.grant)
            if kept is not ours:
                return kept
        raise self._contended(name)

    def _encoded(self, grant: Grant, refreshing: str = "") -> bytes:
        try:
            return encode(grant, self._keys(), self._namespace, refreshing)
        except ValueError as error:
            raise OSError(errno.EINVAL, f"this sign-in can't be written down ({error})") from None

    def _wrote(self, name: str, known: _Known) -> None:
        self._writes += 1
        self._know(name, known)
        message = self._start(self._publish(name))
        self._messages.add(message)
        message.add_done_callback(self._messages.discard)

    async def _begin_refresh(self, grant: Grant) -> None:
        name = codec.key(grant.url, grant.person)
        known = self._known.get(name) or await self._read(name)
        if known.unusable:
            raise StoreError(self._thread.store.place, "unreadable", f"its sign-in {known.unusable}")
        data = self._encoded(grant, self._owner)
        version = await self._thread.store.compare_and_set(Key(TABLE, name), data, known.version)
        if version is None:
            raise OSError(errno.EAGAIN, "another process has just refreshed this sign-in")
        self._writes += 1
        # Its signature stays: there is nothing that anybody has to read again.
        self._known[name] = self._began[name] = _Known(version, grant, self._owner)

    async def _remove(self, name: str) -> bool:
        self._unwritten.pop(name, None)
        for _ in range(_TRIES):
            value = await self._thread.store.get(Key(TABLE, name))
            if value is None:
                self._wrote(name, _Known(0))
                return False
            if await self._thread.store.delete(Key(TABLE, name), value.version):
                self._wrote(name, _Known(0))
                return True
        raise self._contended(name)

    async def _all(self) -> list[Grant]:
        found = [await self._load(name) for name in await self._thread.store.versions(TABLE)]
        return sorted((grant for grant in found if grant), key=lambda grant: grant.url)

    def _contended(self, name: str) -> OSError:
        return OSError(errno.EAGAIN, f"other processes keep changing the sign-in {name[:8]}…")

    # ---- leases, on the store's loop

    async def _enter(self, name: str, timeout: float) -> _Held:
        """Raises TimeoutError and StoreError."""
        end = time.monotonic() + timeout
        pauses = Backoff(0.05, 0.5, jitter=0.5)
        while True:
            lease = await self._acquire(name)
            if lease is not None:
                break
            if time.monotonic() >= end:
                raise TimeoutError("locked by another process")
            await asyncio.sleep(min(pauses.next(), max(0.0, end - time.monotonic())))
        held = self._held[name] = _Held(lease, asyncio.create_task(self._renew(lease)))
        try:
            await self._wait_for_refresher(name, end)
        except BaseException:
            self._start(self._leave(name, held))
            raise
        return held

    async def _acquire(self, name: str) -> Lease | None:
        """A caller that is cancelled, or has no answer, leaves no lease behind if it can be helped."""
        task = asyncio.ensure_future(self._thread.store.acquire(name, self._owner, self._times.lease))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._start(self._release_later(task))
            raise

    async def _release_later(self, task: "asyncio.Future[Lease | None]") -> None:
        with suppress(StoreError):
            if lease := await task:
                await self._thread.store.release(lease)

    async def _renew(self, lease: Lease) -> None:
        """Until it is lost: then whoever holds it finds by its version whether it was too late."""
        while True:
            await asyncio.sleep(self._times.lease / 3)
            with suppress(StoreError):
                if not await self._thread.store.renew(lease, self._times.lease):
                    return

    async def _wait_for_refresher(self, name: str, end: float) -> None:
        """Waits while another process may still bring the tokens of a refresh that it began."""
        while True:
            known = await self._read(name)
            if known.refreshing in ("", self._owner):
                self._suspects.pop(name, None)
                return
            version, since = self._suspects.get(name, (0, 0.0))
            if version != known.version:
                since = time.monotonic()
                self._suspects[name] = (known.version, since)
            left = since + self._times.grace - time.monotonic()
            if left <= 0:
                return
            if time.monotonic() >= end:
                raise TimeoutError("another process has begun to refresh this sign-in")
            await asyncio.sleep(min(0.25, left, max(0.01, end - time.monotonic())))

    async def _leave(self, name: str, held: _Held) -> None:
        if name in self._unwritten:
            return  # whoever writes it leaves
        self._held.pop(name, None)
        self._began.pop(name, None)
        held.renewal.cancel()
        with suppress(StoreError):
            await self._thread.store.release(held.lease)

    # ---- tokens that are not written yet, on the store's loop

    async def _write_sometime(self, name: str, grant: Grant, before: _Known) -> None:
        pauses = Backoff(0.1, 1.0)
        while name in self._unwritten:
            await asyncio.sleep(pauses.next())
            with suppress(OSError):
                await self._write(name, grant, before)
                self._unwritten.pop(name, None)
        if held := self._held.get(name):
            await self._leave(name, held)

    async def _flush(self) -> None:
        for name, (grant, before) in [*self._unwritten.items()]:
            with suppress(OSError):
                async with asyncio.timeout(1.0):
                    await self._write(name, grant, before)
                    self._unwritten.pop(name, None)
        for name, held in [*self._held.items()]:
            with suppress(OSError):
                async with asyncio.timeout(1.0):
                    await self._leave(name, held)
        if self._messages:  # others would notice by looking, which is later
            await asyncio.wait([*self._messages], timeout=1.0)

    # ---- what others do, on the store's loop

    async def _begin_watching(self) -> None:
        self._start(self._watch())

    async def _watch(self) -> None:
        news = asyncio.Event()
        listening: asyncio.Task[None] | None = None
        while True:
            if listening is None or listening.done():
                listening = self._start(self._listen(news))
            news.clear()
            with suppress(OSError):
                await self._look()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._times.poll):
                    await news.wait()

    async def _listen(self, news: asyncio.Event) -> None:
        with suppress(OSError):
            async with self._thread.store.subscribe(CHANNEL) as messages:
                news.set()  # what was said before
                async for _ in messages:
                    news.set()

    async def _look(self) -> None:
        writes = self._writes
        versions = await self._thread.store.versions(TABLE)
        for name in {*self._versions, *versions}:
            version = versions.get(name, 0)
            if writes != self._writes:
                return  # it may be older than what we know
            if name not in self._known:
                self._versions[name] = version
            elif version != self._versions.get(name, 0) and name not in self._began:
                await self._read(name)
        for name in [*self._asked]:  # what a connection will need counts on while the store is away
            if name not in self._known and writes == self._writes:
                if versions.get(name):
                    await self._read(name)
                else:
                    self._know(name, _Known(0))

    async def _publish(self, name: str) -> None:
        with suppress(OSError):
            await self._thread.store.publish(CHANNEL, name.encode())

    # ----

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(retrieve_exception)
        return task

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._warn(sentence)
