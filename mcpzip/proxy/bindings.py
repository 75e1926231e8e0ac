"""Which connections each client uses for each server.

The rule: what is known of a server and of a client decides, at each use (`sharing`). So a client moves to
other connections when a server asks its first question, when the client sets a log level, or when its roots
change. What is under way on the connections before goes on there.
"""

import asyncio
from typing import NamedTuple

from mcpzip.proxy.call import UpstreamRequest
from mcpzip.proxy.client_binding import ClientBinding, IsolatedBinding
from mcpzip.proxy.client_capabilities import declared
from mcpzip.proxy.client_roots import ROOTS_CHANGED, ClientRoots
from mcpzip.proxy.exchange import Client, SendRequest
from mcpzip.proxy.first_calls import PATIENCE, FirstCalls
from mcpzip.proxy.shared_binding import RootsBinding, SharedBinding
from mcpzip.proxy.sharing import OWN, USUAL, Sharing, Use
from mcpzip.transport.pool import Pool
from mcpzip.wire import INTERNAL_ERROR, JsonRpcError, RpcError

SHARED, SHARED_UNUSED = 256, 8
"""How many different groups of clients shared connections can have, and how many of those are kept that no
client belongs to any more: the next such client then finds its servers running.
"""
OTHER_ROOTS = RpcError(INTERNAL_ERROR, "The client's roots have changed. Its next call is told the new ones.")


class _Group(NamedTuple):
    """What clients that use one connection have in common: see `Use`. roots: their `Roots.key`; None where
    roots don't matter.
    """

    capabilities: bytes
    folder: str | None
    roots: str | None


class Bindings:
    """Everything runs on one event loop."""

    def __init__(self, pool: Pool, sharing: Sharing, first_calls: FirstCalls) -> None:
        self._pool, self._sharing, self._first_calls = pool, sharing, first_calls
        self._of: dict[Client, ClientBinding] = {}
        self._isolated: dict[Client, IsolatedBinding] = {}
        self._shared: dict[_Group, SharedBinding] = {}
        self._used: dict[Client, dict[str, SharedBinding]] = {}
        """The shared bindings that each client uses, by server."""
        self._apart: dict[Client, set[str]] = {}
        """The servers that each client doesn't share, because its first call there would have overlapped."""
        self._roots = ClientRoots()

    # --- of a client ---

    def of(self, client: Client) -> ClientBinding:
        """That of a client of more than one request which it doesn't share."""
        if client not in self._of:
            self._of[client] = ClientBinding(client)
        return self._of[client]

    def own(self, client: Client) -> list[ClientBinding]:
        """Those of ``client`` that it doesn't share."""
        found = [self._of.get(client), self._isolated.get(client)]
        return [binding for binding in found if binding is not None]

    async def to(
        self,
        client: Client,
        server: str,
        way: SendRequest | None = None,
        call: UpstreamRequest | None = None,
    ) -> ClientBinding:
        """The one with which a client of more than one request uses ``server``. way: asks the client, by
        default outside any request. call: what is sent next, if the server could ask something in it and
        wouldn't say in which call it asks.

        Waits only before it decides: the caller can use the binding before anything else happens.
        """
        until: float | None = None
        while True:
            use = self._use(client, server)
            if use.kind == "equal roots":
                use = await self._use_with_roots(client, server, way)
            binding = self._binding(client, use)
            if call is None or not isinstance(binding, SharedBinding):
                break
            if not self._first_calls.overlaps(binding, client, call):
                break
            now = asyncio.get_running_loop().time()
            until = now + PATIENCE if until is None else until
            if now < until and binding.calls_of_others(client, server):
                await binding.call_ends(server, until - now)
            elif binding.has_called(client, server):
                break
            else:
                self._apart.setdefault(client, set()).add(server)
        begins = isinstance(binding, SharedBinding) and not binding.members(server)
        self._move(client, server, binding)
        if begins and use.kind == "any roots":
            self._move_all(server)
            self._pool.outdate(server, None)
        return binding

    async def _use_with_roots(self, client: Client, server: str, way: SendRequest | None) -> Use:
        """How ``client`` uses ``server``. If that depends on its roots, they are known then."""
        while (use := self._use(client, server)).kind == "equal roots":
            if not self._roots.is_known(client):
                await self._roots.ask(client, way or client.request)
            elif (renamed := self._renamed(client, server, use)) is not None:
                tell = (self._pool.notify(name, renamed, ROOTS_CHANGED, None) for name in renamed.servers)
                await asyncio.gather(*tell)
            else:
                break
        return use

    def for_listing(self, client: Client, server: str) -> ClientBinding | None:
        """The one with which ``client`` uses ``server``, without its using it; None if it would not share it,
        or only with clients of equal roots: what a server lists for those is not for all.
        """
        use = self._use(client, server)
        if use.kind == "equal roots":
            return None
        binding = ClientBinding(client) if self._group(client, use) is None else self._binding(client, use)
        shared = isinstance(binding, SharedBinding) or (use.kind == "usual" and binding.key is None)
        return binding if shared else None

    def reconsider(self, client: Client) -> None:
        """``client`` may use other connections from now on, and then doesn't use those before any more."""
        for server in [*self._used.get(client, ())]:
            self._leave_outdated(client, server)

    async def roots_changed(self, client: Client) -> None:
        """``client`` says that its roots have changed. Servers are told on the connections that it goes on
        to share.
        """
        self._roots.forget(client)
        before = dict(self._used.get(client, {}))
        roots = {name: binding.roots for name, binding in before.items() if isinstance(binding, RootsBinding)}
        if roots:
            await self._roots.ask(client, client.request)
        if client not in self._used:  # it has left meanwhile
            self._roots.forget(client)
            return
        for server in roots:
            await self.to(client, server)  # which tells it if the binding has other roots now
        now = self._used.get(client, {})
        stay = [(name, binding) for name, binding in before.items() if now.get(name) is binding]
        tell = (
            self._pool.notify(name, binding, ROOTS_CHANGED, None)
            for name, binding in stay
            if not isinstance(binding, RootsBinding) or binding.roots is roots[name]
        )
        await asyncio.gather(*tell)

    async def remove_client(self, client: Client) -> None:
        """``client`` is gone, and so are connections of its own."""
        self._roots.forget(client)
        self._apart.pop(client, None)
        for server, shared in self._used.pop(client, {}).items():
            shared.leave(client, server)
        for binding in (self._of.pop(client, None), self._isolated.pop(client, None)):
            if binding is not None:
                await self._pool.forget(binding)
                binding.close()
        unused = [group for group, shared in self._shared.items() if not shared.is_used]
        for group in unused[:-SHARED_UNUSED]:
            await self._pool.forget(self._shared.pop(group))

    async def close(self) -> None:
        """Asks no client any more."""
        await self._roots.close()

    # --- of a server ---

    def asked(self, server: str, method: str, params: bytes | None) -> None:
        """``server`` sent a request that could be for any of several clients."""
        if self._sharing.asked(server, method, params):
            self._move_all(server)

    def _move_all(self, server: str) -> None:
        """What is known of ``server`` has changed: its clients leave the connections that they will not use
        again.
        """
        users = [client for client, used in self._used.items() if server in used]
        left = {self._leave_outdated(client, server) for client in users}
        for binding in left:
            if binding is not None and not binding.members(server):
                self._pool.outdate(server, binding)

    # --- deciding ---

    def _use(self, client: Client, server: str) -> Use:
        use = self._sharing.use(client, server)
        if server in self._apart.get(client, ()):
            return USUAL if use.folder is None and use.kind != "own" else OWN
        if use.otherwise is None:
            return use
        shared = self._shared.get(_Group(use.capabilities, use.folder, None))
        return use.otherwise if shared is None or not shared.members(server) else use

    def _binding(self, client: Client, use: Use) -> ClientBinding:
        if use.kind == "own":
            return self._isolated.setdefault(client, IsolatedBinding(client))
        group = self._group(client, use)
        if group is None:
            return self.of(client) if use.folder is None else self._binding(client, OWN)
        shared = self._shared.get(group)
        if shared is None:
            if len(self._shared) >= SHARED:
                return self.of(client)
            shared = self._shared[group] = self._new(client, use)
        return shared

    def _group(self, client: Client, use: Use) -> _Group | None:
        """The group of ``client``; None if it shares no connection."""
        if use.kind in ("shared", "any roots"):
            return _Group(use.capabilities, use.folder, None)
        roots = self._roots.of(client) if use.kind == "equal roots" else None
        return None if roots is None else _Group(use.capabilities, use.folder, roots.key)

    def _new(self, client: Client, use: Use) -> SharedBinding:
        roots = self._roots.of(client)
        if use.kind != "equal roots" or roots is None:
            return SharedBinding(use.capabilities, self.asked)
        return RootsBinding(use.capabilities, self.asked, roots, self._recheck)

    def _move(self, client: Client, server: str, binding: ClientBinding) -> None:
        """``client`` uses ``binding`` for ``server`` from now on."""
        used = self._used.get(client)
        before = None if used is None else used.get(server)
        if before is binding:
            return
        if used is not None and before is not None:
            before.leave(client, server)
            del used[server]
        if isinstance(binding, SharedBinding):
            binding.join(client, server)
            self._used.setdefault(client, {})[server] = binding

    def _leave_outdated(self, client: Client, server: str) -> SharedBinding | None:
        """What ``client`` used for ``server`` so far and doesn't any more; None if that is as it was, or
        can't be said before the client is asked.
        """
        used, use = self._used[client], self._use(client, server)
        if use.kind == "equal roots" and isinstance(used[server], RootsBinding):
            return None
        group = self._group(client, use)
        if group is not None and self._shared.get(group) is used[server]:
            return None
        left = used.pop(server)
        left.leave(client, server)
        return left

    # --- roots that change ---

    def _renamed(self, client: Client, server: str, use: Use) -> RootsBinding | None:
        """The binding of other roots that ``client`` uses for ``server``, if nobody else uses it: from now on
        it is that of the new ones. None if there is no such binding.
        """
        before = self._used.get(client, {}).get(server)
        if not isinstance(before, RootsBinding) or not before.is_only_of(client):
            return None
        return before if self._rename(client, before, use) else None

    def _rename(self, client: Client, binding: RootsBinding, use: Use) -> bool:
        """Makes ``binding``, which ``client`` alone uses, that of its present roots, unless there is one."""
        roots, group = self._roots.of(client), self._group(client, use)
        if roots is None or group is None or group in self._shared:
            return False
        old = next(group for group, shared in self._shared.items() if shared is binding)
        if (old.capabilities, old.folder) != (group.capabilities, group.folder):
            return False
        del self._shared[old]
        self._shared[group] = binding
        binding.roots = roots
        return True

    async def _recheck(self, binding: RootsBinding, server: str) -> None:
        """See `Recheck`. Those that say when their roots change need not be asked."""
        silent = [one for one in binding.callers(server) if not declared(one.capabilities).announces_roots]
        await asyncio.gather(*(self._ask_again(client) for client in silent))
        for client in silent:
            roots = self._roots.of(client)
            if roots is not None and roots.key == binding.roots.key:
                continue
            alone = binding.is_only_of(client, calling=server)
            if not (alone and self._rename(client, binding, self._use(client, server))):
                raise JsonRpcError(OTHER_ROOTS)

    async def _ask_again(self, client: Client) -> None:
        if self._roots.is_known(client):
            self._roots.forget(client)
        await self._roots.ask(client, client.request)
