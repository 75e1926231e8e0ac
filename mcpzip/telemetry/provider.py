"""Starts and ends OpenTelemetry's SDK, as the config says.

The rules:

1. Nothing global is set: a provider belongs to one `Telemetry`, so other code of the process is not
   concerned.
2. What is exported waits in a bounded queue, and threads of the SDK send it. No request waits for a
   collector, and our end waits for it `CLOSE_TIME` at most.
3. The ``OTEL_…`` variables of the environment count: headers, sampler, intervals, limits, attributes of the
   resource.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.environment_variables import OTEL_SERVICE_NAME
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NoOpTracerProvider

from mcpzip import __version__
from mcpzip.telemetry import names
from mcpzip.telemetry.metrics import Figures, Metrics
from mcpzip.telemetry.traces import Recorder

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from mcpzip.config import ServerConfig
    from mcpzip.config.schema import TelemetryConfig

CLOSE_TIME = 0.2
"""Seconds that the last spans and metrics have to be sent."""
_SERVICE = "mcpzip"


class Telemetry:
    """The providers of one process. prometheus: what `/metrics` shows, None unless it is to be served."""

    def __init__(
        self,
        config: "TelemetryConfig",
        environment: Mapping[str, str],
        figures: Callable[[], Figures],
        *,
        pulled: bool = False,
        processors: tuple[SpanProcessor, ...] = (),
        readers: tuple[MetricReader, ...] = (),
    ) -> None:
        """figures: what gauges show. pulled: whether metrics are fetched, by `prometheus`. processors,
        readers: beside those of the config.
        """
        resource = Resource.create(
            {
                "service.name": environment.get(OTEL_SERVICE_NAME) or _SERVICE,
                "service.version": __version__,
            }
        )
        self.prometheus: CollectorRegistry | None = None
        all_processors, all_readers = list(processors), list(readers)
        if config.otlp is not None:
            processor, reader = _otlp(config.otlp)
            all_processors.append(processor)
            all_readers.append(reader)
        if pulled:
            self.prometheus, reader = _prometheus()
            all_readers.append(reader)
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False) if all_processors else None
        self._meters = MeterProvider(all_readers, resource, shutdown_on_exit=False) if all_readers else None
        for each in all_processors:
            assert self._tracers is not None
            self._tracers.add_span_processor(each)
        scope = (_SERVICE, __version__)
        self._tracer = (self._tracers or NoOpTracerProvider()).get_tracer(*scope, schema_url=names.SCHEMA)
        meter = (self._meters or NoOpMeterProvider()).get_meter(*scope, schema_url=names.SCHEMA)
        self.metrics = Metrics(meter, figures)
        self._baggage = config.baggage

    def recorder(
        self, servers: "Callable[[], Mapping[str, ServerConfig]]", is_own_tool: Callable[[str], bool]
    ) -> Recorder:
        """See `traces.Recorder`."""
        return Recorder(self._tracer, self.metrics, servers, is_own_tool, baggage=self._baggage)

    def exposition(self) -> tuple[bytes, bytes]:
        """All metrics in Prometheus' text format, and its content type. Needs ``pulled``."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        assert self.prometheus is not None
        return generate_latest(self.prometheus), CONTENT_TYPE_LATEST.encode()

    def close(self) -> None:
        """Sends what waits, and ends the threads. Blocks; may be abandoned after `CLOSE_TIME`."""
        milliseconds = CLOSE_TIME * 1_000
        if self._meters is not None:
            self._meters.shutdown(milliseconds)
        if self._tracers is not None:
            self._tracers.shutdown()


class TelemetryLog(logging.Handler):
    """Tells people once of each place in the SDK that reports a problem, instead of every five seconds."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._warn, self._told = warn, set[str]()
        logger = logging.getLogger("opentelemetry")
        logger.handlers = [self]
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        if record.name not in self._told and len(self._told) < _PLACES:
            self._told.add(record.name)
            self._warn(f"telemetry: {record.getMessage()[:500]} (this is said once)")


_PLACES = 50


def _otlp(endpoint: str) -> tuple[SpanProcessor, MetricReader]:
    """What sends to a collector by OTLP over HTTP. endpoint: its URL without the path of a signal; "" for
    that of ``OTEL_EXPORTER_OTLP_…``.
    """
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    base = endpoint.rstrip("/")
    spans = OTLPSpanExporter(endpoint=f"{base}/v1/traces" if base else None)
    metrics = OTLPMetricExporter(endpoint=f"{base}/v1/metrics" if base else None)
    return BatchSpanProcessor(spans), PeriodicExportingMetricReader(metrics)


def _prometheus() -> "tuple[CollectorRegistry, MetricReader]":
    """What makes a page of metrics, those of this process (memory, processor time) among them."""
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from prometheus_client import CollectorRegistry
    from prometheus_client.process_collector import ProcessCollector

    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    return registry, PrometheusMetricReader(scope_info_enabled=False, registry=registry)
