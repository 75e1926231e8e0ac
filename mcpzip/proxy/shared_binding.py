"""Clients that use one legacy connection to a server together, and what comes from the server on it.

The rules:

1. What a server sends on a shared connection belongs to a client only if no other can be meant: if all calls
   that are under way there, or that were given up lately, are of this client; or if the transport says to
   which call it belongs.
2. What a server asks for on a connection of clients with equal roots, those roots, it is told at once.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from itertools import count

from mcpzip.proxy.call import Call
from mcpzip.proxy.call_states import Event
from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.client_capabilities import ALL_CAPABILITIES
from mcpzip.proxy.client_roots import LIST_ROOTS, Roots
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.log_levels import is_wanted
from mcpzip.transport.abandoned_requests import AbandonedRequests
from mcpzip.transport.base import Origin
from mcpzip.wire import INTERNAL_ERROR, JsonRpcError, RpcError

AMBIGUOUS = RpcError(
    INTERNAL_ERROR,
    "Several clients use this connection, and nothing says which one is asked. mcpzip opens one for each.",
)
Asked = Callable[[str, str, bytes | None], None]
"""Is told of each question that could be for any of several clients: its server, method and params."""
_NUMBERS = count(1)


class SharedBinding(ClientBinding):
    """Clients that use one connection to each server that asks them nothing."""

    def __init__(self, capabilities: bytes, asked: Asked) -> None:
        """capabilities: what servers are told that they can ask, JSON text."""
        client = Client(capabilities=capabilities, has_session=False)
        super().__init__(client, ("shared", next(_NUMBERS)))
        self._asked = asked
        self._members: dict[str, set[Client]] = {}
        self._abandoned: dict[str, AbandonedRequests] = defaultdict(AbandonedRequests)
        self._have_called: dict[str, set[Client]] = defaultdict(set)
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        """What is set when a call ends, by server."""

    # --- who uses it ---

    @property
    def is_used(self) -> bool:
        """Whether any client uses it."""
        return bool(self._members)

    def members(self, server: str) -> Collection[Client]:
        """The clients that use it for ``server``."""
        return self._members.get(server, ())

    def join(self, client: Client, server: str) -> None:
        """``client`` uses it for ``server`` from now on."""
        self._members.setdefault(server, set()).add(client)

    def leave(self, client: Client, server: str) -> None:
        """It no longer does. Its calls there may still be under way."""
        members = self._members[server]
        members.discard(client)
        self._have_called[server].discard(client)
        if not members:
            del self._members[server]
            del self._have_called[server]

    # --- its calls ---

    def begin(self, call: Call) -> None:
        super().begin(call)
        server, method = call.request.server, call.request.method
        if call.client in self.members(server) and not method.endswith("/list"):
            self._have_called[server].add(call.client)

    def has_called(self, client: Client, server: str) -> bool:
        """Whether ``client``, which uses it for ``server``, has done more there than list, so that the server
        may keep what it did.
        """
        return client in self._have_called.get(server, ())

    def calls_of_others(self, client: Client, server: str) -> list[Call]:
        """The calls of other clients than ``client`` that are under way at ``server``."""
        return [call for call in self._calls.get(server, ()) if call.client is not client]

    async def call_ends(self, server: str, timeout: float) -> None:
        """Waits until one of the calls at ``server`` has ended, ``timeout`` seconds at most."""
        event = asyncio.Event()
        waiting = self._waiting[server]
        waiting.add(event)
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(server, None)

    def end(self, call: Call, event: Event, *, may_go_on: bool = False) -> None:
        super().end(call, event)
        if may_go_on:
            self._abandoned[call.request.server].add(call.client, asyncio.get_running_loop().time())
        for ended in self._waiting.get(call.request.server, ()):
            ended.set()

    # --- what an upstream sends ---

    def notified(self, server: str, method: str, params: bytes | None, call: object) -> None:
        client = self._client_of(server, call) or self._only_client(server)
        if client is None:
            return
        if self._calls.get(server):
            super().notified(server, method, params, call)
        elif method != "notifications/message" or is_wanted(params, client, None):
            client.notify(method, params)

    async def asked(self, server: str, method: str, params: bytes | None, call: object) -> bytes:
        # It may use another connection as soon as this is known.
        client = self._client_of(server, call) or self._only_client(server)
        self._asked(server, method, params)
        if client is None:
            raise JsonRpcError(AMBIGUOUS)
        return await self._ask(server, method, params, call, client)

    def callers(self, server: str) -> set[Client]:
        """The clients of all calls that are under way at ``server``, or were given up lately."""
        clients = {call.client for call in self._calls.get(server, ())}
        if server in self._abandoned:
            owners = self._abandoned[server].owners(asyncio.get_running_loop().time())
            clients.update(owner for owner in owners if isinstance(owner, Client))
        return clients

    def _client_of(self, server: str, call: object) -> Client | None:
        """The client of ``call``, if that is under way at ``server``."""
        return next((one.client for one in self._calls.get(server, ()) if one is call), None)

    def _only_client(self, server: str) -> Client | None:
        """The only client that can be meant by what comes from ``server``; None if there are several, or if
        it has left.
        """
        callers = self.callers(server) or set(self.members(server))
        if len(callers) != 1:
            return None
        (client,) = callers
        calls = any(call.client is client for call in self._calls.get(server, ()))
        return client if calls or client in self.members(server) else None


Recheck = Callable[["RootsBinding", str], Awaitable[None]]
"""Makes sure that the clients whose calls are under way at a server still have the binding's roots. Raises
JsonRpcError if one hasn't.
"""


class RootsBinding(SharedBinding):
    """Clients with equal roots, on one connection to each server that asks for nothing else.

    roots: what every server on it is told.
    """

    def __init__(self, capabilities: bytes, asked: Asked, roots: Roots, recheck: Recheck) -> None:
        super().__init__(capabilities, asked)
        self.roots = roots
        self._recheck = recheck

    @property
    def servers(self) -> list[str]:
        """The servers for which it is used."""
        return list(self._members)

    def is_only_of(self, client: Client, *, calling: str | None = None) -> bool:
        """Whether no other client uses it or has a call under way there, and ``client`` has none itself, but
        at the server ``calling``.
        """
        if any(members != {client} for members in self._members.values()):
            return False
        servers = self._calls.keys() | self._abandoned.keys()
        return all(self.callers(server) <= ({client} if server == calling else set()) for server in servers)

    async def asked(self, server: str, method: str, params: bytes | None, call: object) -> bytes:
        if method != LIST_ROOTS:
            return await super().asked(server, method, params, call)
        await self._recheck(self, server)
        return self.roots.result


def any_client(asked: Asked, folder: str | None = None) -> Origin:
    """On whose behalf servers are listed where clients come and go: some list the tools that ask something
    only to a client that can be asked, so it is one that says it can. It answers nothing, and calls nothing.
    folder: see `Origin`.
    """
    binding = SharedBinding(ALL_CAPABILITIES, asked)
    return Origin(bound_client=binding, capabilities=ALL_CAPABILITIES, folder=folder)
