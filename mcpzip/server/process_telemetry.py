"""The telemetry of a process that serves clients: of all its proxies, from its start to its end.

The rule: telemetry never keeps anything from being served. Without the extra, or with an address that can't
be had, a warning says so, and all else goes on.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mcpzip.config.schema import ServerConfig, TelemetryConfig
from mcpzip.model.errors import ConfigError
from mcpzip.proxy import metatools
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.event_log import note
from mcpzip.system.threads import in_thread
from mcpzip.transport import session_times

if TYPE_CHECKING:
    from mcpzip.server.http.application_server import ApplicationServer
    from mcpzip.telemetry.metrics import Figures
    from mcpzip.telemetry.traces import Recorder

NO_EXTRA = (
    "telemetry is in the config, and the extra for it is missing: pip install 'mcpzip[otel]'. Until then "
    "there are no traces and no metrics."
)
_FRESH = 0.5
"""Seconds for which figures are not counted again, because each gauge asks for them."""
_PATIENCE = 1.0
"""Seconds that the thread of an exporter waits for the event loop."""
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http", "opentelemetry.exporter.prometheus")


_OWN_TOOLS = frozenset((*metatools.names(split=True, code=True), *metatools.OWN_TOOL_NAMES))


class ProcessTelemetry:
    """What the proxies of this process are traced and measured with. Belongs to the event loop. url: of
    `/metrics`, "" if it is not served.
    """

    def __init__(self, config: TelemetryConfig, environment: Mapping[str, str], *, pulled: bool) -> None:
        """pulled: whether `/metrics` will be served."""
        from mcpzip.telemetry.metrics import Figures
        from mcpzip.telemetry.provider import Telemetry

        self._loop = asyncio.get_running_loop()
        self._proxies: list[Proxy] = []
        self._counted_at, self._figures = float("-inf"), Figures()
        self.ending, self.url = False, ""
        self.telemetry = Telemetry(config, environment, self.figures, pulled=pulled)
        session_times.install(self._session_ended)

    def recorder(self, proxy: Proxy) -> "Recorder":
        """What requests to ``proxy`` are traced with. From now on its servers are measured too."""
        self._proxies.append(proxy)
        return self.telemetry.recorder(
            lambda: proxy.config.servers, lambda name: name in _OWN_TOOLS and proxy.exposure.has_own(name)
        )

    def _session_ended(self, server: ServerConfig, version: str, seconds: float, is_lost: bool) -> None:
        from mcpzip.telemetry.traces import record_session

        record_session(self.telemetry.metrics, server, version, seconds, is_lost=is_lost)

    def forget(self, proxy: Proxy) -> None:
        """``proxy`` has ended."""
        if proxy in self._proxies:
            self._proxies.remove(proxy)

    def figures(self) -> "Figures":
        """What gauges show, in any thread; what they showed last if the event loop is busy or has ended."""
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._count()
        elif time.monotonic() - self._counted_at > _FRESH and not self._loop.is_closed():
            counting = self._count_here()
            try:
                asyncio.run_coroutine_threadsafe(counting, self._loop).result(_PATIENCE)
            except (TimeoutError, RuntimeError):
                counting.close()
        return self._figures

    async def _count_here(self) -> None:
        self._count()

    def _count(self) -> None:
        from mcpzip.telemetry.metrics import Figures, ServerFigures

        if time.monotonic() - self._counted_at <= _FRESH:
            return
        now = time.time()
        servers: dict[str, ServerFigures] = {}
        for proxy in self._proxies:
            counts = proxy.statistics.servers
            for each in proxy.status():
                if each.state == "disabled":
                    continue
                other, own = servers.get(each.name), counts.get(each.name)
                servers[each.name] = ServerFigures(  # a daemon may have it in several proxies
                    name=each.name,
                    up=each.state == "connected" or bool(other and other.up),
                    tools=each.tools,
                    age=None if each.listed_at is None else max(0.0, now - each.listed_at),
                    held=bool(each.held),
                    calls=(own.calls if own else 0) + (other.calls if other else 0),
                    errors=(own.errors if own else 0) + (other.errors if other else 0),
                )
        self._figures = Figures(
            servers=tuple(servers.values()),
            clients=sum(len(proxy.notifier.clients) for proxy in self._proxies),
            searches=sum(proxy.statistics.searches for proxy in self._proxies),
            saved=sum(kept.tokens for proxy in self._proxies for kept in proxy.statistics.kept.values()),
            rate_limited=sum(proxy.statistics.rate_limited for proxy in self._proxies),
            counted_locally=sum(proxy.statistics.counted_locally for proxy in self._proxies),
        )
        self._counted_at = time.monotonic()

    def why_not_ready(self) -> str:
        """Why no client should be sent here; "" for no reason."""
        if self.ending:
            return "mcpzip is ending"
        enabled = [each for proxy in self._proxies for each in proxy.status() if each.state != "disabled"]
        if enabled and not any(each.listed_at is not None for each in enabled):
            return "no server has listed its tools yet"
        return ""


@asynccontextmanager
async def started(
    config: TelemetryConfig,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
    *,
    listens: bool = True,
) -> AsyncIterator[ProcessTelemetry | None]:
    """Starts the telemetry of this process, and ends it; None if it can't be had. See
    `server.telemetry.telemetry_of`.
    """
    if not all(map(_is_installed, _NEEDED)):
        warn(NO_EXTRA)
        yield None
        return
    await in_thread(_import, "telemetry")
    from mcpzip.telemetry.provider import CLOSE_TIME, TelemetryLog

    TelemetryLog(warn)
    made = ProcessTelemetry(config, environment, pulled=listens and bool(config.listen))
    server = await _serve(made, config.listen, warn) if made.telemetry.prometheus is not None else None
    try:
        yield made
    finally:
        made.ending = True
        session_times.install(None)
        if server is not None:
            await server.close()
        closing = asyncio.create_task(in_thread(made.telemetry.close, "telemetry"))
        await asyncio.wait({closing}, timeout=CLOSE_TIME)
        closing.cancel()


async def _serve(
    made: ProcessTelemetry, address: str, warn: Callable[[str], None]
) -> "ApplicationServer | None":
    from mcpzip.server.http.access import read_address, take
    from mcpzip.server.http.application_server import ApplicationServer
    from mcpzip.server.http.monitoring import LIMITS, METRICS, Monitoring

    try:
        where = read_address(address)
        listening = take(where)
    except ConfigError as error:
        reason = str(error).replace("--http", "telemetry.listen", 1)
        warn(f"{reason} Until mcpzip is started again, it serves no metrics.")
        return None
    monitoring = Monitoring(made.telemetry, where, made.why_not_ready, warn)
    server = ApplicationServer(monitoring, listening, LIMITS)
    await server.start()
    made.url = where.url(listening.getsockname()[1], METRICS)
    note("info", "", "telemetry", f"metrics are served at {made.url}")
    return server


def _import() -> None:
    import mcpzip.telemetry.provider  # noqa: F401 # in a thread, because it takes 0.2 s


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
