"""The ``telemetry`` of a config in the JSON Schema."""

from mcpzip.config import telemetry
from mcpzip.config.schema_forms import Schema, boolean, object_of, text

_ENDPOINT = r"^\s*https?://[^\s/?#]+(/[^\s?#]*)?\s*$"


def settings() -> Schema:
    """The object."""
    return object_of(
        "Traces and metrics by OpenTelemetry.",
        {
            telemetry.OTLP: {
                "description": "The URL of a collector that takes OTLP over HTTP, without /v1/traces; true: "
                "that of the environment (OTEL_EXPORTER_OTLP_ENDPOINT).",
                "anyOf": [{"type": "string", "pattern": _ENDPOINT}, {"type": ["boolean", "null"]}],
            },
            telemetry.LISTEN: text(
                "The address, [HOST:]PORT, at which /metrics (for Prometheus), /healthz and /readyz are "
                "served."
            ),
            telemetry.BAGGAGE: boolean(
                "Whether the baggage in _meta of a client's request is passed on to servers.", default=False
            ),
        },
    )
