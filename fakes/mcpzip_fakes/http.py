"""A scenario over HTTP: Streamable HTTP at ``/mcp`` or the older SSE transport at ``/sse``, on 127.0.0.1.

The rule: the transport is the SDK's own, so that clients are tested with the real one; the engine answers
requests. One middleware answers every request before the SDK's typed layer, so results pass unchanged (key
order, unknown fields, numbers).
"""

import asyncio

import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop, serve_loop
from mcp.server.sse import SseServerTransport
from mcp.shared.dispatcher import Outbound
from mcp.shared.exceptions import MCPError
from mcp.shared.message import CloseSSEStreamCallback
from msgspec import UNSET
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mcpzip.wire import INTERNAL_ERROR, INVALID_PARAMS
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.asgi import FIRING, Gate
from mcpzip_fakes.engine import Engine, refuse_if_told
from mcpzip_fakes.eras import Handshake
from mcpzip_fakes.event_store import RETRY, MemoryEventStore
from mcpzip_fakes.faults import NOTHING, Plan
from mcpzip_fakes.hostile import spoilt
from mcpzip_fakes.oauth.authority import Authority
from mcpzip_fakes.oauth.protection import Protection
from mcpzip_fakes.record import Record, Writer
from mcpzip_fakes.request import Refused, Request, as_object
from mcpzip_fakes.scenario import Scenario

_BIG = 1 << 30


class _Back:
    """The channel to a client through the SDK. See `mcpzip_fakes.request.Channel`."""

    def __init__(self, outbound: Outbound, close: CloseSSEStreamCallback | None = None) -> None:
        """close: closes the stream of the answer."""
        self._outbound, self._close = outbound, close

    async def notify(self, method: str, params: JsonObject) -> None:
        await self._outbound.notify(method, params)

    async def ask(self, method: str, params: JsonObject) -> object:
        try:
            return await self._outbound.send_raw_request(method, params)
        except MCPError as error:
            raise Refused(error.code, error.message, error.data) from error

    async def hang_up(self) -> None:
        if self._close is not None:
            await self._close()


class HttpFake:
    """The ASGI application of one scenario: ``app``. transport: ``http`` or ``sse``; run: the number of
    this process on its record; stateless, json_response: as in the SDK's Streamable HTTP, of the legacy era.
    authority: the authorization server whose tokens it requires; None: its own, if the scenario has one.
    protection: the OAuth part, or None."""

    def __init__(
        self,
        scenario: Scenario,
        record: Writer,
        *,
        transport: str = "http",
        run: int = 1,
        stateless: bool = False,
        json_response: bool = False,
        authority: Authority | None = None,
    ) -> None:
        self.transport = transport
        self.protection: Protection | None = None
        if authority or scenario.oauth:
            self.protection = Protection(scenario.name, scenario.oauth, record, authority)
        releases = Record(record.path) if record.path else None
        player = None
        if scenario.replay is None:
            self._engine = Engine(scenario, record.event, releases=releases)
        else:
            from mcpzip_fakes.replay.over_http import Player  # only a cassette needs it

            player = Player(scenario, transport, run)
            scenario = player.scenario
            self._engine = player.make(scenario, record.event, releases=releases)
        self._after: set[asyncio.Task[None]] = set()
        server: Server[object] = Server(
            scenario.name, version=scenario.version, get_tool_input_schema=self._engine.input_schema
        )
        server.middleware[:] = [self._meet]
        inner: ASGIApp
        if transport == "http":
            said = (
                MemoryEventStore()
                if any(tool.result.hangs_up is not None for tool in scenario.tools)
                else None
            )
            inner = server.streamable_http_app(
                stateless_http=stateless,
                json_response=json_response,
                event_store=said,
                retry_interval=RETRY,
                max_request_body_size=_BIG,
            )
        else:
            inner = _sse_app(server, dual=bool(scenario.modern_versions))
        guard = self.protection.guard if self.protection else None
        self._gate = Gate(
            player.around(inner, record.event) if player else inner,
            scenario,
            Plan(scenario.faults, run),
            record,
            transport,
            guard,
        )
        if player is not None:
            player.doom(self._gate.doomed)
        self.app: ASGIApp = self.protection.around(self._gate) if self.protection else self._gate
        self._player = player

    async def close(self) -> None:
        """Nothing more comes: end what has to be ended in order."""
        if self._player is not None:
            await self._player.close()

    async def _meet(self, ctx: ServerRequestContext[object], call_next: CallNext) -> HandlerResult:
        """The middleware, called for every message of every client."""
        if ctx.request_id is None:
            result = await call_next(ctx)
            if ctx.method == "notifications/initialized":
                self._remember(ctx)
            return result
        request = self._request(ctx)
        if request.firing.get("silence"):
            await asyncio.Event().wait()
        try:
            refuse_if_told(request.firing)
            if request.method == "initialize" and not request.modern:
                greeting = Handshake(self._engine).admit("initialize", request.params) or {}
                result = as_object(spoilt("initialize", greeting, request.firing))
            elif self._too_early(ctx):
                raise Refused(INVALID_PARAMS, "Received request before initialization was complete")
            else:
                answer = asyncio.ensure_future(self._engine.answer(request))
                result = _parsed(await (asyncio.shield(answer) if self._engine.goes_on(request) else answer))
        except asyncio.CancelledError:
            self._engine.cancelled(request)
            raise
        except Refused as refusal:
            data = None if refusal.data is UNSET else refusal.data
            raise MCPError(refusal.code, refusal.message, data) from None
        finally:
            if broken := request.firing.get("crash") or request.firing.get("cut"):
                self._gate.doomed[request.id] = broken
        if self._engine.follows(request):
            task = asyncio.create_task(self._engine.answered(request))
            self._after.add(task)
            task.add_done_callback(self._after.discard)
        return result

    def _too_early(self, ctx: ServerRequestContext[object]) -> bool:
        """Whether a client of the SSE transport sends a request before its handshake; over Streamable HTTP
        the SDK checks that."""
        opened = ctx.session._connection.initialize_accepted
        return self.transport == "sse" and not opened and ctx.method not in ("ping", "server/discover")

    def _request(self, context: ServerRequestContext[object]) -> Request:
        params: JsonObject = dict(context.params or {})
        declared, known = context.session.client_capabilities, context.session.client_params
        firing = (
            context.request.scope.get(FIRING, NOTHING)
            if isinstance(context.request, HttpRequest)
            else NOTHING
        )
        return Request(
            method=context.method,
            params=params,
            channel=_Back(context.session._request_outbound, context.close_sse_stream),
            version=context.protocol_version,
            id=context.request_id,
            arguments=msgspec.json.encode(params.get("arguments", {})),
            capabilities={} if declared is None else _dumped(declared),
            client={} if known is None else _dumped(known.client_info),
            session=context.session._connection,
            firing=firing,
        )

    def _remember(self, context: ServerRequestContext[object]) -> None:
        connection = context.session._connection
        self._engine.audience.joins(connection, _Back(connection.outbound))
        connection.exit_stack.callback(self._engine.audience.leaves, connection)


def _dumped(model: BaseModel) -> JsonObject:
    return model.model_dump(by_alias=True, exclude_none=True)


def _parsed(result: bytes) -> JsonObject:
    value = msgspec.json.decode(result)
    if not isinstance(value, dict):
        raise Refused(
            INTERNAL_ERROR,
            "a result that is not an object can't be sent over HTTP; play this scenario over stdio",
        )
    return value


class _Sse:
    """The SSE transport's event stream, as an ASGI application. dual: whether both eras are served on it."""

    def __init__(self, server: Server[object], transport: SseServerTransport, dual: bool) -> None:
        self._server, self._transport = server, transport
        self._serve = serve_dual_era_loop if dual else serve_loop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._transport.connect_sse(scope, receive, send) as (read, write), read, write:
            await self._serve(self._server, read, write, lifespan_state={})


def _sse_app(server: Server[object], *, dual: bool) -> Starlette:
    transport = SseServerTransport("/messages/", max_request_body_size=_BIG)
    routes = [
        Route("/sse", _Sse(server, transport, dual), methods=["GET"]),
        Mount("/messages/", app=transport.handle_post_message),
    ]
    return Starlette(routes=routes)
