"""A client and its upstream connections: which it has to itself, and what comes from an upstream on those.

The rule: on a legacy connection nothing says which call a message belongs to. So a client that can be asked
anything has connections of its own, and what comes on one goes to the newest of that client's calls there.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from itertools import count

from mcpzip.proxy.call import Call, CallEndedError, ask_client
from mcpzip.proxy.call_states import Event
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.log_levels import is_wanted
from mcpzip.system.tasks import retrieve_exception
from mcpzip.wire import (
    REQUEST_CANCELLED,
    Era,
    JsonRpcError,
    RpcError,
    without_members,
)

_NOT_ABOUT_A_CALL = ("roots/list",)
"""What servers ask on their own account, whatever is under way."""
_NUMBERS = count(1)


class ClientBinding:
    """A client as legacy upstreams see it (`transport.base.BoundClient`).

    gone: whether it has left; nothing is opened for it any more. subscriptions: the resources that it
    subscribed to on connections of its own, by server.
    """

    def __init__(self, client: Client, key: Hashable = None) -> None:
        self.client = client
        self.gone = False
        self.subscriptions: dict[str, set[str]] = defaultdict(set)
        self._key = key
        self._number = next(_NUMBERS)
        self._calls: dict[str, list[Call]] = defaultdict(list)
        self._asking: dict[str, set[asyncio.Task[bytes]]] = defaultdict(set)

    # --- what the client can do ---

    @property
    def key(self) -> Hashable:
        """None where it can share: nothing is asked of it, and nothing it said concerns a connection."""
        if self.gone:
            return None
        if self._key is not None:
            return self._key
        client = self.client
        if not (
            client.is_only_client
            or (client.has_session and (client.is_interactive or client.log_level is not None))
        ):
            return None
        # A modern client says with each request what it can be asked; a legacy server hears it once.
        return ("client", self._number, client.capabilities if client.era is Era.MODERN else b"")

    @property
    def is_isolated(self) -> bool:
        return False

    @property
    def is_reused(self) -> bool:
        return not self.client.has_session

    @property
    def capabilities(self) -> bytes:
        """What a legacy upstream is told that it can ask."""
        return without_members(self.client.capabilities, ("tasks",))

    @property
    def log_level(self) -> str | None:
        return self.client.log_level

    def watched(self, server: str) -> Collection[str]:
        return self.subscriptions.get(server, ())

    def close(self) -> None:
        """Marks the client as gone and forgets its subscriptions. Its connections are closed elsewhere
        (`Pool.forget`).
        """
        self.gone = True
        self.subscriptions.clear()

    # --- its calls ---

    def begin(self, call: Call) -> None:
        """``call`` is under way upstream from now on."""
        self._calls[call.request.server].append(call)

    def end(self, call: Call, event: Event, *, may_go_on: bool = False) -> None:
        """It no longer is, by RESULT or LOSS. After a LOSS its client need not answer its questions.
        may_go_on: whether it was cancelled, which a server may ignore."""
        server = call.request.server
        calls = self._calls[server]
        calls.remove(call)
        if event is Event.LOSS and not calls:
            for asking in self._asking[server]:
                asking.cancel()

    # --- what an upstream sends ---

    def notified(self, server: str, method: str, params: bytes | None, call: object) -> None:
        if calls := self._calls.get(server):
            next((one for one in calls if one is call), calls[-1]).notify(method, params)
        elif method != "notifications/message" or is_wanted(params, self.client, None):
            self.client.notify(method, params)

    def exchange(self, server: str) -> Exchange | None:
        """The client's open request during which ``server`` says something; None if there is none."""
        calls = self._calls.get(server, ())
        return next((call.exchange for call in reversed(calls) if call.exchange is not None), None)

    async def asked(self, server: str, method: str, params: bytes | None, call: object) -> bytes:
        return await self._ask(server, method, params, call, None)

    async def _ask(
        self, server: str, method: str, params: bytes | None, call: object, only: Client | None
    ) -> bytes:
        """See `asked`. only: nobody but this client is asked, in none but its calls; None: all calls on this
        connection are of one client.
        """
        while calls := [one for one in self._calls.get(server, ()) if only in (None, one.client)]:
            try:
                return await self._asked_during(_most_likely(calls, call), method, params)
            except CallEndedError:
                pass
        client = only or self.client
        return await ask_client(client.request, client.capabilities, method, params)

    async def _asked_during(self, call: Call, method: str, params: bytes | None) -> bytes:
        if call.client.era is Era.MODERN or method in _NOT_ABOUT_A_CALL:
            return await call.ask(method, params)
        asking = asyncio.create_task(call.ask(method, params))
        asking.add_done_callback(retrieve_exception)
        others = self._asking[call.request.server]
        others.add(asking)
        try:
            await asyncio.wait({asking})
        except asyncio.CancelledError:
            asking.cancel()
            await asyncio.wait({asking})
            raise
        finally:
            others.discard(asking)
        if asking.cancelled():
            raise JsonRpcError(RpcError(REQUEST_CANCELLED, "The call in which this was asked has ended."))
        return asking.result()


def _most_likely(calls: Sequence[Call], call: object) -> Call:
    """Which of ``calls`` a question is about: ``call``, else the newest, but preferably one whose client is
    there: the others would have to come back first.
    """
    known = (one for one in calls if one is call)
    return next(known, None) or next((one for one in reversed(calls) if one.exchange is not None), calls[-1])


class IsolatedBinding(ClientBinding):
    """A client that shares no connection to a server, whatever it and the server can do."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._key = ("isolated", self._number)

    @property
    def is_isolated(self) -> bool:
        return True

    @property
    def key(self) -> Hashable:
        # A modern client says with each request what it can be asked; a legacy server hears it once.
        modern = self.client.era is Era.MODERN
        return None if self.gone else (self._key, self.client.capabilities if modern else b"")
