"""Requests that pass through to the server they are about: prompts, resources, completions.

The rule: a name or URI of ours is put back into the server's own on the way there, and again into ours where
the client would look for it in the answer; everything else passes as it is. In ``transparent`` even that is
left out, and so every request passes, known to us or not.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import (
    McpzipError,
    UpstreamError,
)
from mcpzip.model.names import join_uri
from mcpzip.model.principal import Principal
from mcpzip.proxy.call import UpstreamRequest, timeout_of
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import ENVELOPE_MEMBERS, Client, Exchange, members
from mcpzip.proxy.exposure import look_up
from mcpzip.proxy.guard import Guard
from mcpzip.proxy.kept_results import URI, Results
from mcpzip.proxy.notifier import Notifier, ResourceId
from mcpzip.proxy.pipeline import CallPipeline
from mcpzip.proxy.uri_sources import UriSources
from mcpzip.proxy.views import Views
from mcpzip.proxy.workers import run_in_worker
from mcpzip.transport.pool import Pool
from mcpzip.wire import (
    INVALID_PARAMS,
    Era,
    JsonRpcError,
    RpcError,
    UpstreamRpcError,
    join_object,
    quote,
    unquote,
    with_members,
)
from mcpzip.wire.json_iter import TooManyError, elements_of

SUBSCRIBE_TIMEOUT = 10.0
"""Seconds a server may take to subscribe us to a resource."""


class Way(NamedTuple):
    """The way of requests to a server."""

    pool: Pool
    pipeline: CallPipeline
    guard: Guard


class Passthrough:
    """Makes such requests. Everything runs on one event loop."""

    def __init__(
        self,
        current: CurrentConfig,
        views: Views,
        pool: Pool,
        pipeline: CallPipeline,
        notifier: Notifier,
        guard: Guard,
    ) -> None:
        self._current, self._views, self._notifier = current, views, notifier
        self._shared = Way(pool, pipeline, guard)
        notifier.is_per_user = lambda server: server in current.per_user
        self._unwatching: set[asyncio.Task[None]] = set()
        self.uri_sources = UriSources(len(current.enabled))
        self.saw: Callable[[Client, str], None] = lambda client, server: None
        """Is told which server is asked for a prompt or a resource, and by which client."""
        self.results: Results | None = None
        """The kept results, which can be read as resources."""

    async def forward(self, method: str, exchange: Exchange, server: str) -> bytes:
        """The answer of ``server`` to a request as it is."""
        return await self._ask(method, exchange, server, {})

    async def prompt(self, exchange: Exchange) -> bytes:
        """The answer to `prompts/get`. Raises JsonRpcError, UnknownPromptError, UpstreamError."""
        exposure, asked = self._views.of(exchange.principal).exposure, _text(exchange, "name")
        server, name = await look_up(exposure, lambda: exposure.route_prompt(asked))
        await self._way(exchange.principal, server).guard.check_prompt(server, name, asked)
        result = await self._ask("prompts/get", exchange, server, {"name": quote(name)})
        self.uri_sources.record(exchange.client, server, "prompts/get", result)
        return result

    async def complete(self, exchange: Exchange) -> bytes:
        """The answer to `completion/complete`. Raises as `prompt` and `resource` do."""
        ref = members(exchange.fields.get("ref"))
        if "uri" in ref:
            (server, own), key = (
                await self._resource_id(exchange.client, _unquoted(ref["uri"], "ref.uri")),
                "uri",
            )
        else:
            exposure, asked = (
                self._views.of(exchange.principal).exposure,
                _unquoted(ref.get("name"), "ref.name"),
            )
            (server, own), key = await look_up(exposure, lambda: exposure.route_prompt(asked)), "name"
            await self._way(exchange.principal, server).guard.check_prompt(server, own, asked)
        changed = with_members(exchange.fields["ref"], {key: quote(own)})
        return await self._ask("completion/complete", exchange, server, {"ref": changed})

    async def resource(self, exchange: Exchange) -> bytes:
        """The answer to `resources/read`. Raises JsonRpcError, UnknownResourceError, UpstreamError."""
        shown = _text(exchange, "uri")
        if self.results is not None and shown.startswith(URI):
            return await self.results.resource(exchange.client, shown)
        server, uri = await self._resource_id(exchange.client, shown)
        try:
            result = await self._ask("resources/read", exchange, server, {"uri": quote(uri)})
        except UpstreamRpcError as error:
            raise UpstreamRpcError(server, _with_shown_uri(error.error, uri, shown)) from error
        except JsonRpcError as error:
            raise JsonRpcError(_with_shown_uri(error.error, uri, shown)) from error
        if shown == uri:
            self.uri_sources.record(exchange.client, server, "resources/read", result)
            return result
        renaming = partial(_renamed, server, result, lambda own: _shown_uri(server, own, uri, shown))
        return renaming() if len(result) <= limits.READ_AT_ONCE else await run_in_worker(renaming, "rename")

    async def subscribe(self, exchange: Exchange, wanted: bool) -> bytes:
        """The answer to `resources/subscribe` or, not ``wanted``, to `resources/unsubscribe`."""
        client, shown = exchange.client, _text(exchange, "uri")
        # What it hears of already it means, whoever has named it since.
        place = server, uri = self._notifier.watched_as(client, shown) or await self._resource_id(
            client, shown
        )
        if wanted:
            await self._way(client.principal, server).guard.check_uri(server, uri, shown)
        if wanted and not self._notifier.can_watch(client, place):
            raise _too_many()
        result = b"{}"
        had = self._notifier.on_own_connection(client, place)
        own = await self._has_own_connection(client, server) if had is None else had
        if own:
            method = "resources/subscribe" if wanted else "resources/unsubscribe"
            result = await self._ask(method, exchange, server, {"uri": quote(uri)})
            binding = await self._way(client.principal, server).pipeline.bindings.to(client, server)
            kept = binding.subscriptions[server]
            (kept.add if wanted else kept.discard)(uri)
        if wanted:
            self._notifier.watch(client, place, shown, own=own)
        else:
            self._notifier.unwatch(client, place)
        if not own:
            try:
                refused = await self._watch(server, client, more=wanted)
                if wanted and uri in refused:
                    raise refused[uri]
            except McpzipError:
                self._notifier.unwatch(client, place)
                await self._watch_if_possible(server, client)
                raise
        return result

    async def _watch_if_possible(self, server: str, client: Client) -> None:
        try:
            await self._watch(server, client, more=False)
        except UpstreamError:
            pass  # nobody waits for it

    async def listen(self, exchange: Exchange) -> bytes:
        """Serves `subscriptions/listen`."""
        client = exchange.client
        places: dict[ResourceId, str] = {}
        wanted = _texts(members(exchange.fields.get("notifications")).get("resourceSubscriptions"))
        if len(wanted) > limits.SUBSCRIPTIONS:
            raise _too_many()
        for shown in wanted:
            try:
                places[await self._resource_id(client, shown)] = shown
            except McpzipError:
                pass  # what is not granted is left out of the acknowledgement
        servers = {server for server, _ in places}
        own = frozenset([server for server in servers if await self._has_own_connection(client, server)])
        subscription = self._notifier.subscribe(exchange, places, own)
        try:
            await self._watch_all(client, servers)
            return await self._notifier.listen(subscription)
        finally:
            self._notifier.unsubscribe(subscription)
            if servers:
                task = asyncio.create_task(self._watch_all(client, servers), name="unwatch")
                self._unwatching.add(task)
                task.add_done_callback(self._unwatching.discard)

    async def _resource_id(self, client: Client, uri: str) -> ResourceId:
        """Whose resource, or resource template, ``client`` means. Raises UnknownResourceError."""
        view = self._views.of(client.principal)
        exposure = view.exposure
        # What was revoked since is not named any more.
        sources = self.uri_sources.sources_of(client, uri)
        named = [each & view.open for each in sources]
        server, own = await look_up(exposure, lambda: exposure.route_uri(uri, *named))
        await self._way(client.principal, server).guard.check_uri(server, own, uri)
        return server, own

    async def _has_own_connection(self, client: Client, server: str) -> bool:
        """Whether ``client`` hears of resources of ``server`` on a connection of its own. Raises
        UpstreamUnavailableError.
        """
        way = self._way(client.principal, server)
        binding = await way.pipeline.bindings.to(client, server) if client.has_session else None
        if binding is None or binding.key is None or binding.is_reused:
            return False
        origin = way.pipeline.origin_with(client, binding)
        greeting = await way.pool.server_info(server, origin)
        return greeting.dialect.era is Era.LEGACY

    async def _watch(self, server: str, client: Client, *, more: bool) -> dict[str, UpstreamError]:
        """Has ``server`` tell of what those watch that have no connection of their own. client: one that
        watches something else than before. more: whether that is more. Returns why the server won't, by
        resource. Raises UpstreamError.
        """
        way, origin = self._way(client.principal, server), None
        if more:
            binding = await way.pipeline.bindings.to(client, server) if client.has_session else None
            shares = binding is not None and binding.is_reused
            origin = way.pipeline.origin_with(client, binding if shares else None)
        watches = self._notifier.shared_watches(
            server, None if client.principal is None else client.principal.id
        )
        return await way.pool.set_subscriptions(server, watches, origin)

    async def _watch_own(self, client: Client, server: str) -> None:
        """The same on the connection that ``client`` has to itself."""
        way = self._way(client.principal, server)
        binding = await way.pipeline.bindings.to(client, server)
        had, origin = binding.subscriptions[server], way.pipeline.origin_with(client, binding)
        wanted = self._notifier.watches_of(client, server)
        for method, uris in (("resources/subscribe", wanted - had), ("resources/unsubscribe", had - wanted)):
            for uri in sorted(uris):
                params = join_object({"uri": quote(uri)})
                try:
                    await way.pool.request(server, method, params, timeout=SUBSCRIBE_TIMEOUT, origin=origin)
                except UpstreamRpcError:
                    if method == "resources/subscribe":
                        continue  # it is told of the others
                had.symmetric_difference_update({uri})

    async def _watch_all(self, client: Client, servers: Iterable[str]) -> None:
        for server in servers:
            try:
                if await self._has_own_connection(client, server):
                    await self._watch_own(client, server)
                else:
                    await self._watch(server, client, more=True)
            except UpstreamError:
                pass  # the subscription stands; it is made upstream as soon as there is a connection

    async def close(self) -> None:
        """Stops whatever is under way."""
        for task in self._unwatching:
            task.cancel()
        await asyncio.gather(*self._unwatching, return_exceptions=True)

    async def remove_client(self, client: Client) -> None:
        """``client`` is gone: nothing is done for it any more, and nothing watched."""
        for each in self.pipelines:
            await each.remove_client(client)
        self.uri_sources.remove_client(client)
        for server in self._notifier.remove_client(client):
            await self._watch_if_possible(server, client)

    async def _ask(self, method: str, exchange: Exchange, server: str, changed: dict[str, bytes]) -> bytes:
        fields = {key: value for key, value in exchange.fields.items() if key not in ENVELOPE_MEMBERS}
        self.saw(exchange.client, server)
        timeout = timeout_of(self._current.config, server)
        request = UpstreamRequest(
            server, method, {**fields, **changed}, timeout, repeatable=method != "tools/call"
        )
        return await self._way(exchange.principal, server).pipeline.send(exchange, request)

    def pipeline_of(self, principal: Principal | None, server: str) -> CallPipeline:
        """The way of requests of ``principal`` to ``server``. Raises LoginNeededError."""
        if principal is None:
            return self._shared.pipeline
        return self._way(principal, server).pipeline

    @property
    def pipelines(self) -> list[CallPipeline]:
        """The way that all have in common, and those that people have for themselves."""
        return [self._shared.pipeline, *(each.pipeline for each in self._views.kept_upstreams())]

    def _way(self, principal: Principal | None, server: str) -> Way:
        """Raises LoginNeededError for a person who has to sign in first: nothing is asked before."""
        own = self._views.own(principal, server)
        if own is None:
            return self._shared
        if (needed := own.login_needed(server)) is not None:
            raise needed
        return Way(own.pool, own.pipeline, own.guard)


def _too_many() -> JsonRpcError:
    most = f"Up to {limits.SUBSCRIPTIONS:,} resources can be subscribed to at once; unsubscribe from others."
    return JsonRpcError(RpcError(INVALID_PARAMS, most))


def _text(exchange: Exchange, key: str) -> str:
    return _unquoted(exchange.fields.get(key), key)


def _unquoted(raw: bytes | None, key: str) -> str:
    try:
        if raw is not None:
            return unquote(raw)
    except ValueError:
        pass
    raise JsonRpcError(RpcError(INVALID_PARAMS, f"{key!r} is missing, or is not a string."))


def _texts(raw: bytes | None) -> list[str]:
    try:
        return msgspec.json.decode(raw or b"[]", type=list[str])
    except msgspec.DecodeError:
        return []


def _shown_uri(server: str, own: str, asked: str, shown: str) -> str:
    """What a client calls the resource that ``server`` calls ``own``, when it asked for ``shown``."""
    return shown if own == asked else join_uri(server, own)


def _with_shown_uri(error: RpcError, uri: str, shown: str) -> RpcError:
    """``error`` whose data name the resource by the URI that the client knows, ``shown``."""
    if error.data is None or shown == uri or members(error.data).get("uri") != quote(uri):
        return error
    data = with_members(error.data, {"uri": quote(shown)})
    return RpcError(error.code, error.message, data, error.more)


def _renamed(server: str, result: bytes, rename: Callable[[str], str]) -> bytes:
    """The result of `resources/read` with its URIs renamed; whatever isn't as it should be stays so. Raises
    UpstreamError for more contents than are looked into.
    """
    contents = members(result).get("contents", b"")
    try:
        renamed = []
        for part in elements_of(contents, limits.NAMED_BLOCKS):
            uri = members(part).get("uri")
            said = None if uri is None else unquote(uri)
            renamed.append(part if said is None else with_members(part, {"uri": quote(rename(said))}))
    except TooManyError as error:
        raise UpstreamError(server, f"its answer has {error} in 'contents'") from None
    except ValueError:
        return result
    return with_members(result, {"contents": b"[%b]" % b",".join(renamed)})
