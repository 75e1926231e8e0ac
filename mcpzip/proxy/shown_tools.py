"""`tools/call`: what a client calls by a name that `tools/list` shows, and what it is told of any other name.

The rule: all of it happens in the view of whoever asks (`proxy.views`).
"""

from collections.abc import Coroutine, Mapping

from mcpzip.model.errors import (
    InsufficientScopeError,
    LoginNeededError,
    McpzipError,
    NotCountedError,
    TooManyCallsError,
    UnknownToolError,
)
from mcpzip.proxy import metatools
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.exposure import look_up
from mcpzip.proxy.first_listings import FirstListings
from mcpzip.proxy.guard import Guard
from mcpzip.proxy.handlers import Handler
from mcpzip.proxy.passthrough import Passthrough
from mcpzip.proxy.server_prefix import candidate_servers
from mcpzip.proxy.statistics import Statistics
from mcpzip.proxy.tool_caller import ToolCaller
from mcpzip.proxy.tool_result import error_result, text_result
from mcpzip.proxy.views import View, Views
from mcpzip.proxy.workers import run_in_worker
from mcpzip.transport.pool import Pool
from mcpzip.wire import JsonRpcError, UpstreamRpcError


class ShownTools:
    """Everything runs on one event loop."""

    def __init__(
        self,
        current: CurrentConfig,
        views: Views,
        handlers: Mapping[str, Handler],
        tool_caller: ToolCaller,
        passthrough: Passthrough,
        first_listings: FirstListings,
        guard: Guard,
        pool: Pool,
        statistics: Statistics,
    ) -> None:
        self._current, self._views, self._handlers = current, views, handlers
        self._tool_caller, self._passthrough, self._guard = tool_caller, passthrough, guard
        self._first_listings, self._pool, self._statistics = first_listings, pool, statistics

    def call(self, name: str, arguments: bytes | None, exchange: Exchange) -> Coroutine[None, None, bytes]:
        """See `Proxy.call`."""
        if exchange.principal is None or not self._current.per_user:
            return self._call(name, arguments, exchange, tells_of_sign_in=True)
        return self._call_after_sign_in(name, arguments, exchange)

    async def _call_after_sign_in(self, name: str, arguments: bytes | None, exchange: Exchange) -> bytes:
        """As `_call`; a person who has to sign in for it is asked to, if their client can be asked."""
        try:
            return await self._call_asking_to_sign_in(name, arguments, exchange)
        except LoginNeededError as error:
            return error_result(str(error))

    async def _call_asking_to_sign_in(self, name: str, arguments: bytes | None, exchange: Exchange) -> bytes:
        """The same, but raises LoginNeededError, too."""
        from mcpzip.proxy.sign_in_question import SignInQuestion  # most configs need none

        question = SignInQuestion(exchange)
        try:
            return await self._call(name, arguments, exchange)
        except LoginNeededError as error:
            own = self._views.own(exchange.principal, error.server)
            asked = own is not None and await question.ask(error, own)
            if asked is False:
                raise
            return asked if isinstance(asked, bytes) else await self._call(name, arguments, exchange)

    async def _call(
        self, name: str, arguments: bytes | None, exchange: Exchange, *, tells_of_sign_in: bool = False
    ) -> bytes:
        """As `call`, but raises LoginNeededError unless ``tells_of_sign_in``."""
        view = self._views.of(exchange.principal)
        exposure, config = view.exposure, self._current.config
        handler = self._handlers.get(name) if exposure.has_own(name) else None
        try:
            if handler is not None:
                result = await handler(arguments, exchange)
                if name in metatools.ANSWERED_HERE:
                    self._statistics.count_reply(name, arguments, result)
                return result
            entry = await look_up(exposure, lambda: exposure.tool_named(name))
            if entry is None and config.expose == "direct" and name in metatools.OWN_TOOL_NAMES:
                return await self._handlers[name](arguments, exchange)
            if entry is None and config.expose != "meta":
                for server in candidate_servers(name, view.enabled):
                    self._pool.starts.prioritize(server)
                await self._first_listings.wait()
                view = self._views.of(exchange.principal)
                now = view.exposure
                entry = await look_up(now, lambda: now.tool_named(name))
            if entry is not None:
                return await self._tool_caller.call_directly(entry, exchange)
            if exposure.transparent_server is not None:
                await self._guard.check_tool(exposure.transparent_server, name)
                server = exposure.transparent_server
                return await self._tool_caller.call_unlisted(
                    server, name, exchange, lambda: self._passthrough.forward("tools/call", exchange, server)
                )
            if not view.is_whole:
                whole = self._views.whole.exposure
                hidden = await look_up(whole, lambda: whole.tool_named(name))
                if hidden is not None and hidden.server in self._current.per_user:
                    hidden = None  # it is what is listed for whoever uses this machine
                if hidden is not None:
                    self._tool_caller.note_no_access(hidden.name, arguments or b"{}", exchange)
                self._views.check_scopes(exchange.principal, hidden)
            for server in () if config.expose == "meta" else candidate_servers(name, view.enabled):
                own = self._views.own(exchange.principal, server)
                if own is not None and (needed := own.login_needed(server)) is not None:
                    raise needed
        except LoginNeededError as error:
            if not tells_of_sign_in:
                raise
            return error_result(str(error))
        except (UpstreamRpcError, JsonRpcError, InsufficientScopeError):
            raise
        except (TooManyCallsError, NotCountedError) as error:
            return text_result(str(error), meta={"retryAfter": error.retry_after}, is_error=True)
        except McpzipError as error:
            return error_result(str(error))
        raise await run_in_worker(lambda: self._not_shown(name, view), "name")

    def _not_shown(self, name: str, view: View) -> UnknownToolError:
        """The error for a ``name`` that `tools/list` doesn't show, with names to call instead."""
        config, catalog = self._current.config, view.catalog
        if config.expose != "meta":
            otherwise = "List the tools to see which there are."
            return UnknownToolError(name, catalog.nearest(name), otherwise)
        if (entry := catalog.get(name)) is not None:
            return UnknownToolError(name, (f"{self._tool_caller.runner(entry)} with name {name!r}",))
        pinned = [near for near in catalog.nearest(name) if view.exposure.tool_named(near) is not None]
        own = metatools.names(split=config.split, code=config.code.enabled)
        return UnknownToolError(name, (*pinned, *own))
