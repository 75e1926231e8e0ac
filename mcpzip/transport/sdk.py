"""A `Channel` over the SDK's HTTP transports: Streamable HTTP and legacy SSE.

The rule: the SDK does all of HTTP; this file only keeps its two measured blind spots from hurting. (1) It
hides the HTTP status of a failed request and lets a refused connection end the whole client, so a `_Witness`
below it notes what happened to which request. (2) Its typed layer would drop unknown fields, so its raw
`JSONRPCDispatcher` is used. This module imports the SDK (about half a second): import it only for a server
that needs it.
"""

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import httpx2
import mcp.client.sse as sdk_sse
import msgspec
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import sse_within_origin
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED

from mcpzip.transport.base import (
    ChannelClosedError,
    Dialect,
    Incoming,
    ProgressSink,
    RpcFaultError,
)
from mcpzip.wire import Era, RpcError, with_progress_token

CONNECT_TIMEOUT = 10.0
_STREAM_READ_TIMEOUT = 3600.0  # s a stream may stay silent; the call's own timeout is what ends a call
_SESSION_HEADER = "mcp-session-id"

# What the SDK puts in the place of an HTTP failure whose body wasn't a JSON-RPC error.
_SUBSTITUTES = {"Server returned an error response", "Not Found", "Session terminated"}

# The SDK caps one SSE event at 1 MiB and gives `sse_client` no way to say otherwise; a listing of 1,000 tools
# is more.
setattr(sdk_sse, "sse_within_origin", partial(sse_within_origin, max_event_size=None))  # noqa: B010 - not exported

# Its loggers print tracebacks for bad upstream lines to our stderr; what matters is told through errors.
for _name in ("mcp", "httpx2", "httpcore2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


@dataclass(frozen=True, slots=True)
class _Fault:
    """What became of one POST that got no proper answer."""

    reason: str
    sent: bool
    status: int | None = None
    in_session: bool = False


class _PostedId(msgspec.Struct):
    id: int | str | None = None


class _Witness(httpx2.AsyncBaseTransport):
    """Notes, for each JSON-RPC request posted, the HTTP failure that befell it."""

    def __init__(self, *, soften: bool) -> None:
        self._inner = httpx2.AsyncHTTPTransport(retries=0)
        self._soften = soften
        self.faults: dict[int | str, _Fault] = {}
        self.on_fault = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        posted = _posted_id(request)
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            if request.method != "POST":
                raise
            return self._note(request, posted, _Fault(_unreachable(request.url, error), sent=False), 503)
        except httpx2.TransportError as error:
            if request.method != "POST":
                raise
            reason = f"the HTTP connection broke ({type(error).__name__})"
            return self._note(request, posted, _Fault(reason, sent=True), 503)
        if response.status_code >= 400 and request.method == "POST":
            fault = _Fault(
                f"it answered HTTP {response.status_code} {response.reason_phrase}".rstrip(),
                sent=True,
                status=response.status_code,
                in_session=_SESSION_HEADER in request.headers,
            )
            if posted is not None:
                self.faults[posted] = fault
                self.on_fault.set()
            if self._soften:
                await response.aclose()
                return httpx2.Response(202, request=request)
        return response

    def _note(
        self, request: httpx2.Request, posted: int | str | None, fault: _Fault, status: int
    ) -> httpx2.Response:
        if posted is not None:
            self.faults[posted] = fault
            self.on_fault.set()
        return httpx2.Response(202 if self._soften else status, request=request)

    async def settled(self, number: int, sending: "asyncio.Future[dict[str, object]]") -> None:
        """Waits for ``sending``, or for the failure of its POST where the answer would come on another stream
        (SSE).
        """
        if not self._soften:
            await asyncio.wait({sending})
            return
        while not sending.done() and number not in self.faults:
            self.on_fault.clear()
            fault = asyncio.ensure_future(self.on_fault.wait())
            either: set[asyncio.Future[Any]] = {sending, fault}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                fault.cancel()

    async def aclose(self) -> None:
        await self._inner.aclose()


def _posted_id(request: httpx2.Request) -> int | str | None:
    if request.method != "POST":
        return None
    try:
        return msgspec.json.decode(request.content, type=_PostedId).id
    except (msgspec.DecodeError, httpx2.RequestNotRead):
        return None


def _unreachable(url: httpx2.URL, error: Exception) -> str:
    detail = str(error).lower()
    where = f"{url.scheme}://{url.netloc.decode()}"
    if isinstance(error, httpx2.ConnectTimeout):
        return f"{where} did not accept a connection within {CONNECT_TIMEOUT:g} s"
    if "name or service" in detail or "nodename" in detail or "getaddrinfo" in detail:
        return f"the host of {where} can't be found"
    if "certificate" in detail or "ssl" in detail:
        return f"{where} has no certificate we trust ({error})"
    return f"nothing accepts connections at {where}"


@asynccontextmanager
async def open_http(url: str, headers: Mapping[str, str], incoming: Incoming) -> AsyncIterator["SdkChannel"]:
    """A Streamable HTTP channel (spec: basic/transports/streamable-http). Nothing is sent until the first
    request.
    """
    witness = _Witness(soften=False)
    timeout = httpx2.Timeout(30.0, connect=CONNECT_TIMEOUT, read=_STREAM_READ_TIMEOUT, pool=None)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    async with (
        httpx2.AsyncClient(
            headers=dict(headers), transport=witness, timeout=timeout, limits=limits
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=None) as (read, write),
        _dispatching(JSONRPCDispatcher(read, write), witness, incoming) as channel,
    ):
        yield channel


@asynccontextmanager
async def open_sse(url: str, headers: Mapping[str, str], incoming: Incoming) -> AsyncIterator["SdkChannel"]:
    """A legacy HTTP+SSE channel (spec 2024-11-05: basic/transports). Connects at once.

    Raises ChannelClosedError (sent=False) when the event stream can't be opened.
    """
    witness = _Witness(soften=True)

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, transport=witness)

    opened = False
    try:
        async with sdk_sse.sse_client(
            url,
            headers=dict(headers),
            timeout=CONNECT_TIMEOUT,
            sse_read_timeout=_STREAM_READ_TIMEOUT,
            httpx_client_factory=client,
        ) as (read, write):
            opened = True
            async with _dispatching(JSONRPCDispatcher(read, write), witness, incoming) as channel:
                yield channel
    except BaseExceptionGroup as group:
        if opened:
            raise
        raise _sse_refused(url, group) from group
    except (httpx2.HTTPError, ValueError) as error:
        if opened:
            raise
        raise _sse_refused(url, error) from error


def _sse_refused(url: str, error: BaseException) -> BaseException:
    for leaf in _leaves(error):
        match leaf:
            case httpx2.HTTPStatusError():
                code = leaf.response.status_code
                return ChannelClosedError(
                    f"it answered HTTP {code} {leaf.response.reason_phrase}".rstrip(), sent=False, status=code
                )
            case httpx2.ConnectError() | httpx2.ConnectTimeout():
                return ChannelClosedError(_unreachable(httpx2.URL(url), leaf), sent=False)
            case httpx2.HTTPError() | ValueError():
                return ChannelClosedError(f"its event stream can't be opened ({leaf})", sent=False)
            case asyncio.CancelledError():
                return leaf
    return error


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


@asynccontextmanager
async def _dispatching(
    dispatcher: "JSONRPCDispatcher[TransportContext]",
    witness: _Witness,
    incoming: Incoming,
) -> AsyncIterator["SdkChannel"]:
    channel = SdkChannel(dispatcher, witness, incoming)
    async with anyio.create_task_group() as group:
        await group.start(channel.run)
        try:
            yield channel
        finally:
            channel.close()
            group.cancel_scope.cancel()


class SdkChannel:
    """A `Channel` over an SDK dispatcher."""

    def __init__(
        self,
        dispatcher: "JSONRPCDispatcher[TransportContext]",
        witness: _Witness,
        incoming: Incoming,
    ) -> None:
        self.dialect: Dialect | None = None
        self._dispatcher, self._witness, self._incoming = dispatcher, witness, incoming
        self._ids = itertools.count(1)
        self._progress: dict[int | str, ProgressSink] = {}
        self._gone: str | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Reads until the stream ends. Started by `_dispatching` in the owner's task group."""
        try:
            await self._dispatcher.run(
                self._on_request, self._on_notification, self._on_arrival, task_status=task_status
            )
        finally:
            self._end("the server closed the stream")

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        on_progress: ProgressSink | None = None,
        cancellable: bool = True,
    ) -> bytes:
        if self._gone is not None:
            raise ChannelClosedError(self._gone, sent=False)
        number = next(self._ids)
        if on_progress is not None:
            params = with_progress_token(params, b"%d" % number)
            self._progress[number] = on_progress
        body = cast(dict[str, object], json.loads(params)) if params else {}
        options: CallOptions = {
            "request_id": number,
            "headers": self._headers(method, body),
            "cancel_on_abandon": cancellable,
        }
        sending = asyncio.ensure_future(self._dispatcher.send_raw_request(method, body, options))
        try:
            return await self._outcome(number, sending)
        finally:
            self._progress.pop(number, None)
            self._witness.faults.pop(number, None)
            if not sending.done():
                sending.cancel()
                await asyncio.wait({sending})

    async def _outcome(self, number: int, sending: "asyncio.Future[dict[str, object]]") -> bytes:
        await self._witness.settled(number, sending)
        if not sending.done():
            raise self._closed_by(self._witness.faults[number])
        try:
            result = sending.result()
        except MCPError as error:
            raise self._failure(number, error) from error
        return encode_json(result)

    def _failure(self, number: int, error: MCPError) -> Exception:
        fault = self._witness.faults.get(number)
        lost_session = fault is not None and fault.status == 404 and fault.in_session
        if fault is not None and (lost_session or error.message in _SUBSTITUTES):
            return self._closed_by(fault)
        if error.code == CONNECTION_CLOSED:
            return ChannelClosedError(self._gone or "the connection was lost", sent=True)
        data = None if error.data is None else encode_json(error.data)
        return RpcFaultError(RpcError(error.code, error.message, data))

    def _closed_by(self, fault: _Fault) -> ChannelClosedError:
        if fault.status == 404 and fault.in_session:
            # The server doesn't know our session: it can't have run anything for it (spec: session
            # management).
            self._end("the server forgot our session")
            return ChannelClosedError("the server forgot our session", sent=False, status=404)
        # A status is an answer: the request arrived. Refusals by class, before anything ran, are safe to send
        # again.
        refused = fault.status in (401, 403, 404, 405, 406, 413, 415, 421, 429)
        return ChannelClosedError(
            fault.reason,
            sent=fault.sent and not refused,
            remedy=_REMEDIES.get(fault.status or 0, ""),
            fatal=not refused or fault.status == 401,
            status=fault.status,
        )

    async def notify(self, method: str, params: bytes | None = None) -> None:
        if self._gone is not None:
            return
        body = cast(dict[str, object], json.loads(params)) if params else None
        await self._dispatcher.notify(method, body, {"headers": self._headers(method, body or {})})

    def diagnosis(self) -> str:
        return ""

    def close(self) -> None:
        """Marks the channel closed; its context ends the transport."""
        self._end("the connection was closed")

    def _end(self, reason: str) -> None:
        if self._gone is None:
            self._gone = reason
            self._incoming.ended(reason)

    def _headers(self, method: str, params: Mapping[str, object]) -> dict[str, str]:
        version = self.dialect.version if self.dialect else _claimed_version(params)
        if version is None:
            return {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: version}
        if self.dialect is None or self.dialect.era is Era.MODERN:
            headers[MCP_METHOD_HEADER] = method
            key = NAME_BEARING_METHODS.get(method)
            name = params.get(key) if key else None
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        return headers

    def _on_arrival(self, method: str, params: Mapping[str, object] | None) -> bool:
        # Called in wire order, before the result resolves: progress stays ahead of its result.
        if method != "notifications/progress" or params is None:
            return False
        token = params.get("progressToken")
        sink = self._progress.get(token) if isinstance(token, int | str) else None
        if sink is None and isinstance(token, str) and token.isdigit():
            sink = self._progress.get(int(token))
        if sink is None:
            return False
        sink(encode_json(dict(params)))
        return True

    async def _on_notification(
        self, _context: object, method: str, params: Mapping[str, object] | None
    ) -> None:
        self._incoming.notified(method, None if params is None else encode_json(dict(params)))

    async def _on_request(
        self, _context: object, method: str, params: Mapping[str, object] | None
    ) -> dict[str, object]:
        reply = self._incoming.asked(method, None if params is None else encode_json(dict(params)))
        if isinstance(reply, RpcError):
            data = None if reply.data is None else json.loads(reply.data)
            raise MCPError(reply.code, reply.message, data)
        return cast(dict[str, object], json.loads(reply))


_REMEDIES: dict[int, str] = {
    401: "It wants a sign-in: put an Authorization header under 'headers' in the config.",
    403: "It refuses these credentials: check 'headers' in the config.",
    404: "Check 'url' in the config.",
    405: 'It may speak the older transport: try "type": "sse" in the config.',
    429: "It is rate-limiting us: wait before trying again.",
}


def _claimed_version(params: Mapping[str, object]) -> str | None:
    meta = params.get("_meta")
    version = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def encode_json(value: object) -> bytes:
    """``value`` as compact JSON text: key order kept, integers exact, ints and floats distinct, lone
    surrogates escaped.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
