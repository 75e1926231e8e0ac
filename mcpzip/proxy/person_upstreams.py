"""The servers to which each person signs in (``auth.per_user``), as one person uses them.

The rules:

1. What one person signed in with, and what servers list, tell and ask with that, is for nobody else. So each
   person has a pool, a pipeline, lists and a record of what is held back for themselves, through which no
   request of anybody else goes (`CallPipeline`).
2. Before a person has signed in to such a server, and after they have signed out, they have nothing of it.
3. What is kept for people has a limit. Who asked longest ago is forgotten first, but not their sign-ins:
   their next request begins anew.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from mcpzip.auth.sign_ins import PersonSignIns, SignIns
from mcpzip.catalog import Catalog, Listed, Update, View, merge
from mcpzip.config import Config, ServerConfig
from mcpzip.model import limits
from mcpzip.model.errors import LoginNeededError, McpzipError
from mcpzip.model.principal import PrincipalId
from mcpzip.pins.gate import Gate
from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.first_listings import FIRST_LISTING
from mcpzip.proxy.guard import Guard
from mcpzip.proxy.heard import Heard
from mcpzip.proxy.listing_origins import ListingOrigins
from mcpzip.proxy.notifier import PROMPTS, RESOURCES, TOOLS, Notifier
from mcpzip.proxy.pipeline import CallPipeline
from mcpzip.proxy.refresh import Refresher
from mcpzip.proxy.sharing import Sharing
from mcpzip.system.tasks import retrieve_exception
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import BoundClient, Origin
from mcpzip.transport.health import Health, Rest, at_start, problem
from mcpzip.transport.pool import Pool

_LOOK_EVERY = 0.5
"""Seconds between two looks whether a person has signed in who is waited for."""
SIGN_INS = "/sign-ins"
"""The path of the page where people sign in to servers."""
MIN_AGE, MAX_AGE = 30.0, 3_600.0
"""Seconds for which a list is not fetched again at all, and after which it is when the person asks something.
"""


class Surroundings(NamedTuple):
    """What all people have in common. catalog: makes that of all servers, as it is offered to whoever uses
    this machine. sign_ins, gate: of everybody. environment: see `Proxy`.
    """

    current: CurrentConfig
    catalog: Callable[[], Catalog]
    sharing: Sharing
    heard: Heard
    notifier: Notifier
    sign_ins: SignIns
    gate: Gate
    environment: Mapping[str, str]


class PersonUpstreams:
    """Those of ``person``. Everything runs on one event loop.

    pool, pipeline, guard: what `Proxy` has for all other servers. catalog: what servers list for this person
    and what may be offered of it; another object when that changes.
    """

    def __init__(self, person: PrincipalId, around: Surroundings, page: Callable[[], str]) -> None:
        """page: the URL of the page where people sign in."""
        self.person, self._around, self._page = person, around, page
        config = around.current.config
        servers = self._servers
        self.sign_ins = PersonSignIns(around.sign_ins, person, page)
        self._gate = around.gate.of_person(self._everything)
        self.pool = Pool(
            servers.values(),
            idle_timeout=config.idle_timeout,
            sign_ins=self.sign_ins,
            on_list_changed=self._list_changed,
            on_resource_updated=self._resource_updated,
            on_question=self._asked,
            environment=around.environment,
        )
        self.pool.own_connections = limits.PERSON_CONNECTIONS
        self.pipeline = CallPipeline(self.pool, around.sharing, around.heard, person)
        self._origins = ListingOrigins(self.pipeline)
        self._origins.start(None, None)
        self._refresher = Refresher(servers.values(), self.pool, self._take, self._origin, self._admit)
        self._refresher.keep_trying()
        self.guard = Guard(self._gate, lambda: self.catalog, self._refresher)
        self._admitted = self.catalog = Catalog()
        self._view = View(servers)
        self._listed: dict[str, Listed] = {}
        """What servers listed last, with what is held back, if something is."""
        self._signed_in: dict[str, float] = {}
        """When the person signed in to each server, in Unix s; those to which they have not are missing."""
        self._ended: dict[str, str] = {}
        """Why there is no sign-in any more, by server; "" if there never was one."""
        self._unknown: dict[str, str] = {}
        """Why nobody can know whether they have signed in, by server."""
        self._seen: dict[str, object] = {}
        """The signature of what was stored for each server when it was read last."""
        self._reading = asyncio.Lock()
        self._checking: set[asyncio.Task[None]] = set()

    @property
    def _servers(self) -> Mapping[str, ServerConfig]:
        current = self._around.current
        return {name: current.enabled[name] for name in current.enabled if name in current.per_user}

    # --- signing in and out

    def signed_in_since(self, server: str) -> float | None:
        """When the person signed in to ``server``, in Unix s, 0 if that isn't known; None if they are not
        signed in, as far as that was read.
        """
        return self._signed_in.get(server)

    def ended(self, server: str) -> str:
        """Why the sign-in to ``server`` has ended, as a part of a sentence; "" if it has not, or there was
        none.
        """
        return self._ended.get(server, "")

    async def catch_up(self) -> None:
        """Until what the person is signed in to is listed, FIRST_LISTING seconds at most, and what they are
        not signed in to any more is forgotten.
        """
        servers = list(self._servers.values())
        if any(self._is_unread(server) for server in servers):
            async with self._reading:
                for server in servers:
                    if self._is_unread(server):
                        await self._read(server)
        for name in self._signed_in:
            if self._is_old(name):
                self._refresher.start(name)
        first = {
            task
            for name in self._signed_in
            if name not in self._admitted.servers and (task := self._refresher.listing(name)) is not None
        }
        if first:
            await asyncio.wait(first, timeout=FIRST_LISTING)

    def _is_unread(self, server: ServerConfig) -> bool:
        if server.problem or server.auth is None:
            return False
        try:
            signature = self.sign_ins.signature(server)
        except McpzipError:
            return True
        return server.name not in self._seen or self._seen[server.name] != signature

    async def _read(self, server: ServerConfig) -> None:
        """Takes up what is stored for ``server``. While that can't be known it stays as it was."""
        name = server.name
        try:
            signature = self.sign_ins.signature(server)
            grant = await in_thread(lambda: self.sign_ins.store.load(server.url), "auth")
        except (McpzipError, OSError) as error:
            self._unknown[name] = str(error).rstrip(".")
            return
        self._seen[name] = signature
        self._unknown.pop(name, None)
        if grant is None or not (grant.access_token or grant.refresh_token):
            self._ended[name] = "" if grant is None else grant.refused
            if self._signed_in.pop(name, None) is not None:
                self._forget(name)
        elif self._signed_in.get(name) != grant.signed_in_at:
            self._ended.pop(name, None)
            self._forget(name)  # it may be another account there
            self._signed_in[name] = grant.signed_in_at
            self._refresher.start(name)

    def _forget(self, server: str) -> None:
        """Ends the connections to ``server``, and has nothing of it any more."""
        servers = self._servers.values()
        self._refresher.reconfigure(servers, (server,))
        self._refresher.set_last_rest(server, Rest())
        self._reconfigure_pool((server,), drain=0.0)
        self._listed.pop(server, None)
        records = {name: record for name, record in self._admitted.servers.items() if name != server}
        self._replace(Catalog(records))

    def _is_old(self, server: str) -> bool:
        record = self._admitted.servers.get(server)
        if record is None or record.fetched_at is None or record.stale:  # that is tried again by itself
            return False
        most = MAX_AGE if record.ttl is None else max(record.ttl, MIN_AGE)
        return time.time() > record.fetched_at + most

    # --- lists

    def _everything(self) -> Catalog:
        """All that the tools of a server are compared with: those of the others."""
        per_user, shared = self._around.current.per_user, self._around.catalog().servers
        others = {name: record for name, record in shared.items() if name not in per_user}
        return Catalog(others | dict(self._admitted.servers))

    def _origin(self, server: str) -> Origin:
        return self._origins.of(server, self._clients)

    @property
    def _clients(self) -> list[Client]:
        clients = self._around.notifier.clients
        return [one for one in clients if one.principal is not None and one.principal.id == self.person]

    def _admit(self, update: Listed) -> Listed:
        """What may be offered of ``update``. Called in a thread."""
        admitted = self._gate.admit(update, self._admitted.servers.get(update.server))
        if self._gate.held(update.server).holds:
            self._listed[update.server] = update
        else:
            self._listed.pop(update.server, None)
        return admitted

    def _take(self, update: Update) -> None:
        """``update`` is what a server said, or that it said nothing."""
        if update.server in self._signed_in:
            self._replace(merge(self._admitted, [update]))

    def _replace(self, admitted: Catalog) -> None:
        before, self._admitted = self.catalog, admitted
        self.catalog = now = self._view.of(admitted)
        changed = []
        current = self._around.current
        shows_tools = current.config.expose != "meta" or any(server.pin for server in self._servers.values())
        if shows_tools and before.version != now.version:
            changed.append(TOOLS)
        if before.prompts_version != now.prompts_version:
            changed.append(PROMPTS)
        if before.resources_version != now.resources_version:
            changed.append(RESOURCES)
        if changed:
            self._around.notifier.lists_changed(changed, self.person)

    def refresh(self) -> "list[asyncio.Task[Update]]":
        """Begins to list what the person is signed in to. Returns the listings under way."""
        return [self._refresher.start(name) for name in self._signed_in]

    def listing(self, server: str) -> "asyncio.Task[Update] | None":
        """The listing of ``server`` that is under way, if one is."""
        return self._refresher.listing(server)

    def health(self, server: str) -> Health:
        """The state of ``server`` for this person."""
        configured = self._servers.get(server)
        if configured is None or configured.problem:
            return at_start(configured) if configured is not None else Health("idle")
        if server not in self._signed_in and server in self._unknown:
            return Health("failing", self._unknown[server])
        if (needed := self.login_needed(server)) is not None:
            return Health("needs login", problem(needed))
        return self.pool.health(server)

    def login_needed(self, server: str) -> LoginNeededError | None:
        """The error for a request to ``server``, which is configured, while the person is not signed in to
        it.
        """
        if server in self._signed_in or server in self._unknown or self._servers[server].problem:
            return None
        return LoginNeededError(server, self._ended.get(server) or "you have not signed in", self._page())

    async def signs_in(self, server: str, seconds: float) -> bool:
        """Whether the person signs in to ``server``, or does so again, within so many seconds."""
        before, now = self._signed_in.get(server), asyncio.get_running_loop().time
        until = now() + seconds
        while (signed_in := self._signed_in.get(server)) in (None, before):
            if now() >= until:
                return False
            await asyncio.sleep(_LOOK_EVERY)
            await self.catch_up()
        return signed_in is not None

    def take_up_reviews(self) -> None:
        """Has what somebody approved meanwhile listed anew."""
        for name, update in list(self._listed.items()):
            if held := frozenset(self._gate.held(name).holds):
                task = asyncio.create_task(self._check_held(name, update, held), name=f"pins-{name}")
                self._checking.add(task)
                task.add_done_callback(self._checking.discard)
                task.add_done_callback(retrieve_exception)

    async def _check_held(self, server: str, update: Listed, held: frozenset[str]) -> None:
        def still_held() -> bool:
            from mcpzip.pins.surface import Surface

            return held <= self._gate.admits(server, Surface(update.record).items).keys()

        # Not whatever else was written: two people with other definitions would list in turns for ever.
        if not await in_thread(still_held, "pins") and server in self._signed_in:
            self._refresher.start(server)

    # --- what servers say

    def _list_changed(self, server: str, which: str | None, origin: Origin) -> None:
        if server in self._signed_in:
            self._refresher.changed(server, self._origins.after_change(origin))

    def _resource_updated(self, server: str, bound_client: BoundClient | None, params: bytes) -> None:
        only = bound_client.client if isinstance(bound_client, ClientBinding) else None
        if not self.guard.tells_of(server, params):
            self._around.notifier.resource_updated(server, params, only, person=self.person)

    def _asked(self, server: str, bound_client: BoundClient, method: str, params: bytes | None) -> None:
        exchange = bound_client.exchange(server) if isinstance(bound_client, ClientBinding) else None
        self._around.heard.asked(exchange, server, method, params)

    # --- edits of the config, and the end

    def reconfigure(self, disconnected: Iterable[str]) -> None:
        """Uses the config that is in use now. disconnected: servers that have another connection now, or
        none.
        """
        config, servers = self._around.current.config, self._servers
        gone = {*disconnected, *(name for name in self._seen if name not in servers)}
        self._gate.reconfigure(config)
        self._view = View(servers, self._view)
        self._refresher.reconfigure(servers.values(), gone)
        self._reconfigure_pool(gone)
        for name in gone:
            self._signed_in.pop(name, None)
            self._seen.pop(name, None)
            self._listed.pop(name, None)
        records = {name: one for name, one in self._admitted.servers.items() if name not in gone}
        self._replace(Catalog(records))

    def _reconfigure_pool(self, disconnected: Iterable[str], drain: float | None = None) -> None:
        self.pool.reconfigure(
            self._servers.values(),
            idle_timeout=self._around.current.config.idle_timeout,
            disconnected=frozenset(disconnected),
            protocols={name: one.protocol for name, one in self._admitted.servers.items() if one.protocol},
            watched=lambda server: self._around.notifier.shared_watches(server, self.person),
            drain=drain,
        )

    @property
    def is_busy(self) -> bool:
        """Whether a request of theirs is under way, or waits for them."""
        connections = (each for name in self._servers for each in self.pool.connections(name))
        return (
            self._reading.locked()
            or self.pipeline.parked.has_any()
            or any(each.open_requests for each in connections)
        )

    async def close(self) -> None:
        """Ends all connections."""
        for task in self._checking:
            task.cancel()
        await self._refresher.close()
        await self.pipeline.close()
        await self.pool.close()


class UpstreamsByPerson:
    """Those of all people. Everything runs on one event loop."""

    def __init__(self, around: Surroundings, page: Callable[[], str]) -> None:
        """page: the URL where people sign in; "" if only the config says it."""
        self._around, self._page_now = around, page
        self._of: OrderedDict[PrincipalId, PersonUpstreams] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, person: PrincipalId) -> PersonUpstreams:
        """Those of ``person``, who asks something now."""
        found = self._of.get(person)
        if found is None:
            found = self._of[person] = PersonUpstreams(person, self._around, self._page)
            self._make_room()
        self._of.move_to_end(person)
        return found

    def _page(self) -> str:
        return self._page_now() or _page_of(self._around.current.config)

    def all(self) -> list[PersonUpstreams]:
        """Those that are kept."""
        return list(self._of.values())

    def _make_room(self) -> None:
        for person, oldest in [*self._of.items()][: max(0, len(self._of) - limits.PEOPLE_CONNECTED)]:
            if not oldest.is_busy:
                del self._of[person]
                task = asyncio.create_task(oldest.close(), name="forget-person")
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Ends all."""
        await asyncio.gather(*(each.close() for each in self._of.values()), *self._closing)


def _page_of(config: Config) -> str:
    """The URL where people sign in, as far as the config says: it may leave the port to the system."""
    page = config.http.page
    if page is None:
        return ""
    listen = page.listen if ":" in page.listen else f"127.0.0.1:{page.listen}"
    return f"{page.public_url or f'http://{listen}'}{SIGN_INS}"
