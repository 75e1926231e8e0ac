"""The ``telemetry`` of a config: where traces and metrics go."""

import re

from mcpzip.config.node import Node
from mcpzip.config.schema import TelemetryConfig

OTLP, LISTEN, BAGGAGE = "otlp", "listen", "baggage"
KEYS = (OTLP, LISTEN, BAGGAGE)
_TELEMETRY = 'write an object, such as {"otlp": "http://127.0.0.1:4318"}'
_ENDPOINT = "write the URL of a collector, such as http://127.0.0.1:4318, or true for that of the environment"
_ADDRESS = "write [HOST:]PORT, such as 127.0.0.1:9464"
_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")


def read_telemetry(node: Node) -> TelemetryConfig | None:
    """The settings; None for none. Raises ConfigError."""
    if node.value is False:
        return None
    node.object(_TELEMETRY, KEYS)
    otlp, listen, baggage = map(node.get, KEYS)
    found = TelemetryConfig(
        otlp=_endpoint(otlp) if otlp else None,
        listen=listen.text(_ADDRESS).strip() if listen else "",
        baggage=baggage.boolean() if baggage else False,
    )
    return found if found.otlp is not None or found.listen else None


def _endpoint(node: Node) -> str | None:
    if isinstance(node.value, bool):
        return "" if node.value else None
    url = node.text(_ENDPOINT).strip()
    if _URL.fullmatch(url) is None:
        raise node.error("this is no URL of a collector", _ENDPOINT)
    return url
