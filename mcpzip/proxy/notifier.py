"""Who is told that something changed.

The rules (spec 2025-11-25: basic/transports, server/resources; 2026-07-28: basic/patterns/subscriptions): a
legacy client hears of every list it was shown, to_unsubscribed, and of the resources it subscribed to; a
modern one hears what it asked for with `subscriptions/listen`, as long as that request is open and tagged
with its id.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from mcpzip.model import limits
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.proxy.exchange import Client, Exchange, members
from mcpzip.transport.subscription import UPDATED
from mcpzip.wire import SUBSCRIPTION_ID_KEY, Era, join_object, quote, unquote, with_members

ALL_LISTS = TOOLS, PROMPTS, RESOURCES = "tools", "prompts", "resources"

_FILTERS = {
    "toolsListChanged": TOOLS,
    "promptsListChanged": PROMPTS,
    "resourcesListChanged": RESOURCES,
}
_NOTICES = {
    TOOLS: "notifications/tools/list_changed",
    PROMPTS: "notifications/prompts/list_changed",
    RESOURCES: "notifications/resources/list_changed",
}

ResourceId = tuple[str, str]
"""A resource: its server, and the server's own URI for it."""


class Subscription(msgspec.Struct, eq=False):
    """An open `subscriptions/listen`."""

    exchange: Exchange
    filters: tuple[str, ...]
    resources: Mapping[ResourceId, str]
    own: frozenset[str] = frozenset()
    """The servers that tell its client so on a connection of its own."""

    @property
    def lists(self) -> set[str]:
        """Which of TOOLS, PROMPTS and RESOURCES it wants to hear of."""
        return {_FILTERS[key] for key in self.filters}

    def acknowledge(self) -> None:
        """Says what it will hear of."""
        granted = dict.fromkeys(self.filters, b"true")
        if self.resources:
            granted["resourceSubscriptions"] = b"[%b]" % b",".join(map(quote, self.resources.values()))
        params = join_object({"notifications": join_object(granted)})
        self.notify("notifications/subscriptions/acknowledged", params)

    def notify(self, method: str, params: bytes) -> None:
        """Sends a notification, tagged as this subscription's."""
        meta = with_members(_object(members(params).get("_meta")), {SUBSCRIPTION_ID_KEY: self.exchange.id})
        self.exchange.notify(method, with_members(params, {"_meta": meta}))


class Notifier(msgspec.Struct):
    """The clients that can hear, and what they want to."""

    _clients: dict[Client, dict[ResourceId, str]] = {}
    _own: set[tuple[Client, ResourceId]] = set()
    _subscriptions: set[Subscription] = set()
    _closing: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    may_hear: Callable[[Principal | None, str], bool] = lambda principal, server: True
    """Whether somebody may hear of the resources of a server."""
    is_per_user: Callable[[str], bool] = lambda server: False
    """Whether each person signs in to a server, and so hears of it alone."""

    @property
    def clients(self) -> Collection[Client]:
        """The clients that can be told things."""
        return self._clients.keys()

    def add_client(self, client: Client) -> None:
        """``client`` can be told things until it has `left`."""
        self._clients.setdefault(client, {})

    def remove_client(self, client: Client) -> set[str]:
        """Returns the servers of which it watched resources."""
        self._own = {(one, place) for one, place in self._own if one is not client}
        return {server for server, _ in self._clients.pop(client, {})}

    def close(self) -> None:
        """Ends every subscription, as a server does that goes away."""
        self._closing.set()

    def lists_changed(self, lists: Iterable[str], person: PrincipalId | None = None) -> None:
        """These of TOOLS, PROMPTS and RESOURCES are not what they were. person: for whom; None for all."""
        for name in lists:
            for client in self._clients:
                if client.era is Era.LEGACY and (person is None or _id(client.principal) == person):
                    client.notify(_NOTICES[name], None)
            for subscription in self._subscriptions:
                whose = _id(subscription.exchange.principal)
                if name in subscription.lists and (person is None or whose == person):
                    subscription.notify(_NOTICES[name], b"{}")

    def can_watch(self, client: Client, place: ResourceId) -> bool:
        """Whether ``client`` watches so few resources that it can be this one, too."""
        places = self._clients.get(client, {})
        return place in places or len(places) < limits.SUBSCRIPTIONS

    def watch(self, client: Client, place: ResourceId, shown: str, *, own: bool) -> None:
        """``client`` wants to hear of the resource at ``place``, which it calls ``shown``. own: it will, on a
        connection of its own.
        """
        self._clients.setdefault(client, {})[place] = shown
        if own:
            self._own.add((client, place))

    def unwatch(self, client: Client, place: ResourceId) -> None:
        """It no longer does."""
        self._clients.get(client, {}).pop(place, None)
        self._own.discard((client, place))

    def watched_as(self, client: Client, shown: str) -> ResourceId | None:
        """The place of the resource that ``client`` watches and calls ``shown``; None if it watches none."""
        places = self._clients.get(client, {})
        return next((place for place, called in places.items() if called == shown), None)

    def on_own_connection(self, client: Client, place: ResourceId) -> bool | None:
        """Whether ``client`` hears of the resource at ``place`` on a connection of its own; None when it
        doesn't watch it.
        """
        if place not in self._clients.get(client, {}):
            return None
        return (client, place) in self._own

    def shared_watches(self, server: str, person: PrincipalId | None = None) -> set[str]:
        """The URIs of ``server`` that anybody watches who has no connection of its own for it. person: whose,
        of a server to which each person signs in; None there for whoever uses this machine.
        """
        clients = (one for one in self._clients if self._is_for(one.principal, server, person))
        kept = [(client, place) for client in clients for place in self._clients[client]]
        places = [place for client, place in kept if (client, place) not in self._own]
        listening = (
            one for one in self._subscriptions if self._is_for(one.exchange.principal, server, person)
        )
        places += [place for one in listening for place in one.resources if place[0] not in one.own]
        return {uri for owner, uri in places if owner == server}

    def watches_of(self, client: Client, server: str) -> set[str]:
        """The URIs of ``server`` that ``client`` watches."""
        places = [*self._clients.get(client, {})]
        places += [
            place for one in self._subscriptions if one.exchange.client is client for place in one.resources
        ]
        return {uri for owner, uri in places if owner == server}

    def resource_updated(
        self,
        server: str,
        params: bytes,
        only: Client | None = None,
        *,
        to_unsubscribed: bool = False,
        person: PrincipalId | None = None,
    ) -> None:
        """``server`` said so of a resource. only: the client it said it to, None when it is for all.
        to_unsubscribed: whether legacy clients hear of it, as it is, where nobody asked to. person: on whose
        connection it was said, as in `shared_watches`.
        """
        uri = _text(members(params).get("uri"))
        if to_unsubscribed and not self._watches(server, uri, only):
            for client in self._clients:
                if client.era is Era.LEGACY and only in (None, client):
                    client.notify(UPDATED, params)
            return
        for client, places in self._clients.items():
            if only is None:  # what it hears of on its own connection it is told of once
                places = {at: shown for at, shown in places.items() if (client, at) not in self._own}
            if not self._may_hear(client.principal, server, person):
                continue
            if only in (None, client) and (shown := _shown(places, server, uri)):
                client.notify(UPDATED, with_members(params, {"uri": quote(shown)}))
        untagged = members(params)
        untagged.pop("_meta", None)  # the tag of our own subscription upstream
        for one in self._subscriptions:
            if (only is None and server in one.own) or not self._may_hear(
                one.exchange.principal, server, person
            ):
                continue
            if only in (None, one.exchange.client) and (shown := _shown(one.resources, server, uri)):
                one.notify(UPDATED, join_object({**untagged, "uri": quote(shown)}))

    def _may_hear(self, principal: Principal | None, server: str, person: PrincipalId | None) -> bool:
        return self._is_for(principal, server, person) and self.may_hear(principal, server)

    def _is_for(self, principal: Principal | None, server: str, person: PrincipalId | None) -> bool:
        """Whether what ``server`` says on a connection of ``person`` is for ``principal``."""
        return not self.is_per_user(server) or _id(principal) == person

    def _watches(self, server: str, uri: str, only: Client | None) -> bool:
        """Whether ``only``, or anybody if that is None, watches the resource."""
        watching = [places for client, places in self._clients.items() if only in (None, client)]
        listening = [one.resources for one in self._subscriptions if only in (None, one.exchange.client)]
        return any(_shown(places, server, uri) for places in (*watching, *listening))

    def subscribe(
        self, exchange: Exchange, resources: Mapping[ResourceId, str], own: frozenset[str]
    ) -> Subscription:
        """A `subscriptions/listen` that begins. resources: those it asks for that there are. own: the servers
        that tell its client so on a connection of its own.
        """
        asked = members(exchange.fields.get("notifications"))
        lists = [key for key in _FILTERS if asked.get(key) == b"true"]
        subscription = Subscription(exchange, tuple(lists), resources, own)
        self._subscriptions.add(subscription)
        return subscription

    async def listen(self, subscription: Subscription) -> bytes:
        """Serves it until its client ends it (by cancelling this), or we do. Returns its result."""
        subscription.acknowledge()
        await self._closing.wait()
        return join_object({"_meta": join_object({SUBSCRIPTION_ID_KEY: subscription.exchange.id})})

    def unsubscribe(self, subscription: Subscription) -> None:
        """Nobody listens to it any more."""
        self._subscriptions.discard(subscription)


def _id(principal: Principal | None) -> PrincipalId | None:
    return None if principal is None else principal.id


def _shown(places: Mapping[ResourceId, str], server: str, uri: str) -> str | None:
    """What a client that watches ``places`` calls ``uri``, if it is one of them or lies under one of them
    (spec: server/resources "Subscriptions": it may be a sub-resource).
    """
    if shown := places.get((server, uri)):
        return shown
    for (owner, above), shown in places.items():
        if owner == server and uri.startswith(above.rstrip("/") + "/"):
            return shown + uri[len(above) :]
    return None


def _object(text: bytes | None) -> bytes:
    return text if text is not None and text.startswith(b"{") else b"{}"


def _text(text: bytes | None) -> str:
    try:
        return unquote(text or b'""')
    except ValueError:
        return ""
