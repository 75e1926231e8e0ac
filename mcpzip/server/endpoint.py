"""Answers the requests of clients, whatever transport they came by.

Every method of either era is answered, or refused as the specification says. What a client is told of us
follows from the config and the catalog. A modern result has the `_meta` of its era, a legacy one has not.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING

import msgspec

from mcpzip.config import Config
from mcpzip.model.errors import (
    InsufficientScopeError,
    InvalidCursorError,
    KeptNoMoreError,
    LoginNeededError,
    McpzipError,
    UnknownPromptError,
    UnknownResourceError,
    UnknownToolError,
    UpstreamError,
)
from mcpzip.model.principal import Principal
from mcpzip.model.quoting import shortened
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.exposure import Exposure, look_up
from mcpzip.proxy.input_required import is_input_required
from mcpzip.proxy.log_levels import LOG_LEVELS
from mcpzip.proxy.metatools import DESCRIBE, EXECUTE, EXECUTE_READ, SEARCH, instructions
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.statistics import CLIENT_INFO_SIZE
from mcpzip.server import config_results
from mcpzip.server.config_results import LISTING_TTL
from mcpzip.wire import (
    CLIENT_INFO_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY_VERSIONS,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    Era,
    JsonRpcError,
    RpcError,
    ScopeError,
    UpstreamRpcError,
    join_object,
    negotiate,
    quote,
    split_object,
    stamp_result,
    unquote,
    versions_in,
    with_members,
)

if TYPE_CHECKING:
    from mcpzip.telemetry.traces import Recorder

SERVER_INFO = msgspec.json.encode(config_results.SERVER_INFO)
CAPABILITIES = msgspec.json.encode(config_results.CAPABILITIES)
NO_TTL = 0
"""The same for what an upstream may change at any time."""

BUSY = RpcError(INTERNAL_ERROR, "There are too many requests under way; try again later.")
STOPPED = RpcError(INTERNAL_ERROR, "mcpzip was told to stop; the request was cancelled.")

_LEGACY_ONLY = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
_MODERN_ONLY = frozenset({"server/discover", "subscriptions/listen"})
_FOR_UPSTREAMS = ("notifications/roots/list_changed",)
_FOR_US = ("notifications/initialized", "notifications/cancelled", "notifications/progress")
_ABOUT_SERVERS = frozenset(
    {"tools/call", "tools/list", "prompts/list", "resources/list", "resources/templates/list"}
    | {"prompts/get", "resources/read", "resources/subscribe", "subscriptions/listen", "completion/complete"}
)
"""Methods whose results depend on what a person has signed in to."""
_CACHEABLE = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)


class Greeting:
    """The results of `initialize` and `server/discover`, as JSON texts: made from the config, or,
    where the config says ``"expose": "transparent"``, from the one server's own.
    """

    def __init__(self, capabilities: bytes, info: bytes, instructions: str | None, ttl: int) -> None:
        """ttl: milliseconds a modern client may keep it."""
        common = {"capabilities": capabilities, "serverInfo": info}
        optional = {} if instructions is None else {"instructions": quote(instructions)}
        self.info = info
        self.initialize = join_object({**common, **optional})
        versions = b",".join(quote(version) for version in MODERN_VERSIONS)
        self.discover = stamp_result(
            join_object({"supportedVersions": b"[%b]" % versions, "capabilities": capabilities, **optional}),
            server_info=info,
            ttl_ms=ttl,
            cache_scope="private",
        )

    @classmethod
    def of_config(cls, config: Config) -> "Greeting":
        """Ours."""
        names = [name for name, server in config.servers.items() if not server.disabled]
        text = instructions(names, split=config.split) if config.expose == "meta" else None
        return cls(CAPABILITIES, SERVER_INFO, text, LISTING_TTL)

    @classmethod
    def of_upstream(cls, capabilities: bytes, info: bytes, instructions: str | None) -> "Greeting":
        """An upstream's."""
        return cls(capabilities, info, instructions, NO_TTL)


_NOT_SIGNED_IN = Greeting.of_upstream(CAPABILITIES, SERVER_INFO, None)
"""For an upstream that tells nothing of itself before somebody has signed in to it."""


class HandshakeResults(msgspec.Struct, frozen=True):
    """Results as JSON texts: `initialize` (without the version), `server/discover`, and `tools/list` in
    either era. The last three are None where they depend on more than the config.
    """

    initialize: bytes
    discover: bytes | None
    tools: bytes | None
    modern_tools: bytes | None


PendingResult = bytes | Coroutine[None, None, bytes]
"""A result, or the work that will bring it."""


class Endpoint:
    """Answers the requests of all clients of one proxy. recorder: see `__init__`."""

    def __init__(self, proxy: Proxy, recorder: "Recorder | None" = None) -> None:
        """recorder: what its requests are traced with, None for no telemetry."""
        self._proxy, self.recorder = proxy, recorder
        self._greeted_with: Config | None = None
        self._greeting_now: Greeting | None = None
        self._greeted_as: tuple[bytes, bytes, str | None] | None = None

    @property
    def _greeting(self) -> Greeting | None:
        """Of the config in use; None in ``transparent`` while the upstream's isn't known."""
        config = self._proxy.config
        if config is not self._greeted_with:
            through = self._proxy.exposure.transparent_server is not None
            self._greeted_with = config
            self._greeting_now = None if through else Greeting.of_config(config)
            self._greeted_as = None
        # What the upstream says of itself may be held since, or approved.
        known = self._proxy.cached_server_info()
        if self._greeting_now is not None and known is not None and known != self._greeted_as:
            self._greeted_as, self._greeting_now = known, Greeting.of_upstream(*known)
        return self._greeting_now

    @_greeting.setter
    def _greeting(self, greeting: Greeting) -> None:
        self._greeting_now = greeting

    def _greeting_for(self, exchange: Exchange) -> Greeting | None:
        """Of whoever asks: it names the servers that they may use."""
        view = self._proxy.views.of(exchange.principal)
        if view.is_whole:
            return self._greeting
        if view.greeting is None:
            view.greeting = Greeting.of_config(view.config)
        assert isinstance(view.greeting, Greeting), "nobody else sets it"
        return view.greeting

    def joined(self, client: Client) -> None:
        """A client has connected that lasts for more than one request."""
        self._proxy.add_client(client)
        if self.recorder is not None:
            self.recorder.joined(client)

    async def left(self, client: Client) -> None:
        """It has left: what was kept for it ends."""
        if self.recorder is not None:
            self.recorder.left(client)
        await self._proxy.remove_client(client)

    def begin(self, method: str, exchange: Exchange) -> PendingResult:
        """The result, for `finished` to complete, or the work that brings it. Raises JsonRpcError; cancelling
        the work cancels the request upstream.
        """
        modern = exchange.client.era is Era.MODERN
        info = exchange.meta_fields.get(CLIENT_INFO_KEY) if modern else exchange.fields.get("clientInfo")
        if info is not None and exchange.client.info != info:
            exchange.client.info = info if len(info) <= CLIENT_INFO_SIZE else b""
            self._proxy.statistics.saw_client(info)
        if method in (_LEGACY_ONLY if modern else _MODERN_ONLY):
            raise JsonRpcError(
                RpcError(
                    METHOD_NOT_FOUND, f"There is no {shortened(method)} in this version of the protocol."
                )
            )
        if exchange.principal is not None and method in _ABOUT_SERVERS:
            own = self._proxy.views.own_upstreams(exchange.principal)
            if own is not None:
                return self._begin_after(own.catch_up, method, exchange)
        try:
            return self._begin(method, exchange)
        except McpzipError as error:
            raise JsonRpcError(error_response(error)) from error

    async def _begin_after(
        self, catch_up: Callable[[], Awaitable[None]], method: str, exchange: Exchange
    ) -> bytes:
        await catch_up()
        result = self._begin(method, exchange)
        return result if isinstance(result, bytes) else await result

    def _begin(self, method: str, exchange: Exchange) -> PendingResult:
        proxy = self._proxy
        if method == "tools/call":
            return proxy.call(_name(exchange), _arguments(exchange), exchange)
        passing, exposure = proxy.passthrough, proxy.views.of(exchange.principal).exposure
        match method:
            case "initialize":
                return self._initialize(exchange)
            case "server/discover":
                return self._discover(exchange)
            case "ping":
                return b"{}"
            case "subscriptions/listen":
                return passing.listen(exchange)
            case "logging/setLevel":
                return self._set_level(exchange)
            case "resources/subscribe" | "resources/unsubscribe":
                return passing.subscribe(exchange, wanted=method == "resources/subscribe")
        if (server := exposure.transparent_server) is not None:
            return self._through(method, exchange, server)
        match method:
            case "tools/list" if exposure.is_static:
                return exposure.tools_page(_cursor(exchange))
            case "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list":
                if proxy.has_unlisted_servers or exposure.is_large:
                    return self._page(method, exchange)
                return _PAGES[method](exposure, _cursor(exchange))
            case "prompts/get":
                return passing.prompt(exchange)
            case "resources/read":
                return passing.resource(exchange)
            case "completion/complete":
                return passing.complete(exchange)
        raise JsonRpcError(RpcError(METHOD_NOT_FOUND, f"mcpzip does not offer {shortened(method)}."))

    def finished(self, method: str, exchange: Exchange, result: bytes) -> bytes:
        """``result`` as the client's era has it."""
        if exchange.client.era is not Era.MODERN or method == "server/discover":
            return result
        if method not in _CACHEABLE or (method == "resources/read" and is_input_required(result)):
            return stamp_result(result, server_info=self._info)
        fixed = method == "tools/list" and self._proxy.views.of(exchange.principal).exposure.is_static
        return self._stamped(result, LISTING_TTL if fixed else NO_TTL)

    def notified(
        self, client: Client, method: str, params: bytes | None
    ) -> Coroutine[None, None, None] | None:
        """A notification of a client: the work that passes it on; None when it concerns only us."""
        through = self._proxy.exposure.transparent_server is not None
        if method in _FOR_UPSTREAMS or (through and method not in _FOR_US):
            return self._proxy.notify_servers(client, method, params)
        return None

    def mirrored(
        self, name: str, principal: Principal | None = None
    ) -> Callable[[], dict[str, object]] | None:
        """What reads the input schema of the tool shown to ``principal`` as ``name``, if it may want
        arguments repeated in headers (2026-07-28 `server/tools`, "x-mcp-header"); None if not. Reading a
        large schema takes long.
        """
        exposure = self._proxy.views.of(principal).exposure

        def schema() -> dict[str, object]:
            entry = exposure.tool_named(name)
            return {} if entry is None or b"x-mcp-header" not in entry.raw else entry.input_schema()

        if exposure.is_large:
            return schema
        entry = exposure.tool_named(name)
        return None if entry is None or b"x-mcp-header" not in entry.raw else schema

    def handshake_results(self) -> "HandshakeResults | None":
        """The results of the first requests of every client, as far as they change only with the config; None
        while they aren't known.
        """
        proxy = self._proxy
        if self._greeting is None and (known := proxy.cached_server_info()) is not None:
            self._greeting = Greeting.of_upstream(*known)
        if self._greeting is None:
            return None
        discover = self._greeting.discover if proxy.exposure.transparent_server is None else None
        tools = proxy.exposure.tools_page() if proxy.exposure.is_static else None
        modern = None if tools is None else self._stamped(tools, LISTING_TTL)
        return HandshakeResults(self._greeting.initialize, discover, tools, modern)

    def _stamped(self, result: bytes, ttl: int) -> bytes:
        return stamp_result(result, server_info=self._info, ttl_ms=ttl, cache_scope="private")

    @property
    def _info(self) -> bytes:
        return SERVER_INFO if self._greeting is None else self._greeting.info

    def _initialize(self, exchange: Exchange) -> PendingResult:
        fields = exchange.fields
        version = negotiate(_text(fields.get("protocolVersion")) or "")
        capabilities = fields.get("capabilities", b"null")
        if capabilities != b"null":  # which some clients say for none
            if not capabilities.startswith(b"{"):
                raise JsonRpcError(RpcError(INVALID_PARAMS, "'capabilities' is not an object."))
            exchange.client.capabilities = capabilities
        said = b'{"protocolVersion":' + quote(version) + b","
        if (greeting := self._greeting_for(exchange)) is not None:
            return said + greeting.initialize[1:]
        return self._upstream_greeting(lambda greeting: said + greeting.initialize[1:])

    def _discover(self, exchange: Exchange) -> PendingResult:
        server = self._proxy.exposure.transparent_server
        if server is None:
            greeting = self._greeting_for(exchange)
            assert greeting is not None, "what we say of ourselves is known"
            return greeting.discover
        return self._discovered(exchange, server)

    async def _discovered(self, exchange: Exchange, server: str) -> bytes:
        """In ``transparent``: the answer of an upstream that has one; else what it says of itself."""
        try:
            modern = await self._proxy.upstream_era(exchange.client, server) is Era.MODERN
            if modern:
                said = await self._proxy.passthrough.forward("server/discover", exchange, server)
                said = await self._proxy.guard.cleaned("server/discover", server, said)
            greeting = self._greeting
            if greeting is None:
                greeting = self._greeting = Greeting.of_upstream(*await self._proxy.server_info())
        except UpstreamRpcError:
            raise
        except UpstreamError as error:
            known = self._proxy.cached_server_info()
            if known is not None:
                return Greeting.of_upstream(*known).discover
            if isinstance(error, LoginNeededError):
                return _NOT_SIGNED_IN.discover
            raise
        return _without_unsupported_versions(said) if modern else greeting.discover

    def _upstream_greeting(self, said: Callable[[Greeting], bytes]) -> PendingResult:
        """In ``transparent``: the upstream's greeting, from the catalog if it is known."""
        known = self._proxy.cached_server_info()
        if known is not None:
            greeting = self._greeting = Greeting.of_upstream(*known)
            return said(greeting)
        return self._ask_for_greeting(said)

    async def _ask_for_greeting(self, said: Callable[[Greeting], bytes]) -> bytes:
        # That the upstream can't be reached is an error. If it only wants a sign-in, the session begins all
        # the same, because a call of one of its tools is then answered with the command to sign in.
        try:
            greeting = self._greeting = Greeting.of_upstream(*await self._proxy.server_info())
        except LoginNeededError:
            return said(_NOT_SIGNED_IN)
        return said(greeting)

    async def _through(self, method: str, exchange: Exchange, server: str) -> bytes:
        guard = self._proxy.guard
        await guard.check(method, exchange, server)
        try:
            result = await self._proxy.passthrough.forward(method, exchange, server)
            return await guard.cleaned(method, server, result)
        except UpstreamRpcError:
            raise
        except UpstreamError as error:
            # What is known is better than an error, and instant while the server restarts. If it wants a
            # sign-in, the list is empty: clients are notified of the change once somebody has signed in.
            known = await self._last_known(method, exchange, empty=isinstance(error, LoginNeededError))
            if known is None:
                raise
            return known

    async def _last_known(self, method: str, exchange: Exchange, *, empty: bool) -> bytes | None:
        """The first page of a list as it was last seen. empty: even if the server was never listed."""
        record = self._proxy.catalog.servers.get(self._proxy.exposure.transparent_server or "")
        never = record is None or record.fetched_at is None
        if "cursor" in exchange.fields or (never and not empty):
            return None
        exposure = self._proxy.exposure
        return await look_up(exposure, lambda: _PAGES[method](exposure, None)) if method in _PAGES else None

    async def _page(self, method: str, exchange: Exchange) -> bytes:
        cursor = _cursor(exchange)
        if self._proxy.has_unlisted_servers:
            await self._proxy.wait_until_listed()
        exposure = self._proxy.views.of(exchange.principal).exposure
        return await look_up(exposure, lambda: _PAGES[method](exposure, cursor))

    async def _set_level(self, exchange: Exchange) -> bytes:
        level = _text(exchange.fields.get("level"))
        if level not in LOG_LEVELS:
            raise JsonRpcError(RpcError(INVALID_PARAMS, f"'level' is none of {', '.join(LOG_LEVELS)}."))
        await self._proxy.set_level(exchange.client, level)
        return b"{}"


_META_TOOLS = {quote(name): name for name in (SEARCH, DESCRIBE, EXECUTE, EXECUTE_READ)}
"""The tools that most calls name, by their name as JSON text."""
_PAGES: Mapping[str, Callable[[Exposure, str | None], bytes]] = {
    "tools/list": Exposure.tools_page,
    "prompts/list": Exposure.prompts_page,
    "resources/list": Exposure.resources_page,
    "resources/templates/list": Exposure.templates_page,
}


def error_response(error: Exception) -> RpcError:
    """The response to a request that failed with ``error``."""
    match error:
        case JsonRpcError(error=response) | UpstreamRpcError(error=response):
            return response
        case InsufficientScopeError(scopes=scopes):
            return ScopeError(INVALID_REQUEST, str(error), scopes=scopes)
        case UnknownResourceError(name=uri):
            return RpcError(INVALID_PARAMS, str(error), join_object({"uri": quote(uri)}))
        case UnknownToolError() | UnknownPromptError() | InvalidCursorError() | KeptNoMoreError():
            return RpcError(INVALID_PARAMS, str(error))
        case McpzipError():
            return RpcError(INTERNAL_ERROR, str(error))
        case _:  # a defect of ours must not leave the client waiting
            return RpcError(INTERNAL_ERROR, f"mcpzip failed: {type(error).__name__}: {shortened(str(error))}")


def _without_unsupported_versions(result: bytes) -> bytes:
    """The result of `server/discover` without the versions that we don't support."""
    try:
        versions = versions_in(split_object(result)["supportedVersions"])
    except (KeyError, ValueError):
        return result
    ours = [version for version in versions if version in (*LEGACY_VERSIONS, *MODERN_VERSIONS)]
    if ours == versions:
        return result
    return with_members(result, {"supportedVersions": b"[%b]" % b",".join(map(quote, ours))})


def _cursor(exchange: Exchange) -> str | None:
    raw = exchange.fields.get("cursor", b"null")
    if raw == b"null":
        return None
    cursor = _text(raw)
    if cursor is None:
        raise JsonRpcError(RpcError(INVALID_PARAMS, "'cursor' is not a string."))
    return cursor


def _name(exchange: Exchange) -> str:
    raw = exchange.fields.get("name")
    name = _META_TOOLS.get(raw) or _text(raw) if raw is not None else None
    if name is None:
        raise JsonRpcError(RpcError(INVALID_PARAMS, "tools/call needs the 'name' of a tool, as a string."))
    return name


def _arguments(exchange: Exchange) -> bytes | None:
    raw = exchange.fields.get("arguments", b"null")
    return None if raw == b"null" else raw


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else unquote(raw)
    except ValueError:
        return None
