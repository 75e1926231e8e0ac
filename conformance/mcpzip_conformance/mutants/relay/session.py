"""The session of a client.

The rule: a request goes to its server unchanged except for the name; only the handshake and the lists are
answered here.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mcpzip.wire import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    SUBSCRIPTION_ID_KEY,
    Era,
    Request,
    Role,
    RpcError,
    join_object,
    negotiate,
    quote,
    read_opening,
    stamp_result,
    unsupported_version_error,
    with_members,
)
from mcpzip.wire import (
    Opening as Opened,
)
from mcpzip_conformance.mutants.relay.bridging import call_legacy_server, resolve_input
from mcpzip_conformance.mutants.relay.end import End, RefusedError, pass_on
from mcpzip_conformance.mutants.relay.listing import LISTS, has_tool, merged, with_server
from mcpzip_conformance.mutants.relay.naming import (
    ADDRESSED,
    addressed,
    echoed,
    items,
    members,
    shown,
    text,
    with_shown_contents,
    with_shown_uri,
)
from mcpzip_conformance.mutants.relay.opening import INFO, Opening
from mcpzip_conformance.mutants.relay.upstream import Link, Upstream

Write = Callable[[bytes, bytes | None, bool], None]
"""Sends a line to the client; see `End.write`."""

CAPABILITIES = (
    b'{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},'
    b'"prompts":{"listChanged":true},"completions":{},"logging":{}}'
)
"""What is promised before any server is up: what one has not, it refuses itself."""
LEGACY = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
MODERN = frozenset({"server/discover", "subscriptions/listen"})
FILTERS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
CACHEABLE = frozenset({*LISTS, "resources/read", "server/discover"})


@dataclass(frozen=True, slots=True)
class Config:
    """The servers (entries by name), and the classes that connect to them."""

    servers: Mapping[str, Mapping[str, object]]
    upstream: type[Upstream] = Upstream
    link: type[Link] = Link


@dataclass(slots=True)
class Servers:
    """The servers of one client, or of all modern clients over HTTP. named: by URI, the server whose result
    contained it."""

    config: Config
    opening: Opening
    by_name: dict[str, Upstream] = field(init=False)
    named: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = self.config
        self.by_name = {
            name: config.upstream(name, entry, self.opening, config.link)
            for name, entry in config.servers.items()
        }

    def start(self) -> list[asyncio.Task[object]]:
        """Start every server, without waiting."""
        return [asyncio.create_task(upstream.started()) for upstream in self.by_name.values()]

    async def end(self) -> None:
        """End every server."""
        await asyncio.gather(*(upstream.end() for upstream in self.by_name.values()))


class Session(End):
    """The session of one client. shared: servers of several clients; without it the session starts its
    own."""

    def __init__(self, config: Config, write: Write, shared: Servers | None = None) -> None:
        super().__init__(Role.SERVER)
        self.config, self.servers, self._write = config, shared, write
        self._listens: dict[bytes, dict[str, bytes]] = {}

    def write(self, line: bytes, about: bytes | None, *, last: bool = False) -> None:
        """See `End.write`."""
        self._write(line, about, last)

    async def end(self) -> None:
        """Cancel all tasks, and end the servers."""
        self.close()
        if self.servers is not None and self.servers.opening.owner is self:
            await self.servers.end()

    # What the client asks

    async def handle_request(self, request: Request) -> bytes:
        """See `End.handle_request`."""
        opened = read_opening(request.method, request.params)
        modern = opened is not None and opened.era is Era.MODERN
        if modern and opened is not None and opened.version not in MODERN_VERSIONS:
            raise RefusedError(unsupported_version_error(opened.version or ""))
        if opened is not None and self.servers is None:
            self.servers = self.opened(request, opened, modern)
        if request.method in (LEGACY if modern else MODERN):
            raise self.unknown(request.method)
        result = await self.answered(request)
        if not modern:
            return result
        cache = (0, "private") if request.method in CACHEABLE else (None, None)
        return stamp_result(result, server_info=INFO, ttl_ms=cache[0], cache_scope=cache[1])

    def opened(self, request: Request, opened: Opened, modern: bool) -> Servers:
        """The servers of a client that opens in this way."""
        params = request.params or b"{}"
        if not modern:
            params = with_members(params, {"protocolVersion": quote(negotiate(opened.version or ""))})
        servers = Servers(self.config, Opening(modern, params, self))
        servers.start()
        return servers

    async def answered(self, request: Request) -> bytes:
        """The result of a request. Raises RefusedError."""
        match request.method:
            case "ping":
                return b"{}"
            case "initialize":
                return self.greeting(request)
            case "server/discover":
                versions = json.dumps(MODERN_VERSIONS).encode()
                return join_object({"supportedVersions": versions, "capabilities": CAPABILITIES})
            case _ if self.servers is None:
                raise RefusedError(RpcError(INVALID_REQUEST, "The first request is initialize."))
            case "tools/list":
                return await self.tools(self.servers)
            case "tools/call":
                return await self.called(request, self.servers)
            case method if method in LISTS:
                return await merged(self.servers.by_name.values(), method)
            case "logging/setLevel":
                return await self.level_set(request, self.servers)
            case "subscriptions/listen":
                return await self.listened(request, self.servers)
            case method if method in ADDRESSED:
                return await self.passed(request, self.servers)
            case method:
                raise self.unknown(method)

    def greeting(self, request: Request) -> bytes:
        """The result of ``initialize``."""
        version = quote(negotiate(text(members(request.params).get("protocolVersion"))))
        return join_object({"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO})

    async def tools(self, servers: Servers) -> bytes:
        """The result of ``tools/list``."""
        return await merged(servers.by_name.values(), "tools/list")

    async def called(self, request: Request, servers: Servers) -> bytes:
        """The result of ``tools/call``."""
        server, params = addressed(request.method, request.params, servers.by_name)
        return await self.run_tool(request, servers.by_name[server], params)

    async def run_tool(self, request: Request, upstream: Upstream, params: bytes) -> bytes:
        """The result of a call by the tool's server. params: with the server's own name of the tool."""
        link = await upstream.link()
        tool = text(members(params).get("name"))
        if not await has_tool(upstream, tool):
            known = ", ".join(shown(upstream.name, name) for name in upstream.tools)
            raise self.invalid(f"There is no tool {echoed(shown(upstream.name, tool))}; there are: {known}.")
        result = await self.sent_on(request, link, params)
        self.linked(upstream.name, result)
        return result

    def linked(self, server: str, result: bytes) -> None:
        """Remember the server of each resource to which a result links."""
        if b"resource_link" not in result or self.servers is None:
            return
        for block in items(members(result).get("content", b"[]")):
            fields = members(bytes(block))
            if text(fields.get("type")) == "resource_link" and (uri := text(fields.get("uri"))):
                self.servers.named[uri] = server

    async def passed(self, request: Request, servers: Servers) -> bytes:
        """The result of a request by its server."""
        params = await with_server(request, servers.by_name.values(), servers.named)
        server, params = addressed(request.method, params, servers.by_name)
        result = await self.sent_on(request, await servers.by_name[server].link(), params)
        return with_shown_contents(result, server) if request.method == "resources/read" else result

    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        """The result of the request with these params by the server of ``link``."""
        modern = link.upstream.opening.modern
        if modern and not link.modern:
            return await call_legacy_server(request, self, link, link.fitted(params), link.upstream.suspended)
        result = await pass_on(request, self, link, link.fitted(params))
        if link.modern and not modern:
            return await resolve_input(request, self, link, link.fitted(params), result)
        return result

    async def level_set(self, request: Request, servers: Servers) -> bytes:
        """Set the log level of all servers that log, also of those that start later."""
        servers.opening.level = request.params
        for upstream in servers.by_name.values():
            if (link := upstream.up) is not None and "logging" in link.capabilities:
                await self.sent_on(request, link, request.params)
        return b"{}"

    async def listened(self, request: Request, servers: Servers) -> bytes:
        """Subscribe a modern client to changes of all servers, until it cancels."""
        wanted = members(members(request.params).get("notifications"))
        self._listens[request.id] = wanted
        params = {"notifications": join_object(wanted)}
        self.subscribed("notifications/subscriptions/acknowledged", join_object(params), request.id)
        try:
            upstreams = servers.by_name.values()
            await asyncio.gather(*(self.listen_to(request, upstream, wanted) for upstream in upstreams))
            await asyncio.Event().wait()
        finally:
            del self._listens[request.id]
        return b"{}"

    async def listen_to(self, request: Request, upstream: Upstream, wanted: Mapping[str, bytes]) -> None:
        """Subscribe to one server, until it ends the subscription."""
        own = dict(wanted)
        if "resourceSubscriptions" in own:
            uris = [uri for uri in json.loads(own["resourceSubscriptions"]) if isinstance(uri, str)]
            prefix = f"relay://{upstream.name}/"
            mine = [uri.removeprefix(prefix) for uri in uris if uri.startswith(prefix)]
            own["resourceSubscriptions"] = json.dumps(mine).encode()
        try:
            link = await upstream.link()
            if link.modern:
                params = with_members(request.params or b"{}", {"notifications": join_object(own)})
                await self.sent_on(request, link, params)
        except RefusedError:
            pass  # the others may still have something to tell

    # What the client tells, and is told

    def handle_notification(self, method: str, params: bytes | None) -> None:
        """See `End.handle_notification`. Only a change of the client's roots is passed to the servers."""
        if method == "notifications/roots/list_changed" and self.servers is not None:
            for upstream in self.servers.by_name.values():
                if upstream.up is not None and not upstream.up.modern:
                    upstream.up.notify(method, params)

    def forward_notification(
        self, server: str, method: str, params: bytes | None, about: bytes | None, *, subscribed: bool
    ) -> None:
        """See `End.forward_notification`."""
        if method == "notifications/resources/updated" and params is not None:
            params = with_shown_uri(params, server)
        changed = FILTERS.get(method.removeprefix("notifications/").removesuffix("/list_changed"))
        if subscribed and about is not None:
            if method != "notifications/subscriptions/acknowledged":  # that we have said ourselves
                self.subscribed(method, params, about)
        elif self.servers is not None and self.servers.opening.modern and changed is not None:
            for id, wanted in self._listens.items():
                if wanted.get(changed) == b"true":
                    self.subscribed(method, params, id)
        else:
            self.notify(method, params, None if changed is not None else about)

    def subscribed(self, method: str, params: bytes | None, id: bytes) -> None:
        """Send a notification on the subscription ``id``."""
        meta = members(members(params).get("_meta")) | {SUBSCRIPTION_ID_KEY: id}
        self.notify(method, with_members(params or b"{}", {"_meta": join_object(meta)}), id)

    @staticmethod
    def unknown(method: str) -> RefusedError:
        """The error for an unknown method."""
        return RefusedError(RpcError(METHOD_NOT_FOUND, f"There is no method {method!r}."))

    @staticmethod
    def invalid(why: str) -> RefusedError:
        """The error for invalid params."""
        return RefusedError(RpcError(-32602, why))
