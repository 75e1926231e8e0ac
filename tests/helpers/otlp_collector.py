"""A collector: takes traces and metrics by OTLP over HTTP (protobuf), on loopback."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT"}


@dataclass(frozen=True)
class ReceivedSpan:
    """A span. trace, id, parent: in hexadecimal, "" for none. is_error: whether its status is an error."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, object]
    is_error: bool


@dataclass
class Collector:
    """url: without the path of a signal. headers: of the last request."""

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    metrics: set[str] = field(default_factory=set)
    resource: dict[str, object] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def named(self, name: str) -> list[ReceivedSpan]:
        """The spans of this name."""
        return [span for span in self.spans if span.name == name]

    def _traces(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = _attributes(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        span.name,
                        KINDS[span.kind],
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        _attributes(span.attributes),
                        span.status.code == 2,
                    )
                    for span in scope.spans
                ]

    def _metrics(self, body: bytes) -> None:
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics |= {metric.name for metric in scope.metrics}

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """A request has come."""
        self.headers = headers
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        {"/v1/traces": self._traces, "/v1/metrics": self._metrics}[path](body)


def _attributes(given: Any) -> dict[str, object]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in given}


@contextmanager
def collecting(status: int = 200) -> Iterator[Collector]:
    """A collector that listens. status: of all its responses."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.take(self.path, {key.lower(): value for key, value in self.headers.items()}, body)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
