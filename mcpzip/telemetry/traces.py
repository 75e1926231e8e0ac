"""The spans of a client's request: its own (SERVER), those of what it asks of upstreams (CLIENT), and that of
its search (INTERNAL).

The rules:

1. No span or metric has a text of a message: names of methods, servers and tools, codes and durations only.
2. An upstream gets our CLIENT span as ``traceparent`` in ``_meta`` (MCP SEP-414), in place of what the client
   sent, because it is the parent of what happens there; ``baggage`` goes no further unless the config says
   so, because it can hold anything.
"""

import re
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mcpzip.model.errors import McpzipError
from mcpzip.telemetry import names
from mcpzip.telemetry.metrics import Metrics
from mcpzip.wire import JsonRpcError, RpcError, UpstreamRpcError, quote, unquote

if TYPE_CHECKING:
    from mcpzip.config import ServerConfig

_W3C = TraceContextTextMapPropagator()
_PARENT, _STATE, _BAGGAGE = "traceparent", "tracestate", "baggage"
_LONGEST_HEADER = 1_024
_QUERY = re.compile("[?#]")
Attributes = dict[str, str | int]


class Recorder:
    """What spans and durations are recorded with.

    servers: the configured servers, by name. is_own_tool: whether a name is one of mcpzip's own tools.
    baggage: whether it is passed on.
    """

    def __init__(
        self,
        tracer: Tracer,
        metrics: Metrics,
        servers: "Callable[[], Mapping[str, ServerConfig]]",
        is_own_tool: Callable[[str], bool],
        *,
        baggage: bool = False,
    ) -> None:
        self.tracer, self.metrics, self.baggage = tracer, metrics, baggage
        self.servers, self.is_own_tool = servers, is_own_tool
        self._joined: dict[Hashable, float] = {}

    def joined(self, client: Hashable) -> None:
        """A session of ``client`` begins."""
        self._joined[client] = time.perf_counter()

    def left(self, client: Hashable) -> None:
        """It has ended."""
        if (begun := self._joined.pop(client, None)) is not None:
            self.metrics.server_session.record(time.perf_counter() - begun, context=Context())

    def request(
        self,
        method: str,
        id: bytes,
        fields: Mapping[str, bytes],
        meta: Mapping[str, bytes],
        *,
        over_http: bool,
    ) -> "RequestTrace":
        """Begins the trace of a client's request. fields, meta: the members of its params and their
        ``_meta``, as JSON texts.
        """
        return RequestTrace(self, method, id, fields, meta, names.TCP if over_http else names.PIPE)


def record_session(
    metrics: Metrics, server: "ServerConfig", version: str, seconds: float, *, is_lost: bool
) -> None:
    """A connection to ``server`` has ended. version: of the protocol. is_lost: although nobody closed it."""
    measured = {names.SERVER: server.name, names.VERSION: version[: names.LONGEST], **_place(server)}
    if is_lost:
        measured[names.ERROR] = names.LOST
    metrics.client_session.record(seconds, measured, Context())


class RequestTrace:
    """A request of a client: a span of the kind SERVER, and what is below it."""

    def __init__(
        self,
        recorder: Recorder,
        method: str,
        id: bytes,
        fields: Mapping[str, bytes],
        meta: Mapping[str, bytes],
        transport: str,
    ) -> None:
        self._recorder, self._begun = recorder, time.perf_counter()
        self._method = names.method_name(method)
        self._measured: Attributes = {names.METHOD: self._method, names.NETWORK: transport}
        name, attributes = self._method, dict(self._measured)
        if method == "tools/call":
            attributes[names.OPERATION] = names.EXECUTE_TOOL
            tool = _text(fields.get("name"))
            if recorder.is_own_tool(tool):
                name = f"{self._method} {tool}"
                attributes[names.TOOL] = self._measured[names.TOOL] = tool
        elif method == "prompts/get":
            attributes[names.PROMPT] = _text(fields.get("name"))
        elif method.startswith("resources/") and "uri" in fields:
            attributes[names.RESOURCE] = _uri(fields["uri"])
        if id and id != b"null":
            attributes[names.REQUEST_ID] = id[: names.LONGEST].decode("utf-8", "replace").strip('"')
        if version := _text(meta.get("io.modelcontextprotocol/protocolVersion")):
            attributes[names.VERSION] = version
        self._span = recorder.tracer.start_span(
            name, _parent(meta), kind=SpanKind.SERVER, attributes=attributes
        )
        self._context = set_span_in_context(self._span, Context())

    def upstream(
        self, server: str, method: str, fields: Mapping[str, bytes], *, is_listed: bool
    ) -> "UpstreamTrace":
        """Begins the span of a request to ``server`` that is made for it. fields: the members of its params.
        is_listed: whether the tool that is called is in the catalog.
        """
        recorder = self._recorder
        measured: Attributes = {names.METHOD: names.method_name(method), names.SERVER: server}
        name, attributes = names.method_name(method), _place(recorder.servers().get(server))
        if method == "tools/call":
            tool = _text(fields.get("name")) if is_listed else names.OTHER
            name = f"{name} {tool}"
            attributes[names.OPERATION] = names.EXECUTE_TOOL
            measured[names.TOOL] = tool
            if names.TOOL in self._measured:
                self._span.set_attributes({names.TARGET_SERVER: server, names.TARGET_TOOL: tool})
            else:  # called by its own name
                self._measured[names.TOOL] = tool
                self._span.update_name(f"{self._method} {tool}")
                self._span.set_attributes({names.TOOL: tool, names.TARGET_SERVER: server})
        elif method == "prompts/get":
            attributes[names.PROMPT] = _text(fields.get("name"))
        elif "uri" in fields:
            attributes[names.RESOURCE] = _uri(fields["uri"])
        span = recorder.tracer.start_span(
            name, self._context, kind=SpanKind.CLIENT, attributes={**measured, **attributes}
        )
        return UpstreamTrace(recorder, span, measured)

    @contextmanager
    def search(self) -> Iterator[None]:
        """The span of a search."""
        with self._recorder.tracer.start_as_current_span("search", self._context, kind=SpanKind.INTERNAL):
            yield

    def end(self, outcome: "bytes | RpcError | None", *, failed: bool) -> None:
        """Ends it. outcome: as of `server.task_tracker`. failed: whether it is a result with ``isError``."""
        error = measured = ""
        if outcome is None:
            error = "cancelled"
        elif isinstance(outcome, RpcError):
            error, measured = str(outcome.code), names.measured_code(outcome.code)
            self._span.set_attribute(names.STATUS_CODE, error)
        elif failed:
            error = names.TOOL_ERROR
        if error:
            self._span.set_attribute(names.ERROR, error)
            if not (isinstance(outcome, RpcError) and outcome.code in names.CLIENT_MISTAKES):
                self._span.set_status(Status(StatusCode.ERROR))
            self._measured[names.ERROR] = measured or error
        self._span.end()
        seconds = time.perf_counter() - self._begun
        self._recorder.metrics.server_duration.record(seconds, self._measured, self._context)


class UpstreamTrace:
    """A request to an upstream: a span of the kind CLIENT."""

    def __init__(self, recorder: Recorder, span: Span, measured: Attributes) -> None:
        self._recorder, self._span, self._measured = recorder, span, measured
        self._begun = time.perf_counter()

    def meta(self, meta: Mapping[str, bytes]) -> dict[str, bytes]:
        """``meta``, the members of a client's ``_meta``, for the upstream."""
        kept = {key: each for key, each in meta.items() if key not in (_PARENT, _STATE, _BAGGAGE)}
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, set_span_in_context(self._span, Context()))
        kept |= {key: quote(each) for key, each in carrier.items()}
        if self._recorder.baggage and _BAGGAGE in meta:
            kept[_BAGGAGE] = meta[_BAGGAGE]
        return kept

    def end(self, error: BaseException | None = None, *, failed: bool = False) -> None:
        """Ends it. error: that was raised. failed: whether the result has ``isError``."""
        kind, measured = names.TOOL_ERROR if failed else "", ""
        if isinstance(error, JsonRpcError | UpstreamRpcError):
            kind, measured = str(error.error.code), names.measured_code(error.error.code)
            self._span.set_attribute(names.STATUS_CODE, kind)
        elif error is not None:
            kind = type(error).__name__ if isinstance(error, McpzipError) else "cancelled"
        if kind:
            self._span.set_attribute(names.ERROR, kind)
            self._span.set_status(Status(StatusCode.ERROR))
            self._measured[names.ERROR] = measured or kind
        self._span.end()
        seconds = time.perf_counter() - self._begun
        context = set_span_in_context(self._span, Context())
        self._recorder.metrics.client_duration.record(seconds, self._measured, context)


def _parent(meta: Mapping[str, bytes]) -> Context:
    """The context that a client has sent; an empty one if it sent none, or no valid one."""
    carrier = {
        key: _text(meta[key], _LONGEST_HEADER)
        for key in (_PARENT, _STATE)
        if len(meta.get(key, b"")) > 2 and len(meta[key]) <= _LONGEST_HEADER
    }
    return _W3C.extract(carrier, Context()) if carrier else Context()


def _place(server: "ServerConfig | None") -> Attributes:
    """Where a server is."""
    if server is None:
        return {}
    if server.transport == "stdio":
        return {names.NETWORK: names.PIPE}
    from urllib.parse import urlsplit

    found: Attributes = {names.NETWORK: names.TCP}
    try:
        url = urlsplit(server.url)
        host, port = url.hostname, url.port
    except ValueError:
        return found
    if host:
        found[names.ADDRESS] = host
        found[names.PORT] = port or (443 if url.scheme == "https" else 80)
    return found


def _uri(raw: bytes) -> str:
    """The URI of a resource without its query and fragment, which may hold a secret."""
    return _QUERY.split(_text(raw), 1)[0]


def _text(raw: bytes | None, longest: int = names.LONGEST) -> str:
    """The text of a JSON string, as far as it is kept; "" if it is none."""
    if raw is None or len(raw) > 8 * longest:
        return ""
    try:
        return unquote(raw)[:longest]
    except ValueError:
        return ""
