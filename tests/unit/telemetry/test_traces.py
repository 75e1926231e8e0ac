"""Spans of requests: names, parents and errors; what upstreams are sent; what metrics may not hold."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mcpzip.config import ServerConfig
from mcpzip.config.schema import TelemetryConfig
from mcpzip.model.errors import UpstreamTimeoutError
from mcpzip.telemetry import names
from mcpzip.telemetry.metrics import Figures, ServerFigures
from mcpzip.telemetry.provider import Telemetry
from mcpzip.telemetry.traces import Recorder, RequestTrace, record_session
from mcpzip.wire import RpcError, UpstreamRpcError, quote, unquote

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OWN = frozenset({"execute_tool", "search_tools"})
SERVERS = {
    "shop": ServerConfig(name="shop", transport="stdio", command="shop"),
    "docs": ServerConfig(name="docs", transport="http", url="https://docs.example/mcp"),
}


class Recorded:
    """A recorder, what it recorded, and the gauges that it has."""

    def __init__(self, *, baggage: bool = False, figures: Figures | None = None) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.telemetry = Telemetry(
            TelemetryConfig(baggage=baggage),
            {},
            lambda: figures or Figures(),
            processors=(SimpleSpanProcessor(self.exporter),),
            readers=(self.reader,),
        )
        self.recorder: Recorder = self.telemetry.recorder(lambda: SERVERS, OWN.__contains__)

    def request(self, method: str = "tools/call", tool: str = "execute_tool", **meta: str) -> RequestTrace:
        fields = {"name": quote(tool)}
        return self.recorder.request(
            method, b"7", fields, {key: quote(each) for key, each in meta.items()}, over_http=True
        )

    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def points(self, metric: str) -> list[Mapping[str, object]]:
        """The attributes of each point of a metric."""
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            dict(point.attributes or {})
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        ]


def test_a_call_is_a_span_below_the_clients_with_the_upstreams_below_it() -> None:
    recorded = Recorded()
    trace = recorded.request(traceparent=PARENT)
    upstream = trace.upstream("shop", "tools/call", {"name": b'"pay"'}, is_listed=True)
    meta = upstream.meta({"traceparent": quote(PARENT), "baggage": b'"user=me"', "mine": b"1"})
    upstream.end()
    trace.end(b"{}", failed=False)
    client, server = recorded.spans()
    assert (client.name, server.name) == ("tools/call pay", "tools/call execute_tool")
    assert client.parent is not None
    assert server.parent is not None
    assert server.context is not None
    assert client.context is not None
    assert f"{server.parent.span_id:016x}" in PARENT
    assert f"{server.context.trace_id:032x}" in PARENT
    assert client.parent.span_id == server.context.span_id
    assert unquote(meta["traceparent"]).split("-")[2] == f"{client.context.span_id:016x}"
    assert meta.keys() == {"traceparent", "mine"}
    assert server.attributes is not None
    assert client.attributes is not None
    assert server.attributes[names.TARGET_TOOL] == "pay"
    assert client.attributes[names.NETWORK] == names.PIPE


def test_baggage_goes_on_if_the_config_says_so() -> None:
    upstream = Recorded(baggage=True).request().upstream("docs", "tools/call", {}, is_listed=True)
    assert upstream.meta({"baggage": b'"user=me"'})["baggage"] == b'"user=me"'


def test_where_a_server_is() -> None:
    recorded = Recorded()
    recorded.request().upstream("docs", "prompts/get", {"name": b'"hello"'}, is_listed=False).end()
    [span] = recorded.spans()
    assert span.attributes is not None
    assert span.attributes[names.ADDRESS] == "docs.example"
    assert span.attributes[names.PORT] == 443
    assert span.name == "prompts/get"
    assert span.attributes[names.PROMPT] == "hello"


@pytest.mark.parametrize("method", ["tools/call", "evil/method"])
def test_no_metric_and_no_name_has_what_a_client_made_up(method: str) -> None:
    recorded = Recorded()
    for number in range(20):
        trace = recorded.request(method if method != "evil/method" else f"evil/{number}", f"tool{number}")
        trace.upstream("shop", "tools/call", {"name": quote(f"tool{number}")}, is_listed=False).end()
        trace.end(b"{}", failed=False)
    assert len(recorded.points(names.SERVER_DURATION)) == len(recorded.points(names.CLIENT_DURATION)) == 1
    assert len({span.name for span in recorded.spans()}) <= 2


def test_a_server_that_makes_up_codes_of_errors_makes_no_metrics() -> None:
    recorded = Recorded()
    for code in range(1, 31):
        trace = recorded.request()
        error = UpstreamRpcError("shop", RpcError(code, "made up"))
        trace.upstream("shop", "tools/call", {"name": b'"pay"'}, is_listed=True).end(error)
        trace.end(error.error, failed=False)
    for metric in (names.SERVER_DURATION, names.CLIENT_DURATION):
        assert [point[names.ERROR] for point in recorded.points(metric)] == [names.OTHER]
    assert {(span.attributes or {})[names.ERROR] for span in recorded.spans()} == set(map(str, range(1, 31)))


@pytest.mark.parametrize(
    ("outcome", "failed", "error", "is_error"),
    [
        (b"{}", False, None, False),
        (b"{}", True, names.TOOL_ERROR, True),
        (None, False, "cancelled", True),
        (RpcError(-32602, "wrong"), False, "-32602", False),
        (RpcError(-32603, "ours"), False, "-32603", True),
    ],
)
def test_errors_of_a_request(
    outcome: bytes | RpcError | None, failed: bool, error: str | None, is_error: bool
) -> None:
    recorded = Recorded()
    recorded.request().end(outcome, failed=failed)
    [span] = recorded.spans()
    assert span.attributes is not None
    assert span.attributes.get(names.ERROR) == error
    assert (not span.status.is_ok) is is_error
    assert recorded.points(names.SERVER_DURATION)[0].get(names.ERROR) == error


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (UpstreamRpcError("shop", RpcError(-32602, "secret")), "-32602"),
        (UpstreamTimeoutError("shop", "secret"), "UpstreamTimeoutError"),
        (KeyboardInterrupt(), "cancelled"),
    ],
)
def test_errors_of_an_upstream_without_their_texts(raised: BaseException, error: str) -> None:
    recorded = Recorded()
    recorded.request().upstream("shop", "tools/call", {"name": b'"pay"'}, is_listed=True).end(raised)
    [span] = recorded.spans()
    assert span.attributes is not None
    assert span.attributes[names.ERROR] == error
    assert not span.status.is_ok
    assert not span.events
    assert "secret" not in span.to_json()


@given(
    st.dictionaries(st.sampled_from(["traceparent", "tracestate", "baggage", "x"]), st.binary(max_size=80))
)
def test_whatever_a_client_sends_as_its_context(meta: dict[str, bytes]) -> None:
    recorded = Recorded()
    trace = recorded.recorder.request("tools/call", b'"' * 500, {}, meta, over_http=False)
    sent = trace.upstream("shop", "tools/call", meta, is_listed=True).meta(meta)
    trace.end(b"{}", failed=False)
    assert sent.keys() - {"traceparent", "tracestate"} == meta.keys() - {
        "traceparent",
        "tracestate",
        "baggage",
    }


def test_what_gauges_show() -> None:
    figures = Figures(
        (ServerFigures("shop", True, 3, None, False, 5, 1), ServerFigures("docs", False, 0, 2.5, True, 0, 0)),
        clients=2,
    )
    recorded = Recorded(figures=figures)
    assert recorded.points("mcpzip.upstream.up") == [{names.SERVER: "shop"}, {names.SERVER: "docs"}]
    assert recorded.points("mcpzip.upstream.catalog.age") == [{names.SERVER: "docs"}]
    assert recorded.points("mcpzip.clients") == [{}]


def test_the_query_of_a_resource_is_in_no_span() -> None:
    recorded = Recorded()
    fields = {"uri": b'"docs://page?key=sesame#part"'}
    trace = recorded.recorder.request("resources/read", b"1", fields, {}, over_http=False)
    trace.upstream("docs", "resources/read", fields, is_listed=False).end()
    trace.end(b"{}", failed=False)
    assert [(span.attributes or {})[names.RESOURCE] for span in recorded.spans()] == ["docs://page"] * 2


def test_a_connection_to_a_server_is_measured_with_how_it_ended() -> None:
    recorded = Recorded()
    for name, is_lost in (("shop", True), ("docs", False)):
        record_session(recorded.telemetry.metrics, SERVERS[name], "2025-11-25", 5.0, is_lost=is_lost)
    docs = {names.SERVER: "docs", names.NETWORK: "tcp", names.ADDRESS: "docs.example", names.PORT: 443}
    shop = {names.SERVER: "shop", names.NETWORK: "pipe", names.ERROR: "connection_lost"}
    points = recorded.points(names.CLIENT_SESSION)
    assert points == [{**each, names.VERSION: "2025-11-25"} for each in (shop, docs)]


def test_a_session_is_measured_once() -> None:
    recorded = Recorded()
    recorded.recorder.joined("a")
    recorded.recorder.left("a")
    recorded.recorder.left("a")
    assert len(recorded.points(names.SERVER_SESSION)) == 1
