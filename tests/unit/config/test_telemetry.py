"""The ``telemetry`` of a config."""

import pytest

from mcpzip.config.reading import parse
from mcpzip.config.schema import TelemetryConfig
from mcpzip.model.errors import ConfigError


def read(text: str) -> TelemetryConfig | None:
    data = f'{{"mcpServers": {{"a": {{"command": "a"}}}}, "telemetry": {text}}}'
    return parse(data.encode(), "/c.json", {"COLLECTOR": "http://c:4318"}).telemetry


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("false", None),
        ("{}", None),
        ('{"otlp": false}', None),
        ('{"otlp": true}', TelemetryConfig(otlp="")),
        ('{"otlp": "http://127.0.0.1:4318"}', TelemetryConfig(otlp="http://127.0.0.1:4318")),
        ('{"otlp": "${COLLECTOR}/x"}', TelemetryConfig(otlp="http://c:4318/x")),
        ('{"listen": " 9464 ", "baggage": true}', TelemetryConfig(listen="9464", baggage=True)),
    ],
)
def test_what_is_read(text: str, found: TelemetryConfig | None) -> None:
    assert read(text) == found


@pytest.mark.parametrize("text", ["true", "5", '{"otlp": "grpc://x"}', '{"otlp": 5}', '{"listen": 9464}'])
def test_what_is_refused_says_what_to_write(text: str) -> None:
    with pytest.raises(ConfigError, match="write"):
        read(text)
