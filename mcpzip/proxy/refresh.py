"""Keeping the catalog true: listing servers, merging what they say, and putting it on disk.

The rules: servers are listed concurrently and each is merged the moment it answers; at most one listing of a
server is under way; a burst of `list_changed` costs one listing. Replicas with a store share listings, where
one of another replica will do (`proxy.shared_listings`).
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcpzip.catalog import Failed, Listed, Update
from mcpzip.config import Config, ServerConfig
from mcpzip.model.errors import McpzipError, UpstreamError, UpstreamListError, UpstreamUnavailableError
from mcpzip.system.backoff import Backoff
from mcpzip.system.event_log import note
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import NOBODY, Origin
from mcpzip.transport.health import Rest
from mcpzip.transport.pool import Pool

if TYPE_CHECKING:
    from mcpzip.proxy.shared_listings import SharedListings

QUIET = 0.2
"""Seconds from a `list_changed` to the listing it brings about; what else is said meanwhile costs nothing."""
FIRST_RETRY, LAST_RETRY = 5.0, 300.0
"""Seconds after which a server that could not be listed is asked again, doubling from one to the other. One
whose list is over a limit is asked again after the last of them at once: reading it is what costs.
"""


_REST = ("prompt", "resource", "template")
"""What is listed after the tools, in the order of `Rest`."""
ANY_AGE = float("inf")
"""What another replica listed will do, however long ago: nothing was listed here."""
RENEWED_AT_ONCE = 2
"""How many servers `Refresher.renew` lists at a time: each may be a process of 60 MB and a second's start."""


class Refresher:
    """Lists servers and hands on what they answered."""

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        pool: Pool,
        on_update: Callable[[Update], None],
        origin: Callable[[str], Origin] = lambda server: NOBODY,
        admit: Callable[[Listed], Listed] = lambda update: update,
    ) -> None:
        """on_update: takes what was answered. origin: on whose behalf a server is listed. admit: takes out of
        it what must not be offered; it is called in a thread.
        """
        self._servers = {server.name: server for server in servers}
        self._pool, self._on_update, self._origin, self._admit = pool, on_update, origin, admit
        self._change_origins: dict[str, Origin] = {}
        self._last_rest: dict[str, Rest] = {}
        self._rests: dict[str, asyncio.Task[None]] = {}
        self._first_rests: set[str] = set()
        self._listing: dict[str, asyncio.Task[Update]] = {}
        self._started: dict[str, float] = {}
        self._pending: dict[str, asyncio.TimerHandle] = {}
        self._again: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        self._renewing: set[asyncio.Task[None]] = set()
        self._replaced: set[asyncio.Task[Any]] = set()
        self._shared: SharedListings | None = None
        self._listed_at: Callable[[str], float] = lambda server: 0.0
        self._to_take: dict[str, None] = {}
        self._taking: asyncio.Task[None] | None = None
        self._retrying = False
        self._closed = False

    def share(self, config: Config, listed_at: Callable[[str], float]) -> None:
        """Uses the listings in the store of ``config`` from now on, if it has replicas. listed_at: when a
        server was listed that is offered; 0 for never.
        """
        if config.store is not None and config.replicas is not None:
            from mcpzip.proxy.shared_listings import SharedListings  # most configs have no store

            self._shared, self._listed_at = SharedListings(config.store), listed_at
            self._watch_others()

    def _watch_others(self) -> None:
        if self._shared is not None:
            servers = (one for one in self._servers.values() if not (one.disabled or one.per_user))
            self._shared.watch(servers, self._take)

    def _take(self, server: str) -> None:
        """Another replica has listed ``server``."""
        self._to_take[server] = None
        if self._taking is None and not self._closed:
            self._taking = asyncio.create_task(self._take_all(), name="take")

    async def _take_all(self) -> None:
        """One after the other: after a start these may be all servers, while clients are served."""
        try:
            while self._to_take:
                name = next(iter(self._to_take))
                del self._to_take[name]
                if (server := self._servers.get(name)) is not None:
                    await self._take_shared(server)
        finally:
            self._taking = None

    async def _take_shared(self, server: ServerConfig) -> None:
        name = server.name
        assert self._shared is not None
        listed = await self._shared.read(server, self._listed_at(name))
        if listed is None:
            return
        update = await self._admitted(listed)
        is_ours = self._servers.get(name) is server and name not in self._listing
        if is_ours and listed.at > self._listed_at(name):
            self._use(listed, update)

    def _use(self, listed: Listed, update: Update) -> None:
        """Offers what another replica ``listed``, as far as it was admitted."""
        note("info", listed.server, "listed", f"another replica listed {len(listed.tools)} tools")
        if not listed.unlisted:
            rest = Rest(listed.prompts, listed.resources, listed.templates, listed.over)
            self._last_rest[listed.server] = rest
        self._schedule_retry(update)
        self._on_update(update)

    def listing(self, server: str) -> "asyncio.Task[Update] | None":
        """The listing of ``server`` that is under way, if one is."""
        return self._listing.get(server)

    def requested_time(self, server: str) -> float:
        """Seconds for which the listing of ``server`` has been wanted; 0 when none is under way."""
        started = self._started.get(server)
        return 0.0 if started is None else time.monotonic() - started

    def listing_time(self, server: str) -> float:
        """Seconds that the listing of ``server`` under way has taken so far, not counting those in which it
        waited for its turn to start; 0 when there is none.
        """
        if server not in self._started or self._pool.starts.waits(server):
            return 0.0
        return time.monotonic() - max(self._started[server], self._pool.connect_started(server))

    def start(self, server: str, max_age: float | None = None) -> "asyncio.Task[Update]":
        """Lists ``server`` now, or joins the listing that is under way. The task never raises but for
        cancellation.

        max_age: seconds; what another replica listed no longer ago will do. None: only the server's answer.
        """
        task = self._listing.get(server)
        if task is None:
            task = asyncio.create_task(self._list(server, max_age), name=f"list-{server}")
            self._listing[server] = task
            self._started[server] = time.monotonic()
        return task

    def renew(self, servers: Iterable[str], max_age: float) -> None:
        """Lists ``servers`` in the background in their order, RENEWED_AT_ONCE at a time. max_age: see
        `start`.
        """
        waiting = iter(list(servers))

        async def renew() -> None:
            for server in waiting:  # which all workers share
                configured = self._servers.get(server)  # which may have changed meanwhile
                if configured is not None and not configured.disabled:
                    await asyncio.wait({self.start(server, max_age)})

        for number in range(RENEWED_AT_ONCE):
            task = asyncio.create_task(renew(), name=f"renew-{number}")
            self._renewing.add(task)
            task.add_done_callback(self._renewing.discard)

    def reconfigure(self, servers: Iterable[ServerConfig], disconnected: Iterable[str]) -> None:
        """Uses ``servers`` from now on. disconnected: those that were removed, or have another connection
        now; what they say on the connection before is not merged any more.
        """
        self._servers = {server.name: server for server in servers}
        for name in disconnected:
            for task in (self._listing.pop(name, None), self._rests.pop(name, None)):
                if task is not None:
                    task.cancel()
                    self._replaced.add(task)
                    task.add_done_callback(self._replaced.discard)
            if (timer := self._pending.pop(name, None)) is not None:
                timer.cancel()
            self._started.pop(name, None)
            self._backoffs.pop(name, None)
            self._change_origins.pop(name, None)
            self._first_rests.discard(name)
            if name not in self._servers:
                self._last_rest.pop(name, None)
        self._watch_others()

    def keep_trying(self) -> None:
        """From now on a server that could not be listed is asked again by and by."""
        self._retrying = True

    async def refresh(self, servers: Iterable[str]) -> list[Update]:
        """Lists ``servers`` concurrently."""
        return list(await asyncio.gather(*(asyncio.shield(self.start(server)) for server in servers)))

    def changed(self, server: str, origin: Origin | None = None) -> None:
        """``server`` says that its lists changed. origin: on whose behalf it is to be asked, once."""
        if server not in self._servers:
            return
        if origin is not None:
            self._change_origins[server] = origin
        note("debug", server, "changed", "its lists changed, it says")
        # Never put off: one that says so without end would never be listed.
        timer = self._pending.get(server)
        if timer is None or timer.when() > asyncio.get_running_loop().time() + QUIET:
            self._relist_after(QUIET, server)

    def _relist_after(self, seconds: float, server: str) -> None:
        if (timer := self._pending.pop(server, None)) is not None:
            timer.cancel()
        self._pending[server] = asyncio.get_running_loop().call_later(seconds, self._relist, server)

    def _relist(self, server: str) -> None:
        self._pending.pop(server, None)
        if self._closed or server not in self._servers:
            return
        if server not in self._listing:
            self.start(server)
        elif server not in self._again:  # it may have answered before the change: once more when it is done
            self._again.add(server)
            self._listing[server].add_done_callback(lambda _: self._list_again(server))

    def _list_again(self, server: str) -> None:
        self._again.discard(server)
        self._relist(server)

    async def _list(self, name: str, max_age: float | None) -> Update:
        server = self._servers[name]
        update: Update
        origin = self._change_origins.pop(name, None) or self._origin(name)
        theirs = listed = None
        try:
            if self._shared is not None and max_age is not None:
                theirs = await self._shared.recent(server, max_age, self._listed_at(name))
            listed = theirs or await self._asked(server, origin)
            update = await self._admitted(listed)
            if theirs is None:
                note("info", name, "listed", f"listed {len(listed.tools)} tools")
        except UpstreamError as error:
            reason = f"{error.reason}. {error.remedy}".rstrip(" .")
            if not isinstance(error, UpstreamUnavailableError) or server.problem:  # else the pool noted it
                note("error", name, "listing failed", reason)
            lasting = isinstance(error, UpstreamListError)
            update = Failed(name, reason, at=time.time(), lasting=lasting)
        except McpzipError as error:
            update = Failed(name, str(error).rstrip("."), at=time.time())
        finally:
            if self._listing.get(name) is asyncio.current_task():  # and not after `reconfigure`
                del self._listing[name]
                self._started.pop(name, None)
            if listed is None and self._shared is not None:
                self._shared.give_up(name)
        if theirs is not None:
            self._use(theirs, update)
            return update
        self._schedule_retry(update)
        self._on_update(update)
        if listed is not None and isinstance(update, Listed):
            self._list_rest(listed, update, origin)
        return update

    async def _asked(self, server: ServerConfig, origin: Origin) -> Listed:
        """What ``server`` answers. Raises McpzipError."""
        listing = await self._pool.list_tools(server.name, origin=origin)
        return self._with_last_rest(
            Listed(
                server.name,
                listing.tools,
                at=time.time(),
                protocol=listing.protocol,
                fingerprint=server.fingerprint,
                instructions=listing.instructions,
                capabilities=listing.capabilities,
                info=listing.info,
                ttl=listing.ttl,
                unlisted=_REST,
            )
        )

    async def _admitted(self, listed: Listed) -> Listed:
        """What may be offered of ``listed``, which a thread has read, so that others are served meanwhile."""

        def admit() -> Listed:
            _ = listed.record
            return self._admit(listed)

        return await in_thread(admit, "check")

    def first_rests(self) -> "set[asyncio.Task[None]]":
        """The listings under way of what servers offer beside tools, of those that never were listed so."""
        return {task for name, task in self._rests.items() if name in self._first_rests}

    def _with_last_rest(self, update: Listed) -> Listed:
        last = self._last_rest.get(update.server)
        return update if last is None else _with(update, last)

    def set_last_rest(self, server: str, rest: Rest) -> None:
        """``rest`` is what ``server`` offered beside tools when it was last asked."""
        self._last_rest[server] = rest

    def rest_listing(self, server: str) -> "asyncio.Task[None] | None":
        """The listing under way of what ``server`` offers beside tools, if there is one."""
        return self._rests.get(server)

    async def wait_for_rests(self, timeout: float) -> list[str]:
        """Waits for the listings under way of what servers offer beside tools, ``timeout`` seconds at most.
        Returns the servers that take longer.
        """
        under_way = {task: name for name, task in self._rests.items()}
        if not under_way:
            return []
        _, late = await asyncio.wait(under_way, timeout=max(0.0, timeout))
        return sorted(under_way[task] for task in late)

    def _list_rest(self, listed: Listed, offered: Listed, origin: Origin) -> None:
        """listed: what the server said. offered: what is offered of it."""
        name = listed.server
        if name not in self._last_rest:
            self._first_rests.add(name)
        if (task := self._rests.get(name)) is not None:
            task.cancel()
        task = asyncio.create_task(self._fetch_rest(listed, offered, origin), name=f"list-rest-{name}")
        self._rests[name] = task
        task.add_done_callback(lambda done: self._rest_done(name, done))

    def _rest_done(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._rests.get(name) is task:
            del self._rests[name]
            self._first_rests.discard(name)

    async def _fetch_rest(self, listed: Listed, offered: Listed, origin: Origin) -> None:
        server, whole = self._servers[listed.server], None
        try:
            rest = await self._pool.list_rest(listed.server, origin=origin)
            whole = self._with_rest(listed, rest)
        except McpzipError:
            return  # its tools were listed: what else it offers stays as it was
        finally:
            if self._shared is not None and (whole is None or server.per_user):  # whose list is no one else's
                self._shared.give_up(listed.server)
            elif self._shared is not None and whole is not None:
                self._shared.offer(server, whole)
        told = await self._admitted(whole)
        if _beside_tools(told) != _beside_tools(offered):
            self._on_update(told)

    def _with_rest(self, listed: Listed, rest: Rest) -> Listed:
        """``listed``, with what its server offers beside tools."""
        last = self._last_rest.get(listed.server, Rest())
        unlisted = tuple(kind for kind, new in zip(_REST, rest[:3], strict=True) if new is None)
        prompts, resources, templates = (
            old if new is None else new for old, new in zip(last[:3], rest[:3], strict=True)
        )
        rest = Rest(prompts, resources, templates, rest.over)
        self._last_rest[listed.server] = rest
        return replace(_with(listed, rest), at=time.time(), unlisted=unlisted)

    def _schedule_retry(self, update: Update) -> None:
        name = update.server
        if isinstance(update, Listed):
            self._backoffs.pop(name, None)
        elif self._retrying:
            delay = self._backoffs.setdefault(name, Backoff(FIRST_RETRY, LAST_RETRY)).next()
            self._relist_after(LAST_RETRY if update.lasting else delay, name)

    async def close(self) -> None:
        """Stops whatever is under way."""
        self._closed = True
        for timer in self._pending.values():
            timer.cancel()
        tasks: list[asyncio.Task[Update] | asyncio.Task[None]] = [
            *self._listing.values(),
            *self._rests.values(),
            *self._renewing,
            *self._replaced,
            *((self._taking,) if self._taking else ()),
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._shared is not None:
            await self._shared.close()


def _beside_tools(update: Listed) -> tuple[object, ...]:
    """What of ``update`` may differ when only what a server offers beside tools was listed again."""
    record = update.record
    return record.prompts, record.resources, record.templates, record.warnings


def _with(update: Listed, rest: Rest) -> Listed:
    return replace(
        update,
        prompts=rest.prompts or (),
        resources=rest.resources or (),
        templates=rest.templates or (),
        over=rest.over,
    )
