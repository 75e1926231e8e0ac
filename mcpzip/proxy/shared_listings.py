"""What servers listed, in the store that replicas share: one of them asks a server, and the others read.

The rules: nothing depends on the store. Without it, or if it is slow, each replica asks the servers by
itself, as it does without a store, and it is not asked again for a while. What is read there is a listing as
any other: it passes the pins before anything of it is offered (`pins.gate`).

A listing is sealed, and bound to the name and the settings of its server, with the values of variables: a
replica with other settings has no use for it.
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from mcpzip.catalog import Listed
from mcpzip.catalog.shared_listing import decode, encode
from mcpzip.config.schema import ServerConfig, StoreConfig
from mcpzip.config.store_opening import ring_of
from mcpzip.model import limits
from mcpzip.store.opening import open_store
from mcpzip.store.records import Key, Lease
from mcpzip.store.store import Opener
from mcpzip.store.thread import StoreThread
from mcpzip.system.event_log import note
from mcpzip.system.formats import UnusableError
from mcpzip.system.sealing import KeyRing, SealError, SealingMissingError, bound_to
from mcpzip.system.tasks import retrieve_exception
from mcpzip.system.threads import in_thread

T = TypeVar("T")
TABLE = CHANNEL = "catalog"
_PURPOSE = "catalog"
_TRIES = 4
"""How often a write is tried against writes of others."""


class Times(NamedTuple):
    """Seconds. lease: in which a replica has a server to itself. wait: for that replica, before another one
    asks the server too; less than a lease, so that nobody waits for one that was killed. look: between two
    looks for what others listed while no message comes. rest: in which a store that failed isn't asked.
    pause: between two tries to get the lease. write: in which the same isn't written again.
    """

    lease: float = 30.0
    wait: float = 3.0
    look: float = 30.0
    rest: float = 10.0
    pause: float = 0.25
    write: float = 60.0


USUAL = Times()


class _Written(NamedTuple):
    """What was written last of a server. at: when it was listed, Unix time. version: in the store."""

    digest: bytes
    at: float
    version: int


class SharedListings:
    """The listings in the store of ``config``. For one event loop; what happens to the store happens on
    another (`store.thread`).
    """

    def __init__(self, config: StoreConfig, opener: Opener | None = None, times: Times | None = None) -> None:
        """opener: opens the store; default: as ``config`` says."""
        self._thread = StoreThread(
            opener or (lambda: open_store(config.url, config.namespace, limits.STORE_LISTING))
        )
        self._namespace, self._make_ring = config.namespace, ring_of(config)
        self._times, self._owner = times or USUAL, secrets.token_hex(8)
        # All of this belongs to the store's loop.
        self._ring: KeyRing | None = None
        self._leases: dict[str, Lease] = {}
        self._versions: dict[str, int] = {}
        self._watched: dict[str, ServerConfig] = {}
        self._written: dict[str, _Written] = {}
        self._down_until = float("-inf")
        self._tasks: set[asyncio.Task[None]] = set()

    async def recent(self, server: ServerConfig, max_age: float, after: float) -> Listed | None:
        """What ``server`` listed in the last ``max_age`` seconds, and after the Unix time ``after``. If a
        replica asks the server now, waits for that.

        None: the caller has to ask the server, and then calls `offer` or `give_up`.
        """
        return await self._asked(lambda: self._recent(server, max_age, after))

    async def read(self, server: ServerConfig, after: float) -> Listed | None:
        """What ``server`` listed last, if that was after the Unix time ``after``."""
        return await self._asked(lambda: self._read(server, after))

    def offer(self, server: ServerConfig, listed: Listed) -> None:
        """``server`` has ``listed``: others may read it."""
        self._begin(lambda: self._write(server, listed))

    def give_up(self, server: str) -> None:
        """``server`` could not be listed."""
        self._begin(lambda: self._release(server))

    def watch(self, servers: Iterable[ServerConfig], changed: Callable[[str], None]) -> None:
        """Calls ``changed`` with the names of those ``servers`` that others listed, from now on."""
        loop, watched = asyncio.get_running_loop(), {_key(server.name).name: server for server in servers}

        def tell(server: str) -> None:
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(changed, server)

        async def begin() -> None:
            first, self._watched = not self._tasks, watched
            if first:
                task = asyncio.get_running_loop().create_task(self._watch(tell))
                self._tasks.add(task)
                task.add_done_callback(retrieve_exception)

        with suppress(OSError):  # it is being closed
            self._thread.begin(begin)

    async def close(self) -> None:
        """Ends the leases and the connections."""
        await in_thread(lambda: self._thread.close(self._end), "catalog")

    # ---- between the loops

    async def _asked(self, work: Callable[[], Coroutine[Any, Any, T | None]]) -> T | None:
        try:
            return await self._thread.ask(lambda: self._tried(work()))
        except OSError:  # it is being closed
            return None

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with suppress(OSError):  # it is being closed
            self._thread.begin(lambda: self._tried(work()))

    # ---- on the store's loop

    async def _tried(self, work: Coroutine[Any, Any, T | None]) -> T | None:
        if time.monotonic() < self._down_until:
            work.close()
            return None
        try:
            return await work
        except OSError as error:
            self._failed(str(error))
        except SealingMissingError:
            self._failed("the package cryptography is missing")
        return None

    def _failed(self, why: str) -> None:
        self._down_until = time.monotonic() + self._times.rest
        self._leases.clear()  # they end by themselves
        note("warning", "", "store", f"listings are not shared for {self._times.rest:g} s: {why}")

    async def _recent(self, server: ServerConfig, max_age: float, after: float) -> Listed | None:
        end = time.monotonic() + self._times.wait
        while server.name not in self._leases:
            if (found := await self._read_recent(server, max_age, after)) is not None:
                return found
            if time.monotonic() >= end:
                break
            name = f"catalog-{_key(server.name).name}"
            lease = await self._thread.store.acquire(name, self._owner, self._times.lease)
            if lease is None:
                await asyncio.sleep(self._times.pause)
            elif (found := await self._read_recent(server, max_age, after)) is not None:  # written meanwhile
                await self._thread.store.release(lease)
                return found
            else:
                self._leases[server.name] = lease
        return None

    async def _read_recent(self, server: ServerConfig, max_age: float, after: float) -> Listed | None:
        found = await self._read(server, after)
        return found if found is not None and time.time() - found.at <= max_age else None

    async def _read(self, server: ServerConfig, after: float) -> Listed | None:
        value = await self._thread.store.get(_key(server.name))
        if value is None:
            return None
        self._versions[_key(server.name).name] = value.version
        found = self._opened(server, value.data)
        return found if found is not None and found.at > after else None

    def _opened(self, server: ServerConfig, data: bytes) -> Listed | None:
        try:
            text = self._keys().open(_PURPOSE, data.decode("ascii", "replace"), self._bound(server))
            return decode(text, server.name, server.fingerprint, time.time())
        except (SealError, UnusableError) as error:
            note("debug", server.name, "store", f"its listing in the store isn't used: it {error}")
            return None

    async def _write(self, server: ServerConfig, listed: Listed) -> None:
        try:
            digest = hashlib.sha256(encode(replace(listed, at=0.0)) + self._bound(server)).digest()
            if self._is_written(server, listed, digest):
                return
            data = self._keys().seal(_PURPOSE, encode(listed), self._bound(server)).encode()
            for number in range(_TRIES):
                if await self._written_over(server, listed, data, is_first=not number):
                    version = self._versions.get(_key(server.name).name, 0)
                    self._written[server.name] = _Written(digest, listed.at, version)
                    return
        except ValueError as error:
            note("debug", server.name, "store", f"its listing isn't put into the store: {error}")
        finally:
            await self._release(server.name)

    def _is_written(self, server: ServerConfig, listed: Listed, digest: bytes) -> bool:
        """Whether we have just written the same, and nobody else has since."""
        written, version = self._written.get(server.name), self._versions.get(_key(server.name).name)
        if written is None or written.digest != digest or written.version != version:
            return False
        return listed.at - written.at < self._times.write

    async def _written_over(
        self, server: ServerConfig, listed: Listed, data: bytes, *, is_first: bool
    ) -> bool:
        """Whether ``listed``, which is ``data``, is in the store now, or what was written meanwhile and is
        later.
        """
        key = _key(server.name)
        value = await self._thread.store.get(key)
        before = None if value is None else self._opened(server, value.data)
        if value is not None and before is not None and not is_first and before.at > listed.at:
            self._versions.pop(key.name, None)  # it is to be read
            return True
        version = await self._thread.store.compare_and_set(key, data, value.version if value else 0)
        if version is None:
            return False  # another replica has just written
        self._versions[key.name] = version
        if before is None or replace(before, at=listed.at) != listed:
            await self._thread.store.publish(CHANNEL, key.name.encode())
        return True

    async def _release(self, server: str) -> None:
        if lease := self._leases.pop(server, None):
            await self._thread.store.release(lease)

    async def _end(self) -> None:
        for server in tuple(self._leases):
            with suppress(OSError):
                await self._release(server)

    async def _watch(self, tell: Callable[[str], None]) -> None:
        news = asyncio.Event()
        listening: asyncio.Task[None] | None = None
        while True:
            if listening is None or listening.done():
                listening = asyncio.create_task(self._listen(news))
            news.clear()
            await self._tried(self._look(tell))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._times.look):
                    await news.wait()

    async def _listen(self, news: asyncio.Event) -> None:
        with suppress(OSError):
            async with self._thread.store.subscribe(CHANNEL) as messages:
                news.set()  # what was said before
                async for _ in messages:
                    news.set()

    async def _look(self, tell: Callable[[str], None]) -> None:
        versions = await self._thread.store.versions(TABLE)
        for name, server in self._watched.items():
            version = versions.get(name)
            if version is not None and version != self._versions.get(name):
                self._versions[name] = version
                tell(server.name)

    def _keys(self) -> KeyRing:
        if self._ring is None:
            self._ring = self._make_ring()
        return self._ring

    def _bound(self, server: ServerConfig) -> bytes:
        return bound_to(self._namespace, server.name, *server.settings)


def _key(server: str) -> Key:
    return Key(TABLE, hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest())
