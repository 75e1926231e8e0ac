"""The metrics: durations of what is done, and gauges of the servers."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

from mcpzip.telemetry import names


class ServerFigures(msgspec.Struct, frozen=True):
    """An upstream server now. up: whether it is connected. age: seconds since it was listed, None if it never
    was. held: whether items of it are held back. calls, errors: so far.
    """

    name: str
    up: bool
    tools: int
    age: float | None
    held: bool
    calls: int
    errors: int


class Figures(msgspec.Struct, frozen=True):
    """All that gauges show. clients: that are connected. saved: tokens of results that were kept instead of
    sent, about. rate_limited, counted_locally: as `proxy.statistics.Statistics` has them.
    """

    servers: tuple[ServerFigures, ...] = ()
    clients: int = 0
    searches: int = 0
    saved: int = 0
    rate_limited: int = 0
    counted_locally: int = 0


class Metrics:
    """The instruments."""

    def __init__(self, meter: Meter, figures: Callable[[], Figures]) -> None:
        """figures: what gauges show; called in the thread of whoever reads the metrics."""

        def histogram(name: str, about: str, buckets: Sequence[float]) -> Histogram:
            return meter.create_histogram(name, "s", about, explicit_bucket_boundaries_advisory=list(buckets))

        self.server_duration = histogram(
            names.SERVER_DURATION, "The duration of a request of a client.", names.BUCKETS
        )
        self.client_duration = histogram(
            names.CLIENT_DURATION, "The duration of a request to an upstream server.", names.BUCKETS
        )
        self.server_session = histogram(
            names.SERVER_SESSION, "How long a client stayed.", names.SESSION_BUCKETS
        )
        self.client_session = histogram(
            names.CLIENT_SESSION, "How long a connection to an upstream server lasted.", names.SESSION_BUCKETS
        )
        self._figures = figures
        each = self._each
        for name, unit, about, value in _GAUGES:
            meter.create_observable_gauge(name, [each(value)], unit, about)
        for name, unit, about, value in _COUNTERS:
            meter.create_observable_counter(name, [each(value)], unit, about)
        meter.create_observable_gauge(
            "mcpzip.clients", [self._one(lambda now: now.clients)], "{client}", "Clients that are connected."
        )
        meter.create_observable_counter(
            "mcpzip.searches", [self._one(lambda now: now.searches)], "{search}", "Searches of clients."
        )
        meter.create_observable_counter(
            "mcpzip.results.kept.tokens",
            [self._one(lambda now: max(now.saved, 0))],
            "{token}",
            "Tokens of results that were kept instead of sent, about.",
        )
        meter.create_observable_counter(
            "mcpzip.rate_limits.refused",
            [self._one(lambda now: now.rate_limited)],
            "{call}",
            "Calls that were refused for the limits of a person.",
        )
        meter.create_observable_counter(
            "mcpzip.rate_limits.local",
            [self._one(lambda now: now.counted_locally)],
            "{call}",
            "Calls that the store could not count.",
        )

    def _each(self, value: "_Value") -> "_Callback":
        def observed(options: CallbackOptions) -> Iterable[Observation]:
            for server in self._figures().servers:
                if (found := value(server)) is not None:
                    yield Observation(found, {names.SERVER: server.name})

        return observed

    def _one(self, value: Callable[[Figures], float]) -> "_Callback":
        return lambda options: [Observation(value(self._figures()))]


_Value = Callable[[ServerFigures], float | None]
_Callback = Callable[[CallbackOptions], Iterable[Observation]]

_GAUGES: tuple[tuple[str, str, str, _Value], ...] = (
    ("mcpzip.upstream.up", "1", "Whether the server is connected.", lambda server: int(server.up)),
    ("mcpzip.upstream.tools", "{tool}", "Tools of the server that are shown.", lambda server: server.tools),
    ("mcpzip.upstream.catalog.age", "s", "Since the server was listed.", lambda server: server.age),
    (
        "mcpzip.upstream.held",
        "1",
        "Whether a change of the server waits for a person.",
        lambda server: int(server.held),
    ),
)
_COUNTERS: tuple[tuple[str, str, str, _Value], ...] = (
    ("mcpzip.upstream.calls", "{call}", "Calls that were sent to the server.", lambda server: server.calls),
    ("mcpzip.upstream.errors", "{call}", "Calls that failed.", lambda server: server.errors),
)
