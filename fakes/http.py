"""A scenario over HTTP: Streamable HTTP at ``/mcp`` or the older SSE transport at ``/sse``, on 127.0.0.1.

The rule: the transport is the SDK's own, so that a client meets the real thing; what requests mean is the
engine's. One middleware answers every request before the SDK's typed layer sees it, so results pass as they
are (key order, unknown fields, numbers).
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Generator

import msgspec
import uvicorn
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.shared.dispatcher import Outbound
from mcp.shared.exceptions import MCPError
from msgspec import UNSET
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fakes import process
from fakes.answer import JsonObject
from fakes.asgi import FIRING, Gate
from fakes.calls import Refused, Request
from fakes.engine import Engine, refuse_if_told
from fakes.eras import Handshake
from fakes.faults import NOTHING, Plan
from fakes.record import Writer, opened
from fakes.scenario import Scenario

PATHS = {"http": "/mcp", "sse": "/sse"}
_BIG = 1 << 30


class _Back:
    """The way back to a client through the SDK. See `fakes.engine.Channel`."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    async def notify(self, method: str, params: JsonObject) -> None:
        await self._outbound.notify(method, params)

    async def ask(self, method: str, params: JsonObject) -> object:
        try:
            return await self._outbound.send_raw_request(method, params)
        except MCPError as error:
            raise Refused(error.code, error.message, error.data) from error


class HttpFake:
    """The ASGI application of one scenario: ``app``. transport: ``http`` or ``sse``; run: which process on
    its record this is; stateless, json_response: as in the SDK's Streamable HTTP, of the legacy era."""

    def __init__(
        self,
        scenario: Scenario,
        record: Writer,
        *,
        transport: str = "http",
        run: int = 1,
        stateless: bool = False,
        json_response: bool = False,
    ) -> None:
        self.transport = transport
        self._engine = Engine(scenario, record.event)
        self._after: set[asyncio.Task[None]] = set()
        server: Server[object] = Server(
            scenario.name, version=scenario.version, get_tool_input_schema=self._engine.input_schema
        )
        server.middleware[:] = [self._meet]
        inner: ASGIApp
        if transport == "http":
            inner = server.streamable_http_app(
                stateless_http=stateless, json_response=json_response, max_request_body_size=_BIG
            )
        else:
            inner = _sse_app(server)
        self.app = Gate(inner, scenario, Plan(scenario.faults, run), record)

    async def _meet(self, ctx: ServerRequestContext[object], call_next: CallNext) -> HandlerResult:
        """The middleware: every message of every client."""
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
            if request.method == "initialize":
                result = Handshake(self._engine).admit("initialize", request.params)
            else:
                result = _parsed(await self._engine.answer(request))
        except Refused as refusal:
            data = None if refusal.data is UNSET else refusal.data
            raise MCPError(refusal.code, refusal.message, data) from None
        finally:
            self.app.doomed = request.firing.get("crash") or request.firing.get("cut") or self.app.doomed
        if request.firing.get("list-changed"):
            task = asyncio.create_task(self._engine.answered(request))
            self._after.add(task)
            task.add_done_callback(self._after.discard)
        return result

    def _request(self, context: ServerRequestContext[object]) -> Request:
        params: JsonObject = dict(context.params or {})
        declared = context.session.client_capabilities
        firing = (
            context.request.scope.get(FIRING, NOTHING)
            if isinstance(context.request, HttpRequest)
            else NOTHING
        )
        return Request(
            method=context.method,
            params=params,
            channel=_Back(context.session._request_outbound),
            version=context.protocol_version,
            id=context.request_id,
            arguments=msgspec.json.encode(params.get("arguments", {})),
            capabilities={} if declared is None else declared.model_dump(by_alias=True, exclude_none=True),
            firing=firing,
        )

    def _remember(self, context: ServerRequestContext[object]) -> None:
        connection = context.session._connection
        self._engine.sessions[connection] = _Back(connection.outbound)
        connection.exit_stack.callback(self._engine.sessions.pop, connection, None)


def _parsed(result: bytes) -> JsonObject:
    value = msgspec.json.decode(result)
    if not isinstance(value, dict):
        raise Refused(
            -32603, "a result that is not an object can't be sent over HTTP; play this scenario over stdio"
        )
    return value


class _Sse:
    """The SSE transport's event stream, as an ASGI application."""

    def __init__(self, server: Server[object], transport: SseServerTransport) -> None:
        self._server, self._transport = server, transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._transport.connect_sse(scope, receive, send) as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())


def _sse_app(server: Server[object]) -> Starlette:
    transport = SseServerTransport("/messages/", max_request_body_size=_BIG)
    routes = [
        Route("/sse", _Sse(server, transport), methods=["GET"]),
        Mount("/messages/", app=transport.handle_post_message),
    ]
    return Starlette(routes=routes)


class _Uvicorn(uvicorn.Server):
    """uvicorn that leaves signals alone and says when it listens."""

    def __init__(self, app: ASGIApp) -> None:
        config = uvicorn.Config(app, log_config=None, log_level="critical", timeout_graceful_shutdown=0)
        super().__init__(config)
        self.listening = threading.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


class Serving:
    """An `HttpFake` being served by a thread of this process. ``url``: where a client finds it."""

    def __init__(self, fake: HttpFake, record: Writer, port: int = 0) -> None:
        self._record = record
        record.event("start", {"transport": fake.transport})
        self._socket, self.url = listen(fake.transport, port)
        self._server = _Uvicorn(fake.app)
        self._thread = threading.Thread(target=self._run, name=f"fake {self.url}", daemon=True)
        self._thread.start()
        self._server.listening.wait()

    def _run(self) -> None:
        asyncio.run(self._server.serve([self._socket]))

    def stop(self) -> None:
        """Cut every connection and wait for the thread to end. It may be called again."""
        if self._thread.is_alive():
            self._server.should_exit = True
            self._thread.join()
            self._record.event("exit", {"reason": "stopped", "code": 0})
            self._record.close()


def run(
    scenario: Scenario,
    record_path: str | None,
    transport: str,
    port: int,
    *,
    stateless: bool = False,
    json_response: bool = False,
) -> None:
    """Be that server until the process is ended; prints ``listening URL`` once it takes connections."""
    number, record = opened(record_path)
    fake = HttpFake(
        scenario, record, transport=transport, run=number, stateless=stateless, json_response=json_response
    )
    process.start(Plan((), number), record, transport, scenario.record_env)
    bound, url = listen(transport, port)
    print(f"listening {url}", flush=True)
    asyncio.run(_Uvicorn(fake.app).serve([bound]))


def listen(transport: str, port: int) -> tuple[socket.socket, str]:
    """A listening socket on 127.0.0.1 (``port`` 0: a free one) and the URL a client is to use."""
    bound = socket.create_server(("127.0.0.1", port))
    return bound, f"http://127.0.0.1:{bound.getsockname()[1]}{PATHS[transport]}"
